"""Who holds the lock on a file that a thread waits for: flock(2), and fcntl(2) with F_SETLKW (proc_locks(5)).

The kernel names no owner of a lock that belongs to an open file; who has that file open holds it
(proc_pid_fdinfo(5)).
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, Match, Optional, Sequence, Tuple

from gdbext.discovery.locks_pipes_sockets.open_files import (
    INODE,
    descriptors,
    field,
    holders_of_lock,
    link_of,
    read_fdinfo,
    states_and_names,
)
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.system_calls import FCNTL, FLOCK
from gdbext.knowledge.runtimes.tried_locks import SQLITE_COMMITS, SQLITE_READS, SQLITE_WRITES
from gdbext.model.locks import Peer
from gdbext.model.missing import Maybe, Missing

_WAITING = (7, 38)  # F_SETLKW, F_OFD_SETLKW
_AT_ONCE = 4  # LOCK_NB

# `3: -> POSIX  ADVISORY  WRITE 4711 08:01:77 0 EOF`; pids are of the namespace of whoever reads
_LINE = re.compile(
    r"(?P<number>\d+): (?P<waits> *-> )?(?:POSIX|FLOCK|OFDLCK) +\S+ +\S+ +(?P<pid>-?\d+) "
    r"(?P<device>\S+):(?P<inode>\d+) (?P<range>\d+ \S+)"
)
_WHOLE = "0 EOF"
_OF_FILE, _ELSEWHERE = -1, 0
_SLEEPS_IN = ("lock", "setlk", "ptrace")  # locks_lock_inode_wait, fcntl_setlk; ptrace_stop


def waits_for_lock(call: Sequence[int]) -> bool:
    """Whether a system call (its number and arguments) waits for a lock on a file."""
    number, _descriptor, command = call[:3]
    return (number == FLOCK and not command & _AT_ONCE) or (number == FCNTL and command in _WAITING)


def lock_wait(proc: ProcFS, pid: int, tid: int, descriptor: int, flock: bool) -> Peer:
    """The row of a thread that waits for a lock on the file of a descriptor, in flock(2) or in fcntl(2)."""
    file = link_of(proc, pid, str(descriptor)) or f"file descriptor {descriptor}"
    text = read_fdinfo(proc, pid, str(descriptor))
    number, device = field(INODE, text), _device(proc, pid, text)
    row, own = _row(proc, pid, number, device), (pid, str(descriptor))
    if isinstance(row, Missing):  # in a PID namespace the list leaves out locks whose taker is not visible or has ended
        kind = "FLOCK" if flock else "OFDLCK"
        openers = _openers(proc, file, kind, device, number, own) if number and device else ()
        found: Maybe[Tuple[int, ...]] = openers or row
    else:
        found = _owners(proc, file, row, own)
    if not isinstance(found, Missing) and not _is_in(proc, pid, tid):
        found = Missing("it has got the lock")
    if isinstance(found, Missing):
        return Peer(thread=tid, file=file, processes=found, lock=True)
    return Peer(tid, file, found, *states_and_names(proc, found), lock=True)


def _device(proc: ProcFS, pid: int, text: str) -> str:
    """Of the file system of an open file, as /proc/locks writes it; "" where that is not known."""
    mount = field("mnt_id", text)
    mounts = proc.text(f"{pid}/mountinfo")
    if mount is None or isinstance(mounts, Missing):
        return ""
    found = re.search(rf"^{mount} \d+ (\d+):(\d+) ", mounts, re.MULTILINE)
    return f"{int(found[1]):02x}:{int(found[2]):02x}" if found else ""


def _is_in(proc: ProcFS, pid: int, tid: int) -> bool:
    """Whether a thread is still in the wait, or a debugger keeps it."""
    text = proc.text(f"{pid}/task/{tid}/wchan")
    return isinstance(text, Missing) or not text or any(word in text for word in _SLEEPS_IN)


def _owners(proc: ProcFS, file: str, row: Match[str], waiter: Tuple[int, str]) -> Maybe[Tuple[int, ...]]:
    """The process that the kernel names; of a lock that belongs to an open file, all that have it open, but for the
    descriptor that waits: an open file that has a read lock may want a write lock."""
    found = _known(proc, int(row["pid"]))
    if not isinstance(found, Missing):
        return (found,)
    if int(row["pid"]) == _ELSEWHERE:
        return found
    return _openers(proc, file, "(FLOCK|OFDLCK)", row["device"], int(row["inode"]), waiter) or found


def _openers(proc: ProcFS, file: str, kind: str, device: str, inode: int, waiter: Tuple[int, str]) -> Tuple[int, ...]:
    """Who has the file open with a lock on it that belongs to the open file; nobody where not all could be seen."""
    line = re.compile(rf"^lock:.* {kind} .* {re.escape(device)}:{inode} ", re.MULTILINE)
    pids, whole = holders_of_lock(proc, os.path.basename(file), lambda text: line.search(text) is not None, {waiter})
    return tuple(pids) if whole else ()


def holder(proc: ProcFS, pid: int, inode: Optional[int], device: str = "") -> Maybe[int]:
    """The process that holds the lock on the file (any file where `inode` is None) that process `pid` waits for."""
    row = _row(proc, pid, inode, device)
    return row if isinstance(row, Missing) else _known(proc, int(row["pid"]))


def _row(proc: ProcFS, pid: int, inode: Optional[int], device: str) -> Maybe[Match[str]]:
    """The lock that is held, in the kernel's list.

    A thread that a debugger has stopped is not in the kernel's queue meanwhile: then it is the one of the whole file,
    by its `device` (`08:01`) and inode.
    """
    text = proc.text("locks")
    if isinstance(text, Missing):
        return text
    held: Optional[Match[str]] = None
    has: List[Match[str]] = []
    for line in text.splitlines():
        row = _LINE.match(line)
        if row is None:
            held = None
        elif row["waits"] is None:
            held = row
            has += [row] * ((row["device"], int(row["inode"])) == (device, inode))
        elif held is not None and _is_of(row, pid, inode, device):
            return held
    if len(has) == 1 and has[0]["range"] == _WHOLE and int(has[0]["pid"]) != pid:
        return has[0]
    return Missing("the kernel lists no waiter for it")


def _is_of(row: Match[str], pid: int, inode: Optional[int], device: str) -> bool:
    """Whether a row is the wait of a process; of a lock that belongs to an open file the kernel tells only the file."""
    if int(row["pid"]) == _OF_FILE:
        return (row["device"], int(row["inode"])) == (device, inode)
    return int(row["pid"]) == pid and inode in (None, int(row["inode"]))


def locked_by_sqlite(proc: ProcFS, pid: int) -> Dict[str, Tuple[int, ...]]:
    """Of the files that a process has open those on which locks of SQLite keep it waiting, and the processes that have
    these: who writes; where the process itself commits, who reads; else another connection of its own."""
    text = proc.text("locks")
    held: Dict[int, List[Match[str]]] = {}
    for row in () if isinstance(text, Missing) else filter(None, map(_LINE.match, text.splitlines())):
        if row["waits"] is None and (_is_within(row, "WRITE", SQLITE_WRITES) or _is_within(row, "READ", SQLITE_READS)):
            held.setdefault(int(row["inode"]), []).append(row)
    found: Dict[str, Tuple[int, ...]] = {}
    for descriptor in descriptors(proc, pid) if held else ():
        info = read_fdinfo(proc, pid, descriptor)
        rows = held.get(field(INODE, info) or 0, [])
        device = _device(proc, pid, info) if rows else ""
        rows = [row for row in rows if row["device"] == device]
        commits = any((int(row["pid"]), row["range"].split()[0]) == (pid, str(SQLITE_COMMITS)) for row in rows)
        blocking = {int(row["pid"]) for row in rows if commits or " WRITE " in row[0]}
        others = blocking - {pid, _OF_FILE, _ELSEWHERE}
        if others or (blocking == {pid} and not commits):
            found[link_of(proc, pid, descriptor)] = tuple(sorted(others or blocking))
    return found


def _is_within(row: Match[str], kind: str, ranges: Sequence[Tuple[int, int]]) -> bool:
    first, _, last = row["range"].partition(" ")
    bounded = f" {kind} " in row[0] and last.isdigit()
    return bounded and any(start <= int(first) and int(last) <= end for start, end in ranges)


def _known(proc: ProcFS, pid: int) -> Maybe[int]:
    if pid == _OF_FILE:
        return Missing("it belongs to an open file, and the kernel does not report the owner")
    if pid == _ELSEWHERE:
        return Missing("its holder is in another PID namespace")
    if not proc.exists(pid):
        return Missing(f"pid {pid} took it and has ended; another process has the open file")
    return pid
