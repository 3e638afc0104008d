"""The child that a thread waits for to end: waitpid(2), waitid(2)."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.system_calls import WAIT4, WAITID
from gdbext.model.locks import Peer, file_of_child
from gdbext.model.missing import Missing

_P_PID = 1
_INT = 0xFFFFFFFF  # -1 as an int: any child
_MOST_PIDS = 1 << 22


def waited_child(proc: ProcFS, tid: int, call: Sequence[int]) -> Optional[Peer]:
    """The row of a thread that waits for one child; None where it waits for none or for any."""
    child = call[1] if call[0] == WAIT4 else call[2] if call[0] == WAITID and call[1] == _P_PID else 0
    if not 0 < child <= _MOST_PIDS:
        return None
    stat = proc.stat(child)
    state, name = ("?", "?") if isinstance(stat, Missing) else (stat.state, stat.comm)
    return Peer(thread=tid, file=file_of_child(child), processes=(child,), states=(state,), names=(name,))


def with_only_child(proc: ProcFS, pid: int, call: Sequence[int]) -> Sequence[int]:
    """A wait for any child, as a shell makes it, of a process with one thread: for the one child that there is."""
    if not (call[0] == WAIT4 and call[1] & _INT == _INT):
        return call
    children = proc.text(f"{pid}/task/{pid}/children")
    own = [] if isinstance(children, Missing) else children.split()
    return [WAIT4, int(own[0]), *call[2:]] if len(own) == 1 else call
