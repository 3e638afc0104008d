"""What an event loop watches, and what it leaves unread, by what the kernel says of its epoll (proc_pid_fdinfo(5))."""

from __future__ import annotations

import re
from typing import Dict, List, Sequence, Tuple

from gdbext.discovery.locks_pipes_sockets.listening import listening
from gdbext.discovery.locks_pipes_sockets.open_files import MOST_FILES, descriptors, file_of, read_fdinfo
from gdbext.discovery.locks_pipes_sockets.sockets import unix_sockets
from gdbext.discovery.proc.procfs import ProcFS

_WATCHED = re.compile(r"^tfd:\s*(\d+)\s+events:\s*([0-9a-f]+)", re.MULTILINE)
_TO_READ, _TO_WRITE = 0x1, 0x4  # EPOLLIN, EPOLLOUT (sys/epoll.h)


def watched(proc: ProcFS, pid: int, descriptor: str) -> List[Tuple[str, int]]:
    """The descriptors that an epoll watches, and for which events; nothing of another file."""
    found = _WATCHED.findall(read_fdinfo(proc, pid, descriptor))[:MOST_FILES]
    return [(number, int(events, 16)) for number, events in found]


def leaves_unread(proc: ProcFS, pid: int, file: str) -> bool:
    """Whether a process has event loops, none of which asks whether there is something to read in this file, and
    nothing but a new client or the process itself can change that: it watches no other connection, and waits for no
    room to write."""
    names = descriptors(proc, pid)
    loops = [seen for seen in (watched(proc, pid, name) for name in names) if seen]
    if not loops:
        return False
    files: Dict[str, List[int]] = {}
    for name, events in (one for seen in loops for one in seen):
        files.setdefault(file_of(proc, pid, name), []).append(events)
    if any(events & _TO_WRITE for some in files.values() for events in some):
        return False
    asked = {name for name, some in files.items() if any(events & _TO_READ for events in some)}
    sockets = {int(one[len("socket:[") : -1]) for one in asked if one.startswith("socket:")}
    clients = {f"socket:[{inode}]" for inode in listening(proc, pid, sockets)}
    return file not in asked and all(one in clients or wakes_itself(proc, pid, one) for one in asked)


def wakes_itself(proc: ProcFS, pid: int, file: str) -> bool:
    """Whether it is there for the process to wake up its own loop: an eventfd, both ends of a pair of sockets, or of a
    pipe."""
    if file.startswith("eventfd"):
        return True
    if file.startswith("pipe:"):
        return sum(file_of(proc, pid, name, ()) == file for name in descriptors(proc, pid)) > 1
    peer = unix_sockets().peers.get(int(file[len("socket:[") : -1])) if file.startswith("socket:") else None
    return bool(peer) and any(file_of(proc, pid, name, ()) == f"socket:[{peer}]" for name in descriptors(proc, pid))


def only_wake_ups(proc: ProcFS, pid: int, files: Sequence[str]) -> bool:
    """Whether a loop watches nothing but what wakes it up: one such file, or what libuv has, with a pipe and an eventfd
    among them. Another eventfd may be that of a library whose own thread takes messages, as ZeroMQ's does."""
    events = [file for file in files if file.startswith("eventfd")]
    of_libuv = len(events) == 1 and any(file.startswith("pipe:") for file in files)
    if len(files) > 1 and events and not of_libuv:
        return False
    return all(wakes_itself(proc, pid, file) for file in files)
