"""Which lock each thread of the copied ranks waits for and who holds it, by the memory of the stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Mapping, Sequence

from gdbext.capture import futexes, locks, stop, surroundings
from gdbext.capture.memory import ProcessMemory
from gdbext.capture.variables import variable_in
from gdbext.discovery.peers import waits_for
from gdbext.discovery.procfs import ProcFS
from gdbext.frontend.live_rank import LiveRank
from gdbext.model.mangled import qualified_name
from gdbext.model.missing import Missing


def name_locks(proc: ProcFS, ranks: Sequence[LiveRank]) -> None:
    """Fill in `locks`, `peers` and `handlers`: by the futexes, and by the names of the frames."""
    ids = {rank.pid: _thread_ids(rank) for rank in ranks}
    files = surroundings.SharedFiles({rank.pid: rank.copy.maps for rank in ranks if rank.copy is not None})
    for rank in ranks:
        assert rank.copy is not None
        others = {tid: (pid, lwp) for pid, one in ids.items() if pid != rank.pid for tid, lwp in one.lwps.items()}
        around = replace(_surroundings(proc, rank, ids[rank.pid]), others=others, sharers=files.with_process(rank.pid))
        rank.locks = locks.resolve(_waits(rank.copy), rank.stacks, around)
        rank.handlers = proc.handlers(rank.pid)
        rank.peers = waits_for(proc, rank.pid, _lasting_calls(rank))
        if rank.second is not None and rank.second.state != "lost":
            rank.locks = locks.still(rank.locks, locks.resolve(_waits(rank.second), rank.stacks, around))


def _waits(copy: stop.ProcessCopy) -> Mapping[int, futexes.FutexCall]:
    """What the stop itself proves: the wait was there when the memory was read."""
    waits: Dict[int, futexes.FutexCall] = {}
    for held in copy.during or ():
        found = held.waits.filled(held.pages)
        waits.update({tid: call for tid, call in found.items() if held.tids is None or tid in held.tids})
    return futexes.confirmed(waits, {thread.tid: thread.registers for thread in copy.threads})


def _lasting_calls(rank: LiveRank) -> Mapping[int, Sequence[int]]:
    """The system calls of its threads, those that a second copy showed too where there is one."""
    calls = {stack.lwp: stack.syscall for stack in rank.stacks if stack.lwp and stack.syscall}
    if rank.second is None:
        return calls
    later = {thread.tid: futexes.syscall_of(thread.registers) for thread in rank.second.threads}
    return {tid: call for tid, call in calls.items() if (later.get(tid) or ())[:2] == call[:2]}


def _thread_ids(rank: LiveRank) -> futexes.ThreadIds:
    assert rank.copy is not None
    registers = {thread.tid: thread.registers for thread in rank.copy.threads}
    return futexes.thread_ids(registers, ProcessMemory(rank.pid).read_many)


def _surroundings(proc: ProcFS, rank: LiveRank, ids: futexes.ThreadIds) -> surroundings.Surroundings:
    assert rank.copy is not None
    stat = proc.stat(rank.pid)
    parent = None if isinstance(stat, Missing) else stat.parent
    return surroundings.Surroundings(
        ids.lwps,
        ids.words,
        set(ids.lwps.values()) >= {thread.tid for thread in rank.copy.threads} | set(rank.times),
        surroundings.place_in(rank.copy.maps),
        variable_in(rank.copy.maps, f"{proc.root}/{rank.pid}/root", qualified_name),
        surroundings.shared_in(rank.copy.maps),
        exists=surroundings.exists_beside(ids.lwps, proc.root),
        parent=parent,
        parents_threads=frozenset(proc.tasks(parent) if parent else ()),
    )
