"""Who is at the other end of a pipe or socket that a thread waits for: by inode and port (proc(5), sock_diag(7)).

Children and file locks, whose other end the kernel names itself, are in file_locks.py and waited_children.py.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from dataclasses import replace
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union

from gdbext.discovery.proc.file_locks import holder, waits_for_lock
from gdbext.discovery.proc.listening import listening
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.proc.sockets import connections
from gdbext.discovery.proc.waited_children import waited_child, with_only_child
from gdbext.knowledge.runtimes import system_calls as known
from gdbext.model.codes import Code
from gdbext.model.locks import Peer
from gdbext.model.missing import Maybe, Missing

READS, WRITES = (
    {known.READ: "read", known.READV: "readv", known.RECVFROM: "recvfrom", known.RECVMSG: "recvmsg"},
    {known.WRITE: "write", known.WRITEV: "writev", known.SENDTO: "sendto", known.SENDMSG: "sendmsg"},
)
"""System calls whose first argument is the file that they wait for."""

SECONDS = 0.5  # of the processor, for looking into all processes of the host
_MOST_PROCESSES, _MOST_FILES, _MOST_WAITS = 8192, 4096, 64
_STEPS = 3  # a shell, what it runs, and what that runs
_LINK = re.compile(r"(pipe|socket):\[(\d+)\]\Z")
_EVENTFD = "anon_inode:[eventfd]"
_FOR_EVER = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
_ANY = ("0.0.0.0:0", "[::]:0")
_ACCESS = 3  # O_ACCMODE; 0: read only, 1: write only


class _End(NamedTuple):
    """What to look for in all processes: `pipe:[7]`, `socket:[8]` or `eventfd 9`, as `_file` names it."""

    file: str
    closed_to: Optional[int]  # an access mode that cannot be the other end's


class _Wait(NamedTuple):
    tid: int
    file: str
    end: Maybe[_End]


_Found = Union[_Wait, Peer]
Asleep = Callable[[int, int], Optional[Tuple[object, Sequence[int]]]]
"""Of a thread (pid, tid) that sleeps: what changes whenever it runs, and its system call
(capture/without_stop/sleeping_threads.py)."""


def waits_for(
    proc: ProcFS,
    pid: int,
    syscalls: Mapping[int, Optional[Sequence[int]]],
    asleep: Optional[Asleep] = None,
    seen: Tuple[int, ...] = (),
) -> Tuple[Peer, ...]:
    """One row for each thread of the process that waits in a read or write of a pipe or socket, or for a lock on a
    file, or for a child to end, at most 64. `asleep` tells what stands behind the other ends; `seen`: the
    processes on the way to this one."""
    waits: List[_Found] = []
    for tid, call in syscalls.items():
        found = _wait(proc, pid, tid, call) if call and len(waits) < _MOST_WAITS else None
        if found is not None:
            waits.append(found)
    wanted = {wait.end for wait in waits if isinstance(wait, _Wait) and isinstance(wait.end, _End)}
    holders, whole = _holders(proc, {end.file for end in wanted}) if wanted else ({}, True)
    peers = (wait if isinstance(wait, Peer) else _peer(proc, wait, holders, whole) for wait in waits)
    return tuple(replace(peer, then=_beyond(proc, pid, peer, asleep, (*seen, pid))) for peer in peers)


def _beyond(proc: ProcFS, pid: int, peer: Peer, asleep: Optional[Asleep], seen: Tuple[int, ...]) -> Tuple[Peer, ...]:
    """What the process at the other end waits for, where it is one and has one thread. The thread that waits must not
    have run while that was read: else each may be seen to wait, in turns."""
    pids = () if isinstance(peer.processes, Missing) else peer.processes
    if asleep is None or len(pids) != 1 or len(seen) > _STEPS or pids[0] in seen or len(proc.tasks(pids[0])) != 1:
        return ()
    before, other = asleep(pid, peer.thread), asleep(pids[0], pids[0])
    if before is None or other is None or before != asleep(pid, peer.thread):
        return ()
    return waits_for(proc, pids[0], {pids[0]: with_only_child(proc, pids[0], other[1])}, asleep, seen)


def _wait(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Optional[_Found]:
    number, descriptor = call[:2]
    if waits_for_lock(call):
        return _lock(proc, pid, tid, descriptor)
    child = waited_child(proc, tid, call)
    if child is not None:
        return child
    if number in (known.EPOLL_WAIT, known.EPOLL_PWAIT) and len(call) > 4 and call[4] in _FOR_EVER:
        return _own_events(proc, pid, tid, descriptor)
    if number not in READS and number not in WRITES:
        return None
    file = _file(proc, pid, str(descriptor), eventfds=True)
    if file.startswith("socket:"):
        return _socket(proc, pid, tid, file)
    if file.startswith("pipe:"):
        return _Wait(tid, file, _End(file, 0 if number in READS else 1))
    return _Wait(tid, file, _End(file, None)) if file else None


def _file(proc: ProcFS, pid: int, name: str, eventfds: bool) -> str:
    """What a descriptor is open on, where others may have it too; eventfds, which cost a read more, when asked for."""
    try:
        link = os.readlink(f"{proc.root}/{pid}/fd/{name}")
    except OSError:
        return ""
    if eventfds and link == _EVENTFD:
        number = re.search(r"^eventfd-id:\s*(\d+)", _about(proc, pid, name), re.MULTILINE)  # Linux 5.2 and later
        return f"eventfd {number[1]}" if number else ""
    return link if _LINK.match(link) else ""


def _own_events(proc: ProcFS, pid: int, tid: int, descriptor: int) -> Optional[_Wait]:
    """A wait for events without a time-out: for connections of anybody; or with one pair of sockets, whose other end
    wakes it up: then no event comes from outside unless another process has that end."""
    watched = re.findall(r"^tfd:\s*(\d+)", _about(proc, pid, str(descriptor)), re.MULTILINE)[:_MOST_FILES]
    files = [_file(proc, pid, one, eventfds=True) for one in watched]
    inodes = {int(file[len("socket:[") : -1]) for file in files if file.startswith("socket:")}
    open_to_all = listening(proc, pid, inodes)
    if open_to_all is not None:
        return _Wait(
            tid,
            f"{open_to_all}, listening",
            Missing("it listens: its other end is any client that connects", Code.ANYBODY),
        )
    if len(watched) != 1:
        return None
    file = files[0]
    if file.startswith("socket:"):
        found = _socket(proc, pid, tid, file)
        return found if isinstance(found.end, _End) and found.file.startswith("unix") else None
    return _Wait(tid, file, _End(file, None)) if file.startswith("eventfd") else None


def _about(proc: ProcFS, pid: int, name: str) -> str:
    text = proc.text(f"{pid}/fdinfo/{name}")
    return "" if isinstance(text, Missing) else text


# --- sockets ---


def _socket(proc: ProcFS, pid: int, tid: int, file: str) -> _Wait:
    inode = int(file[len("socket:[") : -1])
    rows = connections(proc, pid)
    own = next((ends for ends, found in rows.items() if found == inode), None)
    if own is not None:
        text = f"tcp {own[0]} - {own[1]}"
        other = rows.get((own[1], own[0]))
        if other == 0:  # nobody has taken the connection yet: whoever listens should
            port = own[1].rpartition(":")[2]
            listening = ((own[1], _ANY[0]), (f"0.0.0.0:{port}", _ANY[0]), (f"[::]:{port}", _ANY[1]))
            other = next((rows[key] for key in listening if key in rows), 0)
            text += ", not accepted yet"
        away = Missing("its other end is on another host, or in another network namespace")
        return _Wait(tid, text, _End(f"socket:[{other}]", None) if other else away)
    peer = _unix_peers().get(inode)
    text = f"unix {file}"
    return _Wait(
        tid, text, _End(f"socket:[{peer}]", None) if peer else Missing("the kernel does not name its other end")
    )


_SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, _DONE, _ERROR = 20, 0x301, 3, 2
_SHOW_PEER, _PEER = 4, 2  # UDIAG_SHOW_PEER, UNIX_DIAG_PEER (linux/unix_diag.h)
_HEADER = struct.Struct("=IHHII")


def _unix_peers() -> Dict[int, int]:
    """Inode of the other end by inode, of all connected Unix sockets of our network namespace; empty when refused."""
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW_PEER, 0xFFFFFFFF, 0xFFFFFFFF)
    peers: Dict[int, int] = {}
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 4) as link:  # NETLINK_SOCK_DIAG
            link.settimeout(SECONDS)
            head = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
            link.sendto(head + request, (0, 0))
            while _take(link.recv(1 << 18), peers):
                pass
    except OSError:
        pass
    return peers


def _take(data: bytes, peers: Dict[int, int]) -> bool:
    """Read one answer; False behind the last one."""
    at = 0
    while at + _HEADER.size <= len(data):
        size, kind = struct.unpack_from("=IH", data, at)
        if kind in (_DONE, _ERROR) or size < _HEADER.size:
            return False
        (inode,) = struct.unpack_from("=I", data, at + _HEADER.size + 4)
        attribute = at + _HEADER.size + 16
        while attribute + 8 <= at + size:
            length, name = struct.unpack_from("=HH", data, attribute)
            if name == _PEER:
                (peers[inode],) = struct.unpack_from("=I", data, attribute + 4)
            attribute += max(4, length + 3 & ~3)
        at += size + 3 & ~3
    return bool(data)


# --- who has it open ---

_Holder = Tuple[int, int]
"""Pid and access mode."""


def _holders(proc: ProcFS, files: Set[str]) -> Tuple[Dict[str, List[_Holder]], bool]:
    """Who has these files open, and whether every process could be looked into."""
    until = time.thread_time() + SECONDS
    eventfds = any(file.startswith("eventfd") for file in files)
    found: Dict[str, List[_Holder]] = {}
    whole = True
    for pid in proc.pids()[:_MOST_PROCESSES]:
        if time.thread_time() > until:
            return found, False
        folder = f"{proc.root}/{pid}/fd"
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            whole = False
            continue
        whole = whole and len(names) <= _MOST_FILES
        for name in names[:_MOST_FILES]:
            file = _file(proc, pid, name, eventfds)
            if file in files:
                found.setdefault(file, []).append((pid, _access(proc, pid, name)))
    return found, whole


def _access(proc: ProcFS, pid: int, name: str) -> int:
    flags = re.search(r"^flags:\s*([0-7]+)", _about(proc, pid, name), re.MULTILINE)
    return int(flags[1], 8) & _ACCESS if flags else _ACCESS


def _peer(proc: ProcFS, wait: _Wait, holders: Mapping[str, Sequence[_Holder]], whole: bool) -> Peer:
    if isinstance(wait.end, Missing):
        return Peer(thread=wait.tid, file=wait.file, processes=wait.end)
    pids = sorted({pid for pid, access in holders.get(wait.end.file, ()) if access != wait.end.closed_to})
    if not pids and not whole:
        return Peer(
            thread=wait.tid, file=wait.file, processes=Missing("some processes of this host may not be inspected")
        )
    return Peer(wait.tid, wait.file, tuple(pids), *_looks(proc, pids))


def _looks(proc: ProcFS, pids: Sequence[int]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """States and names."""
    stats = [proc.stat(pid) for pid in pids]
    states = tuple("?" if isinstance(stat, Missing) else stat.state for stat in stats)
    return states, tuple("?" if isinstance(stat, Missing) else stat.comm for stat in stats)


# --- locks on files ---


def _lock(proc: ProcFS, pid: int, tid: int, descriptor: int) -> Peer:
    try:
        file = os.readlink(f"{proc.root}/{pid}/fd/{descriptor}")
    except OSError:
        file = f"file descriptor {descriptor}"
    about = _about(proc, pid, str(descriptor))
    inode = re.search(r"^ino:\s*(\d+)", about, re.MULTILINE)  # Linux 5.14 and later
    found = holder(proc, pid, int(inode[1]) if inode else None, _device(proc, pid, about))
    if isinstance(found, Missing):
        return Peer(thread=tid, file=file, processes=found, lock=True)
    return Peer(tid, file, (found,), *_looks(proc, [found]), lock=True)


def _device(proc: ProcFS, pid: int, about: str) -> str:
    """Of the file system of an open file, as /proc/locks writes it; "" where that is not known."""
    mount = re.search(r"^mnt_id:\s*(\d+)", about, re.MULTILINE)
    mounts = proc.text(f"{pid}/mountinfo")
    if mount is None or isinstance(mounts, Missing):
        return ""
    found = re.search(rf"^{mount[1]} \d+ (\d+):(\d+) ", mounts, re.MULTILINE)
    return f"{int(found[1]):02x}:{int(found[2]):02x}" if found else ""
