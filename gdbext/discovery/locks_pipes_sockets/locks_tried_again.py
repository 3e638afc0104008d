"""Locks on files that are asked for again and again: who waits sleeps between two tries, and has the file open for
moments, or asks by fcntl(2) for what another process has.
"""

from __future__ import annotations

import os
import re
from typing import Iterator, List, Optional, Sequence, Tuple

from gdbext.discovery.locks_pipes_sockets.file_locks import locked_by_sqlite
from gdbext.discovery.locks_pipes_sockets.open_files import (
    INODE,
    each_descriptor,
    field,
    opened_by_name,
    read_fdinfo,
    states_and_names,
)
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.tried_locks import LOCK_FILE, LOCK_FILES, TRIES_OPENED
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.safe_open.files import status

_LOCKED = re.compile(r"^lock:", re.MULTILINE)
_TRIES = re.compile(TRIES_OPENED)


def tried_locks(proc: ProcFS, pid: int, stacks: Sequence[ThreadStack]) -> Iterator[Peer]:
    """Of threads that sleep between two tries."""
    for stack in stacks:
        if not stack.lwp or stack.sleeps is None:
            continue
        path = next((frame.captures[LOCK_FILE] for frame in stack.calls if LOCK_FILE in frame.captures), None)
        if isinstance(path, str):
            peer = tried_lock(proc, pid, stack.lwp, path, _is_the_lock(stack))
            if peer is not None:
                yield peer
        elif any(_TRIES.match(frame.function or "") for frame in stack.calls):
            found = locked_by_sqlite(proc, pid)
            if len(set(found.values())) == 1:  # else nobody knows for which of them it waits
                file, holders = next(iter(found.items()))
                yield Peer(stack.lwp, file, holders, *states_and_names(proc, holders), lock=True)


def _is_the_lock(stack: ThreadStack) -> bool:
    """Whether the file itself is the lock, by the function that waits for it."""
    frame = next(frame for frame in stack.calls if LOCK_FILE in frame.captures)
    return any(row.exists and re.search(row.file, frame.file or "") for row in LOCK_FILES)


def tried_lock(proc: ProcFS, pid: int, tid: int, path: str, exists: bool) -> Optional[Peer]:
    """The row of a thread that asks for the lock again and again; None where it can have it now. `exists`: the file is
    the lock while it is there, and whoever made it has it open."""
    inside = _inside(proc, pid, path)
    place = f"{proc.root}/{pid}/root{inside}"
    file = _identity(place) if inside else None
    if file is None:
        return None
    found: List[int] = []

    def look(other: int, name: str) -> None:
        if other == pid or other in found or not opened_by_name(proc, other, name, os.path.basename(path)):
            return
        text = read_fdinfo(proc, other, name)
        number = field(INODE, text)  # overlayfs may show another one than stat(2)
        same = number in (None, file[1]) or opened_by_name(proc, other, name, inside.lstrip("/"))
        if same and (exists or _LOCKED.search(text)):
            found.append(other)

    whole = each_descriptor(proc, look)
    if _identity(place) != file:  # released meanwhile
        return None
    if found:
        return Peer(tid, path, tuple(found), *states_and_names(proc, found), lock=True)
    if not exists:
        return None
    if not whole:
        unknown = Missing("some processes of this host may not be inspected")
        return Peer(thread=tid, file=path, processes=unknown, lock=True)
    return Peer(thread=tid, file=path, processes=(), lock=True)


def _inside(proc: ProcFS, pid: int, path: str) -> str:
    """The whole path as that process sees it; "" where its working folder is not known."""
    if path.startswith("/"):
        return path
    try:
        return os.path.join(os.readlink(f"{proc.root}/{pid}/cwd"), path)
    except OSError:
        return ""


def _identity(path: str) -> Optional[Tuple[int, int]]:
    """Device and inode of a regular file; None for anything else, and where its file system does not answer."""
    try:
        found = status(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
