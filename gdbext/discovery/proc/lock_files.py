"""Who has the lock that is a file, by the file's name: a process that tries again and again has it open for moments."""

from __future__ import annotations

import os
import re
import stat as modes
from typing import List, Optional, Tuple

from gdbext.discovery.proc.open_files import about, each_descriptor, looks
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing

_LOCKED = re.compile(r"^lock:", re.MULTILINE)


def tried_lock(proc: ProcFS, pid: int, tid: int, path: str, exists: bool) -> Optional[Peer]:
    """The row of a thread that asks for the lock again and again; None where it can have it now. `exists`: the file is
    the lock while it is there, and whoever made it has it open."""
    place = f"{proc.root}/{pid}/root{path}" if path.startswith("/") else f"{proc.root}/{pid}/cwd/{path}"
    file = _identity(place)
    if file is None:
        return None
    found: List[int] = []

    def look(other: int, name: str) -> None:
        if other == pid or other in found or _identity(f"{proc.root}/{other}/fd/{name}") != file:
            return
        if exists or _LOCKED.search(about(proc, other, name)):
            found.append(other)

    whole = each_descriptor(proc, look)
    if _identity(place) != file:  # released meanwhile
        return None
    if found:
        return Peer(tid, path, tuple(found), *looks(proc, found), lock=True)
    if not exists:
        return None
    if not whole:
        unknown = Missing("some processes of this host may not be inspected")
        return Peer(thread=tid, file=path, processes=unknown, lock=True)
    return Peer(thread=tid, file=path, processes=(), lock=True)


def _identity(path: str) -> Optional[Tuple[int, int]]:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if modes.S_ISREG(found.st_mode) else None
