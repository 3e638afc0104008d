"""What a descriptor is open on, and which processes of this host have that open too (proc(5), proc_pid_fdinfo(5))."""

from __future__ import annotations

import os
import re
import time
from typing import Callable, Collection, Dict, List, Optional, Sequence, Set, Tuple

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.missing import Missing

SECONDS = 0.5  # of the processor, for looking into all processes of the host
MOST_FILES = 4096  # of one process
_MOST_PROCESSES = 8192
_LINK = re.compile(r"(pipe|socket):\[(\d+)\]\Z")
_EVENTFD, _QUEUE = "anon_inode:[eventfd]", re.compile(r"/[^/]+\Z")
_ACCESS = 3  # O_ACCMODE; 0: read only, 1: write only
_EVENTS, QUEUES = "eventfd ", "message queue "
INODE = "ino"  # Linux 5.14 and later

Holder = Tuple[int, int]
"""Pid and access mode."""


def file_of(proc: ProcFS, pid: int, name: str, kinds: Sequence[str] = (_EVENTS, QUEUES)) -> str:
    """What a descriptor is open on, where others may have it too: `pipe:[7]`, `socket:[8]`, `eventfd 9`, `message queue
    /a [10]`; the last two, which cost a read more, when asked for."""
    link = link_of(proc, pid, name)
    if link == _EVENTFD and _EVENTS in kinds:
        number = field("eventfd-id", read_fdinfo(proc, pid, name))  # Linux 5.2 and later
        return "" if number is None else f"{_EVENTS}{number}"
    if _QUEUE.match(link) and QUEUES in kinds:  # its file system has no folders, and its root is not shown
        number = field(INODE, read_fdinfo(proc, pid, name))
        return "" if number is None else f"{QUEUES}{link.partition(' (deleted)')[0]} [{number}]"
    return link if _LINK.match(link) else ""


def link_of(proc: ProcFS, pid: int, name: str) -> str:
    """The file or the words behind a descriptor of a process; "" where it is closed or may not be seen."""
    try:
        return os.readlink(f"{proc.root}/{pid}/fd/{name}")
    except OSError:
        return ""


def read_fdinfo(proc: ProcFS, pid: int, name: str) -> str:
    """What the kernel says of an open file; "" when it is refused."""
    text = proc.text(f"{pid}/fdinfo/{name}")
    return "" if isinstance(text, Missing) else text


def field(name: str, text: str, base: int = 10) -> Optional[int]:
    """A number that the kernel writes of an open file, as `ino: 4711`; None where it does not."""
    found = re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)
    return int(found[1], base) if found else None


def holders(proc: ProcFS, files: Set[str]) -> Tuple[Dict[str, List[Holder]], bool]:
    """Who has these files open, and whether every process could be looked into."""
    kinds = tuple(kind for kind in (_EVENTS, QUEUES) if any(file.startswith(kind) for file in files))
    found: Dict[str, List[Holder]] = {}

    def look(pid: int, name: str) -> None:
        file = file_of(proc, pid, name, kinds)
        if file in files:
            found.setdefault(file, []).append((pid, _access(proc, pid, name)))

    return found, each_descriptor(proc, look)


def holders_of_lock(
    proc: ProcFS, name: str, locked: Callable[[str], bool], but: Collection[Tuple[int, str]] = ()
) -> Tuple[List[int], bool]:
    """Who has a file of that name (in a container its folder may be another one) open with a lock on it, by what the
    kernel says of the descriptor; and whether every process could be looked into. `but`: descriptors that do not
    count."""
    found: List[int] = []

    def look(pid: int, fd: str) -> None:
        if (
            pid not in found
            and (pid, fd) not in but
            and opened_by_name(proc, pid, fd, name)
            and locked(read_fdinfo(proc, pid, fd))
        ):
            found.append(pid)

    return found, each_descriptor(proc, look)


def opened_by_name(proc: ProcFS, pid: int, fd: str, name: str) -> bool:
    """Whether a descriptor is open on a file of that name, in whatever folder."""
    return link_of(proc, pid, fd).endswith(f"/{name}")


def each_descriptor(proc: ProcFS, look: Callable[[int, str], None]) -> bool:
    """Every descriptor of every process; whether all could be looked into in time."""
    until = time.thread_time() + SECONDS
    whole = True
    for pid in proc.pids()[:_MOST_PROCESSES]:
        if time.thread_time() > until:
            return False
        try:
            names = os.listdir(f"{proc.root}/{pid}/fd")
        except FileNotFoundError:
            continue
        except OSError:
            whole = False
            continue
        whole = whole and len(names) <= MOST_FILES
        for name in names[:MOST_FILES]:
            look(pid, name)
    return whole


def descriptors(proc: ProcFS, pid: int) -> List[str]:
    """The numbers of the open files of a process; none where it may not be looked into."""
    try:
        return os.listdir(f"{proc.root}/{pid}/fd")[:MOST_FILES]
    except OSError:
        return []


def _access(proc: ProcFS, pid: int, name: str) -> int:
    flags = field("flags", read_fdinfo(proc, pid, name), base=8)
    return _ACCESS if flags is None else flags & _ACCESS


def states_and_names(proc: ProcFS, pids: Sequence[int]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """States and names of processes."""
    stats = [proc.stat(pid) for pid in pids]
    states = tuple("?" if isinstance(stat, Missing) else stat.state for stat in stats)
    return states, tuple("?" if isinstance(stat, Missing) else stat.comm for stat in stats)
