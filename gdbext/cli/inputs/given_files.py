"""Files given to `gdbext diagnose`: core files, saved snapshots and bundles, texts with stacks in them."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import stat
from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from gdbext.capture.cores.core_kind import looks_like_core, looks_like_gpu_core
from gdbext.cli import diagnosis_bundle
from gdbext.cli.inputs import log_folder, reading
from gdbext.cli.terminal import Progress
from gdbext.collect.ctrl_c_while_loading import interrupts_wait
from gdbext.knowledge.dump_tools import UNREAD_TEXTS
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.look_origin import Origin
from gdbext.model.snapshot_files.codec import load_snapshot
from gdbext.parsers import parse_files

_SAVE_AGAIN = "copy or save it again: --save FILE writes a snapshot"
_MOST_LOOKED_AT = 64 << 10
_SLOW_MEBIBYTES = 4  # MiB, from which on the parsers take longer than anybody waits without a word


def snapshot_of(
    files: Sequence[str], options: argparse.Namespace, progress: Progress
) -> Tuple[JobSnapshot, Optional[Origin]]:
    """What the files say, and when and where that was so, for all but texts.

    Raises `GdbextError` where they say nothing, or one of them cannot be read.
    """
    files, left_out = _expanded(files)
    sysroot, exe = getattr(options, "sysroot", None), getattr(options, "exe", None)
    for name in files:
        reading.refuse_device(name)
    gpu = [name for name in files if name != "-" and not _is_pipe(name) and looks_like_gpu_core(name)]
    if gpu:
        return _with_gpu_cores(gpu, [name for name in files if name not in gpu], options, progress)
    if any(map(_is_core, files)):  # one is enough: what else there is is then named
        with interrupts_wait():
            cores = importlib.import_module("gdbext.collect.core_files")
        limits = cores.CoreLimits(sysroot, exe, options.frames, options.deadline, options.gdb, options.jobs)
        snapshot: JobSnapshot = cores.look(files, limits, progress)
        return snapshot, Origin.of(snapshot, tuple(files))
    if exe:
        raise UsageError("--exe is for core files", "name some: gdbext diagnose core.*")
    if sysroot and not files:
        raise _no_offsets()
    snapshot, origin = _of_texts(files, progress)
    if sysroot:
        snapshot = _named_frames(snapshot, sysroot)
    return replace(snapshot, problems=(*left_out, *snapshot.problems)), origin


def _with_gpu_cores(
    gpu: Sequence[str], files: Sequence[str], options: argparse.Namespace, progress: Progress
) -> Tuple[JobSnapshot, Optional[Origin]]:
    """GPU cores, beside host cores, a saved snapshot or stacks where there are some."""
    with interrupts_wait():
        cores = importlib.import_module("gdbext.snapshot_builder.gpu_cores")
    listing = cores.read_all(gpu, progress.say)
    if not files and not listing.cores:
        raise NothingFound("no GPU core could be read: " + "; ".join(listing.unread))
    for line in listing.unread:
        progress.warn(line)
    host = snapshot_of(files, options, progress)[0] if files else JobSnapshot(processes=())
    snapshot: JobSnapshot = cores.with_gpu_cores(host, listing)
    return snapshot, Origin.of(snapshot, (*files, *gpu))


def _no_offsets() -> UsageError:
    what = "--sysroot is for core files, and for reports of a sanitizer with offsets of libraries"
    return UsageError(what, "name some: gdbext diagnose core.*")


def _named_frames(snapshot: JobSnapshot, sysroot: str) -> JobSnapshot:
    """With functions and lines for a sanitizer's reports. Raises `UsageError` where there is nothing to look up."""
    with interrupts_wait():
        modules = importlib.import_module("gdbext.collect.report_modules")
    if not modules.has_offsets(snapshot):
        raise _no_offsets()
    found: JobSnapshot = modules.with_names(snapshot, sysroot)
    return found


def _expanded(files: Sequence[str]) -> Tuple[List[str], List[str]]:
    """The files with those that are in folders, but for a folder that is a bundle; and what of them was left out."""
    found: List[str] = []
    notes: List[str] = []
    for name in files:
        if name == "-" or not os.path.isdir(name) or os.path.isfile(os.path.join(name, diagnosis_bundle.SNAPSHOT)):
            found.append(name)
            continue
        inside, left = log_folder.files_in(name.rstrip("/") or "/")
        found += inside
        notes += left
    return found, notes


