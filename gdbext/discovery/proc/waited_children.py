"""The child that a thread waits for to end: waitpid(2), waitid(2); or to begin its own program: vfork(2)."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.runtimes.system_calls import CLONE, CLONE3, VFORK, WAIT4, WAITID
from gdbext.model.locks import Peer, file_of_children
from gdbext.model.missing import Missing

_P_PID = 1
_INT = 0xFFFFFFFF  # -1 as an int: any child
_MOST_PIDS = 1 << 22
_NO_MORE = {"Z", "X", "?"}
_MOST_CHILDREN, _MOST_THREADS = 8, 256
_STARTS = (CLONE, VFORK, CLONE3)  # of them a thread sleeps only in one like vfork(2), until the child's exec or end


def waited_child(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Optional[Peer]:
    """The row of a thread that waits for a child, or for any one of a few that all live; else None."""
    if _waits_for_any(call):
        return _any_child(proc, pid, tid)
    return ends(proc, tid, call[1] if call[0] == WAIT4 else call[2] if call[0] == WAITID and call[1] == _P_PID else 0)


def ends(proc: ProcFS, tid: int, child: int) -> Optional[Peer]:
    """The row of a thread that waits for the end of this process; None where that is no pid."""
    if not 0 < child <= _MOST_PIDS:
        return None
    return _row(proc, tid, (child,))


def _row(proc: ProcFS, tid: int, children: Sequence[int]) -> Peer:
    stats = [proc.stat(child) for child in children]
    seen = [("?", "?") if isinstance(stat, Missing) else (stat.state, stat.comm) for stat in stats]
    states, names = tuple(state for state, _ in seen), tuple(name for _, name in seen)
    return Peer(thread=tid, file=file_of_children(children), processes=tuple(children), states=states, names=names)


def started_child(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Sequence[int]:
    """A call that starts a child, as posix_spawn(3) makes it, as a wait for the one child of this thread; any other
    call as it is."""
    return _for_child(proc, pid, tid, call) if call[0] in _STARTS else call


def with_only_child(proc: ProcFS, pid: int, call: Sequence[int]) -> Sequence[int]:
    """A wait for any child, as a shell makes it, of a process with one thread: for the one child that there is."""
    return _for_child(proc, pid, pid, call) if _waits_for_any(call) else call


def _waits_for_any(call: Sequence[int]) -> bool:
    return call[0] == WAIT4 and call[1] & _INT == _INT


def _any_child(proc: ProcFS, pid: int, tid: int) -> Optional[Peer]:
    texts = [proc.text(f"{pid}/task/{task}/children") for task in proc.tasks(pid)[:_MOST_THREADS]]
    children = sorted(int(one) for text in texts if not isinstance(text, Missing) for one in text.split())
    if not 0 < len(children) <= _MOST_CHILDREN:
        return None
    row = _row(proc, tid, children)
    return None if _NO_MORE.intersection(row.states) else row


def _for_child(proc: ProcFS, pid: int, tid: int, call: Sequence[int]) -> Sequence[int]:
    children = proc.text(f"{pid}/task/{tid}/children")
    own = [] if isinstance(children, Missing) else children.split()
    return [WAIT4, int(own[0]), *call[2:]] if len(own) == 1 else call
