"""Which lock each thread of the copied ranks waits for and who holds it, by the memory of the stop."""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Callable, Dict, Mapping, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.locks_in_memory import futexes, lock_context, mutex_owners, process_locks, python_rlocks
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.symbols.global_variables import variable_in
from gdbext.capture.without_stop.polled_file import calls_for_files
from gdbext.capture.without_stop.sleeping_threads import asleep_in
from gdbext.collect.one_rank import LiveRank
from gdbext.discovery.locks_pipes_sockets.locks_tried_again import tried_locks
from gdbext.discovery.locks_pipes_sockets.peers import waits_for
from gdbext.discovery.locks_pipes_sockets.shared_mappings import Mapped, SharedMemory
from gdbext.discovery.locks_pipes_sockets.waiting_clients import waiting_clients
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import ReadState
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.text.mangled import qualified_name


class Neighbours:
    """All ranks that were copied: a lock in shared memory may be owned by a thread of another one."""

    def __init__(self, proc: ProcFS, ranks: Sequence[LiveRank], job: AbstractSet[int] = frozenset()) -> None:
        """`job`: the pids of all processes of the job, also of those that were not copied."""
        self.proc = proc
        self._clients = waiting_clients(proc, job)
        self._memory = SharedMemory(proc)
        self._ids = {rank.pid: _thread_ids(rank) for rank in ranks}
        self._searched = {rank.pid: _searched(rank) for rank in ranks if rank.copy is not None}
        self._files = lock_context.SharedFiles({rank.pid: rank.copy.maps for rank in ranks if rank.copy is not None})

    def locks(self, rank: LiveRank, stacks: Sequence[ThreadStack]) -> Tuple[LockWait, ...]:
        """Threads of the rank that wait for other threads: by the futexes, and by the names of the frames."""
        assert rank.copy is not None
        ids, pid = self._ids, rank.pid
        others = {tid: (other, lwp) for other, one in ids.items() if other != pid for tid, lwp in one.lwps.items()}
        around = _surroundings(self.proc, rank, ids[pid])
        around = replace(around, others=others, sharers=self._files.with_process(pid), shared=self._shared_in(rank))
        found = mutex_owners.resolve(_waits(rank.copy), stacks, around)
        if rank.second is not None and rank.second.state != ReadState.LOST:
            found = mutex_owners.mark_unchanged(found, mutex_owners.resolve(_waits(rank.second), stacks, around))
        found = python_rlocks.with_owners(
            found,
            stacks,
            {thread.tid: thread.sp for thread in rank.copy.threads if thread.registers},
            self._searched[pid].threads,
            ProcessMemory(pid).read_many,
        )
        return process_locks.with_owners(found, stacks, self._searched[pid], list(self._searched.values()))

    def _shared_in(self, rank: LiveRank) -> Callable[[int], bool]:
        """Whether memory of the rank is shared with another process, also with one that is not a rank."""
        assert rank.copy is not None
        maps, mapped = rank.copy.maps, lock_context.shared_in(rank.copy.maps)
        sharers = self._files.with_process(rank.pid)

        def shared(address: int) -> bool:
            one = maps.find(address)
            if one is None or not mapped(address) or sharers(address):
                return mapped(address)
            piece = Mapped(f"{one.start:x}-{one.end:x}", one.device, one.inode, one.path)
            return self._memory.is_shared(rank.pid, piece)

        return shared

    def clients(self, rank: LiveRank) -> Tuple[WaitingClient, ...]:
        """Who outside of the job waits for an answer of this process."""
        return self._clients.get(rank.pid, ())

    def peers(self, rank: LiveRank, stacks: Sequence[ThreadStack]) -> Tuple[Peer, ...]:
        """What threads of the rank wait for from other processes."""
        read = ProcessMemory(rank.pid).read
        calls = calls_for_files(_lasting_calls(rank, stacks), stacks, read)
        found = waits_for(self.proc, rank.pid, calls, asleep_in)
        return (*found, *tried_locks(self.proc, rank.pid, stacks))


def _searched(rank: LiveRank) -> process_locks.Searched:
    assert rank.copy is not None
    at = rank.copy.architecture.thread_pointer if rank.copy.architecture is not None else None
    threads = {one.registers[at]: one.tid for one in rank.copy.threads if at is not None and one.registers}
    return process_locks.Searched(rank.pid, rank.copy.maps, ProcessMemory(rank.pid).read, threads)


def _waits(copy: ProcessCopy) -> Mapping[int, futexes.FutexCall]:
    """What the stop itself proves: the wait was there when the memory was read."""
    waits: Dict[int, futexes.FutexCall] = {}
    for held in copy.during or ():
        found = held.waits.filled(held.pages)
        waits.update({tid: call for tid, call in found.items() if held.tids is None or tid in held.tids})
    return futexes.confirmed_waits(waits, {thread.tid: thread.registers for thread in copy.threads})


def _lasting_calls(rank: LiveRank, stacks: Sequence[ThreadStack]) -> Mapping[int, Sequence[int]]:
    """The system calls of its threads, those that a second copy showed too where there is one."""
    calls = {stack.lwp: stack.syscall for stack in stacks if stack.lwp and stack.syscall}
    unmoved_lwps = {
        stack.lwp for stack in stacks if stack.switches == 0
    }  # of one that nothing stops there is no second copy
    if rank.second is None:
        return calls
    later = {thread.tid: futexes.syscall_of(thread.registers) for thread in rank.second.threads}
    return {tid: call for tid, call in calls.items() if tid in unmoved_lwps or (later.get(tid) or ())[:2] == call[:2]}


def _thread_ids(rank: LiveRank) -> futexes.ThreadIds:
    assert rank.copy is not None
    registers = {thread.tid: thread.registers for thread in rank.copy.threads}
    return futexes.thread_ids(registers, ProcessMemory(rank.pid).read_many)


def _surroundings(proc: ProcFS, rank: LiveRank, ids: futexes.ThreadIds) -> lock_context.Surroundings:
    assert rank.copy is not None
    stat = proc.stat(rank.pid)
    parent = None if isinstance(stat, Missing) else stat.parent
    return lock_context.Surroundings(
        ids.lwps,
        ids.words,
        ids.are_all({thread.tid for thread in rank.copy.threads} | set(rank.times)),
        lock_context.place_in(rank.copy.maps),
        variable_in(rank.copy.maps, f"{proc.root}/{rank.pid}/root", qualified_name),
        lock_context.shared_in(rank.copy.maps),
        exists=lock_context.exists_beside(ids.lwps, proc.root),
        parent=parent,
        parents_threads=frozenset(proc.tasks(parent) if parent else ()),
        before_fork=lock_context.oldest_id(rank.pid, parent, ids.lwps, str(proc.root)),
    )
