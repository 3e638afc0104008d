"""`gdbext diagnose` and `gdbext stacks`: live ranks, core files, saved snapshots or pasted text in, an answer out."""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Deque, List, Optional, Sequence

from gdbext import __version__
from gdbext.analysis.judge import judge
from gdbext.analysis.lock_report import report
from gdbext.analysis.merge import merge
from gdbext.capture.activity import Census
from gdbext.capture.core_file import looks_like_core
from gdbext.commands.files import write_private
from gdbext.discovery.procfs import ProcFS
from gdbext.frontend import bundle
from gdbext.frontend.answer import show
from gdbext.frontend.interrupts import interrupts_wait
from gdbext.frontend.live import Limits, Look
from gdbext.frontend.selection import chosen_job, split_inputs
from gdbext.frontend.terminal import Progress
from gdbext.model.codec import dump_snapshot, load_snapshot
from gdbext.model.errors import FINDING, NOTHING, OK, PARTIAL, GdbextError, NothingFound, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.verdict import Diagnosis
from gdbext.parsers import parse_files, source

HEAD, TAIL = source.HEAD, source.LIMIT - source.HEAD - (2 << 20)
"""Bytes read from the beginning and the end of one text: together what the parsers take."""
_SKIPPED = re.compile(rb"\n\((\d+ MiB in the middle were not read)\)\n")


def run(options: argparse.Namespace) -> int:
    """Take the snapshot that the arguments ask for, judge it, print it; returns the exit status."""
    progress = Progress(options.quiet)
    started = time.monotonic()
    pids, files = split_inputs(options.inputs)
    if options.frames < 1:
        raise UsageError("--frames must be positive")
    if options.jobs < 0:
        raise UsageError("--jobs must not be negative", "0 lets gdbext decide")
    if files and (pids or options.name or options.pgid or options.parent or options.engine):
        raise UsageError("files and processes cannot be mixed in one diagnosis", "give one kind of input")
    for name in (options.save, options.json):
        if name not in (None, "-"):
            _check_writable(name)
    into = getattr(options, "bundle", None)
    if into:
        bundle.check_new(into)
    sysroot, exe = getattr(options, "sysroot", None), getattr(options, "exe", None)
    if any(name != "-" and looks_like_core(name) for name in files):  # one is enough: what else there is is then named
        with interrupts_wait():
            cores = importlib.import_module("gdbext.frontend.cores")
        limits = cores.CoreLimits(sysroot, exe, options.frames, options.deadline, options.gdb, options.jobs)
        snapshot = cores.look(files, limits, progress)
    elif sysroot or exe:
        raise UsageError("--sysroot and --exe are for core files", "name some: gdbext diagnose core.*")
    else:
        snapshot = _from_files(files) if files else _from_processes(pids, options, progress)
    snapshot = replace(snapshot, tool=f"gdbext {__version__}", command=" ".join(["gdbext", options.command]))
    diagnosis = judge(snapshot)
    tree = merge(snapshot, diagnosis.processes)
    shown: object = replace(diagnosis, tree=tree) if options.command == "diagnose" else tree
    locks = report(diagnosis) if options.command == "locks" else None
    shown = locks or shown
    show(shown, options.json)
    _keep(options.save, into, snapshot, replace(diagnosis, tree=tree), progress)
    progress.say(f"done in {time.monotonic() - started:.1f} s")
    return exit_status(diagnosis, None if locks is None else locks.finding)


def _keep(
    save: Optional[str], into: Optional[str], snapshot: JobSnapshot, diagnosis: Diagnosis, progress: Progress
) -> None:
    """Write what was asked to be kept. After the answer: a full disk must not cost it."""
    if save:
        write_private(save, dump_snapshot(snapshot) + "\n")
        progress.say(f"snapshot written to {save}")
    if into:
        bundle.write(into, diagnosis)
        progress.say(f"bundle written to {into}")


