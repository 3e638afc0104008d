"""Files given to `gdbext diagnose`: core files, saved snapshots and bundles, texts with stacks in them."""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import re
import select
import stat
import sys
from dataclasses import replace
from typing import BinaryIO, Deque, Sequence

from gdbext.capture.core_file import looks_like_core
from gdbext.frontend import bundle
from gdbext.frontend.interrupts import interrupts_wait
from gdbext.frontend.terminal import Progress
from gdbext.model.codec import load_snapshot
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.parsers import parse_files, source

HEAD, TAIL = source.HEAD, source.LIMIT - source.HEAD - (2 << 20)
"""Bytes read from the beginning and the end of one text: together what the parsers take."""
STDIN = "standard input"
_SILENT = 1000  # milliseconds without a byte from a pipe, after which it is said what is waited for
_SKIPPED = re.compile(rb"\n\((\d+ MiB in the middle were not read)\)\n")


def snapshot_of(files: Sequence[str], options: argparse.Namespace, progress: Progress) -> JobSnapshot:
    """What the files say. Raises `GdbextError` where they say nothing, or one of them cannot be read."""
    sysroot, exe = getattr(options, "sysroot", None), getattr(options, "exe", None)
    if any(
        name != "-" and not _is_pipe(name) and looks_like_core(name) for name in files
    ):  # one is enough: what else there is is then named
        with interrupts_wait():
            cores = importlib.import_module("gdbext.frontend.cores")
        limits = cores.CoreLimits(sysroot, exe, options.frames, options.deadline, options.gdb, options.jobs)
        snapshot: JobSnapshot = cores.look(files, limits, progress)
        return snapshot
    if sysroot or exe:
        raise UsageError("--sysroot and --exe are for core files", "name some: gdbext diagnose core.*")
    return _of_texts(files, progress)


def _is_pipe(name: str) -> bool:
    """Whether it can be read once only, from its beginning: `mkfifo`, and `<(command)` of a shell."""
    try:
        return stat.S_ISFIFO(os.stat(name).st_mode)
    except OSError:
        return False


def _of_texts(files: Sequence[str], progress: Progress) -> JobSnapshot:
    """Snapshots are read back; everything else is taken for text with stacks in it."""
    names = [STDIN if name == "-" else name for name in files]
    texts = [(name, _read(bundle.snapshot_in(file), progress)) for name, file in zip(names, files)]
    if len(texts) == 1 and _is_snapshot(texts[0][1]):
        return load_snapshot(texts[0][1].decode("utf-8", "replace"))
    snapshot = parse_files(texts)
    skipped = [(name, _SKIPPED.match(data, HEAD)) for name, data in texts]
    problems = tuple(f"{name}: {found.group(1).decode()}" for name, found in skipped if found)
    snapshot = replace(snapshot, problems=problems + snapshot.problems)
    if not snapshot.said and not any(process.threads or process.said for process in snapshot.processes):
        if not any(data.strip() for _, data in texts):
            verb = "is" if len(names) == 1 else "are"
            raise NothingFound(f"{_named(names)} {verb} empty", "give the output of py-spy dump, gdb, pystack, ...")
        why = f" ({snapshot.problems[0]})" if snapshot.problems else ""
        hint = "paste the output of `thread apply all bt`, py-spy dump, pystack or a Python traceback"
        raise NothingFound(f"no stack found in {_named(names)}{why}", hint)
    return snapshot


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"the {STDIN}" if name == STDIN else name for name in names)


def _read(name: str, progress: Progress) -> bytes:
    try:
        if name == "-":
            return _bounded(sys.stdin.buffer)
        with _opened(name, progress) as file:
            return _bounded(file)
    except OSError as error:
        raise GdbextError(f"cannot read {name}: {error.strerror}") from None


def _opened(name: str, progress: Progress) -> BinaryIO:
    """The file, open. To open a pipe would block until it has a writer, and say nothing: that is waited for here."""
    if not _is_pipe(name):
        return open(name, "rb")
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(_SILENT):
            progress.say(f"waiting for somebody to write to the pipe {name} (Ctrl-C ends that)")
            poll.poll()
        os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


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
