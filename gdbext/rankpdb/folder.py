"""Where the ranks of a job meet on this host: a private folder with one socket of each rank that uses breakpoints.

Several places may hold such a folder, and another user may take the name in /tmp before we do. So a rank makes its
socket in the first place that is its user's alone, and a rank or a terminal that looks for others looks in all of them.
The places follow from the user id, not from the environment: so both sides agree, also by sudo and ssh.

A socket is named RANK.PID.START (START: clock ticks after boot). One at which nobody listens is the leftover of a
killed rank; whoever finds it removes it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
from dataclasses import dataclass
from typing import List, Optional, Tuple

from gdbext.rankpdb.identity import integer_or_none, is_ending, start_time
from gdbext.rankpdb.wire import Wire, connect, short_path

VARIABLE = "GDBEXT_PDB_DIR"
"""Names another place, the only one then, for all ranks and for the terminal."""
_RUNTIME = "/run/user"
"""Of login sessions: what $XDG_RUNTIME_DIR names. It ends with the last session, see `Station`."""
_TEMPORARY = "/tmp"  # noqa: S108 - what is found there is checked
_TRIES = 20  # another rank may remove an empty folder between its making and its use


@dataclass(frozen=True)
class Member:
    """A rank of a job on this host that has come to a breakpoint at least once."""

    rank: int
    pid: int
    path: str


def folders(owner: Optional[int] = None, root: str = "", named: Optional[str] = None) -> List[str]:
    """The folders of a user in which there may be ranks, best first: those that exist and are that user's alone.

    `root`: of the processes of a container, inside of which the user may have another number. `named`: by the VARIABLE
    of those processes.
    """
    if owner is None:
        owner, named = os.geteuid(), os.environ.get(VARIABLE)
    runtime, temporary = root + _RUNTIME, root + _TEMPORARY
    if named:
        found = [root + named]
    elif root:
        found = [f"{runtime}/{name}/gdbext" for name in _names(runtime)]
        found += [f"{temporary}/{name}" for name in _names(temporary) if name.startswith("gdbext-")]
    else:
        usual = f"gdbext-{owner}"
        names = [name for name in _names(temporary) if name == usual or name.startswith(f"{usual}.")]
        found = [f"{runtime}/{owner}/gdbext", *(f"{temporary}/{name}" for name in names)]
    return [path for path in found if _is_private(path, owner)]


def folder_problem() -> Optional[str]:
    """What is wrong with the usual name in /tmp, where another user may be faster than we are; `None`: nothing."""
    path = _usual()
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a folder"
    if found.st_uid != os.geteuid():
        return f"{path} belongs to user {found.st_uid}"
    return f"{path} is open to other users" if found.st_mode & 0o077 else None


def socket_folder_note(path: str) -> Optional[str]:
    """What to say of a socket that could not be made in a folder with the usual name."""
    top, problem = os.path.dirname(os.path.dirname(path)), folder_problem()
    if problem is None or os.environ.get(VARIABLE) or top.startswith(_RUNTIME):
        return None
    return f"{problem}: breakpoints use {top}, where `gdbext pdb` finds them; remove the other, or set {VARIABLE}"


def jobs() -> List[str]:
    """The folders of all jobs of this user."""
    return [place for top in folders() for place in jobs_in(top)]


def jobs_in(top: str) -> List[str]:
    """Those of one folder."""
    return [os.path.join(top, name) for name in _names(top) if name.startswith("pdb-")]


def listen(job: str, rank: int) -> Tuple[socket.socket, str]:
    """A socket at which this process can be reached, and its path: nobody but this user can connect. Raises OSError;
    PermissionError when the folder that the VARIABLE names is open to others."""
    name = f"{rank}.{os.getpid()}.{start_time(os.getpid())}"
    for left in reversed(range(_TRIES)):
        try:
            return _listen(os.path.join(_own(), f"pdb-{job}"), name)
        except FileNotFoundError:  # another rank has just left, and took the empty folder with it
            if not left:
                raise
    raise AssertionError


def _listen(place: str, name: str) -> Tuple[socket.socket, str]:
    path, new = os.path.join(place, name), os.path.join(place, f".{name}")
    os.makedirs(place, 0o700, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(new) as name_of_it:
            server.bind(name_of_it)
        os.chmod(new, 0o600)
        server.listen(64)
        os.rename(new, path)  # from here on it can be found, and somebody listens
    except BaseException:
        server.close()
        raise
    return server, path


def _own() -> str:
    """The folder for the socket of this process, made where it is missing."""
    owner, named = os.geteuid(), os.environ.get(VARIABLE)
    if named:
        os.makedirs(named, 0o700, exist_ok=True)
        if not _is_private(named, owner):
            raise PermissionError(f"{named} is not a folder of this user alone; remove it, or set {VARIABLE}")
        return named
    runtime = f"{_RUNTIME}/{owner}"
    for path in (f"{runtime}/gdbext", _usual()) if _is_private(runtime, owner) else (_usual(),):
        with contextlib.suppress(OSError):
            os.mkdir(path, 0o700)
        if _is_private(path, owner):
            return path
    found = folders()
    return found[0] if found else tempfile.mkdtemp(prefix=f"gdbext-{owner}.", dir=_TEMPORARY)


def _usual() -> str:
    return f"{_TEMPORARY}/gdbext-{os.geteuid()}"


def _is_private(path: str, owner: int) -> bool:
    """Whether it is a folder, and that user's alone."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o077


def _names(path: str) -> List[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


# --- the ranks in a job's folder ---


def has_socket(place: str, pid: str) -> bool:
    """Whether there is a socket of this process, by the number that it has itself."""
    return any(name.split(".")[1:2] == [pid] for name in _names(place))


def members(place: str) -> List[Member]:
    """The ranks that can be reached in a job's folder, in rank order. Leftovers are removed."""
    found = []
    for member, wire in connect_all(place):
        wire.close()
        found.append(member)
    return found


def connect_all(place: str) -> List[Tuple[Member, Wire]]:
    """The same, with a connection to each."""
    found = []
    for name in _names(place):
        parts = name.split(".")
        if len(parts) != 3 or not all(integer_or_none(part) is not None for part in parts):
            continue
        path = os.path.join(place, name)
        wire = None if is_ending(int(parts[1]), parts[2]) else _reach(path)
        if wire is None:
            remove(path)
            continue
        found.append((Member(int(parts[0]), int(parts[1]), path), wire))
    return sorted(found, key=lambda row: (row[0].rank, row[0].pid))


def remove_stale_sockets() -> None:
    """Remove what killed ranks of other jobs have left."""
    for place in jobs():
        for name in _names(place):
            _, _, process = name.lstrip(".").partition(".")
            pid, _, start = process.partition(".")
            path = os.path.join(place, name)
            if integer_or_none(pid) and start_time(int(pid)) != start and _reach(path) is None:
                remove(path)


def _reach(path: str) -> Optional[Wire]:
    try:
        return connect(path)
    except OSError:
        return None


def remove(path: str) -> None:
    """A socket of this user, and the folders in which it was the last one."""
    place = os.path.dirname(path)
    try:
        if os.lstat(place).st_uid == os.geteuid():  # not what another user may have put there for us to remove
            os.unlink(path)
            os.rmdir(place)
            if not os.environ.get(VARIABLE):
                os.rmdir(os.path.dirname(place))
    except OSError:
        return
