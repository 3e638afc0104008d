"""The child that a thread waits for to end: waitpid(2), waitid(2)."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.discovery.procfs import ProcFS
from gdbext.knowledge.system_calls import WAIT4, WAITID
from gdbext.model.locks import Peer
from gdbext.model.missing import Missing

_P_PID = 1
_MOST_PIDS = 1 << 22


def waited_child(proc: ProcFS, tid: int, call: Sequence[int]) -> Optional[Peer]:
    """The row of a thread that waits for one child; None where it waits for none or for any."""
    child = call[1] if call[0] == WAIT4 else call[2] if call[0] == WAITID and call[1] == _P_PID else 0
    if not 0 < child <= _MOST_PIDS:
        return None
    stat = proc.stat(child)
    state, name = ("?", "?") if isinstance(stat, Missing) else (stat.state, stat.comm)
    return Peer(tid, f"pid {child}", (child,), (state,), (name,))