def _is_core(name: str) -> bool:
    return name != "-" and not _is_pipe(name) and looks_like_core(name)


def _is_pipe(name: str) -> bool:
    """Whether it can be read once only, from its beginning: `mkfifo`, and `<(command)` of a shell."""
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError:
        return False


def read_snapshot(file: str, progress: Progress) -> Tuple[JobSnapshot, Origin]:
    """The look that a file or bundle holds. Raises `GdbextError` where it holds none."""
    reading.refuse_device(file)
    given = reading.read(diagnosis_bundle.snapshot_in(file), progress)
    if not given.data.lstrip()[:1] == b"{":  # a core file, pasted stacks, nothing at all
        raise GdbextError(f"{given.name} is not a snapshot", "write one: gdbext diagnose --save FILE PID|TEXT")
    return _loaded(given, file)


def _loaded(given: reading.Given, file: str) -> Tuple[JobSnapshot, Origin]:
    try:
        snapshot = load_snapshot(given.data)
    except GdbextError as error:
        if given.data.rstrip()[-1:] != b"}":
            raise GdbextError(f"{given.name} is a gdbext snapshot whose end is missing", _SAVE_AGAIN) from None
        raise GdbextError(f"{given.name}: {error.args[0]}", error.hint) from None
    return snapshot, Origin.of(snapshot, (given.name if file == "-" else file,))


def _of_texts(files: Sequence[str], progress: Progress) -> Tuple[JobSnapshot, Optional[Origin]]:
    """Snapshots are read back; everything else is taken for text with stacks in it."""
    texts = [reading.read(diagnosis_bundle.snapshot_in(file), progress) for file in files]
    saved = next((one for one in texts if one.is_snapshot), None)
    if saved is not None and len(texts) > 1:
        hint = "give one at a time; an answer is written by --output FILE"
        raise UsageError(f"{saved.name} is a snapshot, which must be given alone", hint)
    if saved is not None:
        return _loaded(saved, files[0])
    size = sum(len(one.data) for one in texts) >> 20
    if size >= _SLOW_MEBIBYTES:
        progress.say(f"looking for stacks in {size} MiB of text (up to a second per MiB)")
    names = [one.name for one in texts]
    streamed = {one.name: one.reports for one in texts if one.reports is not None}
    snapshot = parse_files([(one.name, one.data) for one in texts], streamed)
    problems = tuple(problem for one in texts for problem in one.problems)
    snapshot = replace(snapshot, problems=problems + snapshot.problems)
    if not snapshot.said and not any(
        process.threads or process.said or process.gpu_errors for process in snapshot.processes
    ):
        if not any(one.data.strip() for one in texts):
            verb = "is" if len(names) == 1 else "are"
            raise NothingFound(f"{_named(names)} {verb} empty", "give the output of py-spy dump, gdb, pystack, ...")
        broken = next((one.name for one in texts if _was_snapshot(one.data)), None)
        if broken is not None:
            raise GdbextError(
                f"{broken} is no complete snapshot: it is an answer of --json, or damaged, or cut short", _SAVE_AGAIN
            )
        why = f"; {snapshot.problems[0]}" if snapshot.problems else ""
        shown = "\n".join(one.data[:_MOST_LOOKED_AT].decode("utf-8", "replace") for one in texts)
        command = next(command for words, command in UNREAD_TEXTS if re.search(words, shown))
        traceback = "" if command.startswith("jstack") else "a Python traceback or "
        hint = (
            f"give it {traceback}the last 200 lines of the log (gdbext diagnose FILE), or dump the threads "
            f"while the process runs ({command}) and run: gdbext diagnose dump.txt"
        )
        if snapshot.error_lines:
            why = f'; the text says: "{snapshot.error_lines[0]}"'
        raise NothingFound(
            f"found no stack that gdbext can read in {_named(names)}, and no log line that it knows{why}", hint
        )
    return snapshot, None


def _was_snapshot(data: bytes) -> bool:
    """Whether it has the beginning of what --save writes, a damaged one as well."""
    return data.lstrip()[:9] == b'{"schema"' or b'"snapshot":{"' in data[:400]


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"the {name}" if name == reading.STDIN else name for name in names)
