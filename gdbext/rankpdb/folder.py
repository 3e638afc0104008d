"""Where the ranks of a job meet on this host: a private folder with one socket of each rank that uses breakpoints.

A socket is named RANK.PID.START (START: clock ticks after boot). One at which nobody listens is the leftover of a
killed rank; whoever finds it removes it.
"""

from __future__ import annotations

import os
import socket
import stat
from dataclasses import dataclass
from typing import List, Optional, Tuple

from gdbext.rankpdb.identity import is_ending, started
from gdbext.rankpdb.wire import Wire, connect, short

VARIABLE = "GDBEXT_PDB_DIR"
"""Another place for the folder, the same for all ranks and for the terminal. Default: /tmp/gdbext-UID."""


@dataclass(frozen=True)
class Member:
    """A rank of a job on this host that has come to a breakpoint at least once."""

    rank: int
    pid: int
    path: str


def default(owner: int) -> str:
    return f"/tmp/gdbext-{owner}"  # noqa: S108 - checked by `base`


def base() -> str:
    """The folder of this user. Raises PermissionError when it is not his alone."""
    path = os.environ.get(VARIABLE) or default(os.geteuid())
    os.makedirs(path, 0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{path} is not a folder of this user alone; remove it, or set {VARIABLE}")
    return path


def jobs() -> List[str]:
    """The folders of all jobs of this user."""
    top = base()
    return sorted(os.path.join(top, name) for name in os.listdir(top) if name.startswith("pdb-"))


def listen(job: str, rank: int) -> Tuple[socket.socket, str]:
    """A socket at which this process can be reached, and its path: nobody but this user can connect."""
    place = os.path.join(base(), f"pdb-{job}")
    name = f"{rank}.{os.getpid()}.{started(os.getpid())}"
    path, new = os.path.join(place, name), os.path.join(place, f".{name}")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.makedirs(place, 0o700, exist_ok=True)
    if os.path.exists(new):
        os.unlink(new)
    with short(new) as name_of_it:
        server.bind(name_of_it)
    os.chmod(new, 0o600)
    server.listen(64)
    os.rename(new, path)  # from here on it can be found, and somebody listens
    return server, path


def members(place: str) -> List[Member]:
    """The ranks that can be reached in a job's folder, in rank order. Leftovers are removed."""
    found = []
    for member, wire in reached(place):
        wire.close()
        found.append(member)
    return found


def reached(place: str) -> List[Tuple[Member, Wire]]:
    """The same, with a connection to each."""
    found = []
    try:
        names = os.listdir(place)
    except FileNotFoundError:
        names = []
    for name in names:
        parts = name.split(".")
        if len(parts) != 3 or not all(part.isdigit() for part in parts):
            continue
        path = os.path.join(place, name)
        wire = None if is_ending(int(parts[1]), parts[2]) else _reach(path)
        if wire is None:
            remove(path)
            continue
        found.append((Member(int(parts[0]), int(parts[1]), path), wire))
    return sorted(found, key=lambda row: (row[0].rank, row[0].pid))


def sweep() -> None:
    """Remove what killed ranks of other jobs have left."""
    for place in jobs():
        for name in os.listdir(place):
            _, _, process = name.lstrip(".").partition(".")
            pid, _, start = process.partition(".")
            path = os.path.join(place, name)
            if pid.isdigit() and started(int(pid)) != start and _reach(path) is None:
                remove(path)


def _reach(path: str) -> Optional[Wire]:
    try:
        return connect(path)
    except OSError:
        return None


def remove(path: str) -> None:
    """A socket, and its folder when it was the last one in it."""
    for undo, what in ((os.unlink, path), (os.rmdir, os.path.dirname(path))):
        try:
            undo(what)
        except OSError:
            return
