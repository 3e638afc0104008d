"""Who holds the lock on a file that a thread waits for: flock(2), and fcntl(2) with F_SETLKW (proc_locks(5))."""

from __future__ import annotations

import re
from typing import List, Match, Optional, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.system_calls import FCNTL, FLOCK
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


def waits_for_lock(call: Sequence[int]) -> bool:
    """Whether a system call (its number and arguments) waits for a lock on a file."""
    number, _descriptor, command = call[:3]
    return (number == FLOCK and not command & _AT_ONCE) or (number == FCNTL and command in _WAITING)


def holder(proc: ProcFS, pid: int, inode: Optional[int], device: str = "") -> Maybe[int]:
    """The process that holds the lock on the file (any file where `inode` is None) that process `pid` waits for.

    A thread that a debugger has stopped is not in the kernel's queue meanwhile: then it is the one that has the whole
    file, by its `device` (`08:01`) and inode.
    """
    text = proc.text("locks")
    if isinstance(text, Missing):
        return text
    held: Optional[int] = None
    has: List[Match[str]] = []
    for line in text.splitlines():
        row = _LINE.match(line)
        if row is None:
            held = None
        elif row["waits"] is None:
            held = int(row["pid"])
            has += [row] * ((row["device"], int(row["inode"])) == (device, inode))
        elif int(row["pid"]) == pid and inode in (None, int(row["inode"])) and held is not None:
            return _known(proc, held)
    if len(has) == 1 and has[0]["range"] == _WHOLE and int(has[0]["pid"]) != pid:
        return _known(proc, int(has[0]["pid"]))
    return Missing("the kernel lists no waiter for it")


def _known(proc: ProcFS, pid: int) -> Maybe[int]:
    if pid == _OF_FILE:
        return Missing("it belongs to an open file, and the kernel does not report the owner")
    if pid == _ELSEWHERE:
        return Missing("its holder is in another PID namespace")
    if not proc.exists(pid):
        return Missing(f"pid {pid} took it and has ended; another process has the open file")
    return pid
