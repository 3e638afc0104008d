"""The child that a thread waits for to end: waitpid(2), waitid(2); or to begin its own program: vfork(2)."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.system_calls import CLONE, CLONE3, VFORK, WAIT4, WAITID
from gdbext.model.locks import Peer, file_of_child
from gdbext.model.missing import Missing

_P_PID = 1
_INT = 0xFFFFFFFF  # -1 as an int: any child
_MOST_PIDS = 1 << 22
_STARTS = (CLONE, VFORK, CLONE3)  # of them a thread sleeps only in one like vfork(2), until the child's exec or end


def waited_child(proc: ProcFS, tid: int, call: Sequence[int]) -> Optional[Peer]:
    """The row of a thread that waits for one child; None where it waits for none or for any."""
    child = call[1] if call[0] == WAIT4 else call[2] if call[0] == WAITID and call[1] == _P_PID else 0
    if not 0 < child <= _MOST_PIDS:
        return None
    stat = proc.stat(child)
    state, name = ("?", "?") if isinstance(stat, Missing) else (stat.state, stat.comm)
    return Peer(thread=tid, file=file_of_child(child), processes=(child,), states=(state,), names=(name,))


def started_child(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Sequence[int]:
    """A call that starts a child, as posix_spawn(3) makes it, as a wait for the one child of this thread; any other
    call as it is."""
    return _for_child(proc, pid, tid, call) if call[0] in _STARTS else call


def with_only_child(proc: ProcFS, pid: int, call: Sequence[int]) -> Sequence[int]:
    """A wait for any child, as a shell makes it, of a process with one thread: for the one child that there is."""
    if not (call[0] == WAIT4 and call[1] & _INT == _INT):
        return call
    return _for_child(proc, pid, pid, call)


def _for_child(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Sequence[int]:
    children = proc.text(f"{pid}/task/{tid}/children")
    own = [] if isinstance(children, Missing) else children.split()
    return [WAIT4, int(own[0]), *call[2:]] if len(own) == 1 else call