def _from_processes(pids: Sequence[int], options: argparse.Namespace, progress: Progress) -> JobSnapshot:
    if options.samples < 1 or options.interval <= 0:
        raise UsageError("--samples and --interval must be positive")
    if options.max_pause <= 0 or options.deadline <= 0:
        raise UsageError("--max-pause and --deadline must be positive")
    if options.no_stop and options.together:
        raise UsageError("--together and --no-stop exclude each other", "with --no-stop nobody is stopped")
    proc = ProcFS()
    job = chosen_job(proc, options, pids)
    progress.say(f"{job.engine or 'job'}: {len(job.ranks)} rank processes ({job.key})")
    confirm = 0.0 if options.once else Limits.confirm
    limits = Limits(
        options.max_pause,
        options.frames,
        options.deadline,
        options.together,
        options.gdb,
        confirm,
        options.command == "diagnose" and not options.no_witnesses,
        options.no_stop,
        options.jobs,
        options.command == "diagnose",
    )
    looks: List[JobSnapshot] = []
    census: Optional[Census] = None
    while True:
        one = Look(job, limits, progress, proc, census)
        looks.append(one.take())
        census = one.census
        if len(looks) == options.samples:
            return replace(looks[-1], earlier=tuple(looks[:-1]))
        progress.say(f"look {len(looks)} of {options.samples} taken, next in {options.interval:g} s")
        time.sleep(options.interval)


def _from_files(names: Sequence[str]) -> JobSnapshot:
    """Snapshots are read back; everything else is taken for text with stacks in it."""
    texts = [(name, _read(bundle.snapshot_in(name))) for name in names]
    if len(texts) == 1 and _is_snapshot(texts[0][1]):
        return load_snapshot(texts[0][1].decode("utf-8", "replace"))
    snapshot = parse_files(texts)
    skipped = [(name, _SKIPPED.match(data, HEAD)) for name, data in texts]
    problems = tuple(f"{name}: {found.group(1).decode()}" for name, found in skipped if found)
    snapshot = replace(snapshot, problems=problems + snapshot.problems)
    if not snapshot.said and not any(process.threads or process.said for process in snapshot.processes):
        why = f" ({snapshot.problems[0]})" if snapshot.problems else ""
        hint = "paste the output of `thread apply all bt`, py-spy dump, pystack or a Python traceback"
        raise NothingFound(f"no stack found in {', '.join(names)}{why}", hint)
    return snapshot


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return _bounded(sys.stdin.buffer)
        with open(name, "rb") as file:
            return _bounded(file)
    except OSError as error:
        raise GdbextError(f"cannot read {name}: {error.strerror}") from None


def _is_snapshot(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and b'"snapshot"' in head[:400]


def _bounded(stream: BinaryIO) -> bytes:
    """All of a file; of text beyond the bound its beginning and its end, where hangs show, and a line between them."""
    head = stream.read(HEAD)
    if _is_snapshot(head):
        return head + stream.read()
    tail: Deque[bytes] = collections.deque()
    kept = skipped = 0
    for piece in iter(lambda: stream.read(1 << 20), b""):
        tail.append(piece)
        kept += len(piece)
        while kept > TAIL:
            gone = len(tail.popleft())
            kept -= gone
            skipped += gone
    note = f"\n({skipped >> 20} MiB in the middle were not read)\n".encode() if skipped else b""
    return head + note + b"".join(tail)


def _check_writable(name: str) -> None:
    """Before the look, not after it: an answer that took seconds should not be lost to a wrong folder."""
    folder = Path(name).parent
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "is not writable" if folder.is_dir() else "is no folder"
        raise GdbextError(f"cannot write {name}: {folder} {why}")


def exit_status(diagnosis: Diagnosis, finding: Optional[bool] = None) -> int:
    """The contract of DESIGN 5. Like grep, an error weighs more than a match: what was not read may hide the truth.

    `finding` is what was asked for where that is not the verdict.
    """
    states = [process.state for process in diagnosis.snapshot.processes]
    if not states and diagnosis.snapshot.said:
        return FINDING  # log lines alone
    if not states or all(state == "lost" for state in states):
        return NOTHING
    if any(state != "ok" for state in states):
        return PARTIAL
    return FINDING if (diagnosis.verdict.finding if finding is None else finding) else OK
