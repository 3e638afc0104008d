"""Liveness check: a thread that has slept since it was copied need not be stopped again.

A thread that sleeps in the kernel changes nothing, and the kernel counts how often each thread got a processor
(capture/without_stop/sleeping_threads.py). So a thread that still stands where its copy shows it, with the same frames,
and that gets no processor until a later moment, looks in that moment as it did in the copy. Of a job that hangs nearly
all threads are like that. So they are copied a few at a time, and only the few others have to stand still at one
moment, for a fraction of the time that stopping all would take; in a second copy no system call of those that sleep is
broken off once more."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import Budget, ProcessCopy, ThreadCopy
from gdbext.capture.copies.syscall_line import RUNNING
from gdbext.capture.memory.overlapping_pieces import Pieces, same_frames
from gdbext.capture.memory.process_memory import Block, ProcessMemory, merge
from gdbext.capture.stop.copy_of_process import Marks, copy_in_turns
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
from gdbext.capture.without_stop.sleeping_threads import Mark, sleep_mark, stands_as

_NAP, _LONGEST = 0.002, 0.5  # seconds: whoever was let go has to fall asleep again first, on a busy machine a while
_IDLE = 3  # naps in which nobody did: the others run
_ROUNDS = 3  # with ever fewer threads left alone; then all are stopped

Copier = Callable[[Sequence[int], Marks], Sequence[ProcessCopy]]
"""Copies these processes, and leaves alone the threads that have these marks."""


@dataclass(frozen=True)
class Asleep:
    """A copy of a process, and the marks of those of its threads that went on sleeping as they were copied."""

    copy: ProcessCopy
    marks: Mapping[int, Mark]
    unstopped: FrozenSet[int] = frozenset()  # threads that were copied without a stop and that no copy stops


def copy_asleep(
    times: Mapping[int, Mapping[int, ThreadTimes]],
    budget: Optional[Budget] = None,
    unstopped: Optional[Mapping[int, ProcessCopy]] = None,
) -> Dict[int, Asleep]:
    """By pid, copies of the threads that sleep, each stopped with a few others only. Those that did not stop are not in
    them: they get a second chance. `unstopped`: threads that were copied already and must not be stopped."""
    unstopped = unstopped or {}
    alone = {pid: frozenset(thread.tid for thread in copy.threads) for pid, copy in unstopped.items()}
    sleeping = {
        pid: [tid for tid, one in seen.items() if one.state == "S" and tid not in alone.get(pid, ())]
        for pid, seen in times.items()
    }
    copies = [
        replace(one, threads=tuple(thread for thread in one.threads if thread.problem is None))
        for one in copy_in_turns(sleeping, budget)
    ]
    copies = [_with_unstopped(one, unstopped[one.pid]) if one.pid in unstopped else one for one in copies]
    return {pid: replace(one, unstopped=alone.get(pid, frozenset())) for pid, one in sleeping_threads(copies).items()}


def _with_unstopped(copy: ProcessCopy, unstopped: ProcessCopy) -> ProcessCopy:
    if not copy.threads:
        return unstopped  # nobody else sleeps
    threads, blocks = (*copy.threads, *unstopped.threads), merge([*copy.blocks, *unstopped.blocks])
    return replace(copy, threads=tuple(threads), blocks=tuple(blocks))


def sleeping_threads(copies: Sequence[ProcessCopy], known: Optional[Mapping[int, Asleep]] = None) -> Dict[int, Asleep]:
    """By pid, the threads of processes, just let go, that sleep as the copies show them. `known`: the marks of those
    that were left alone for these copies."""
    pending = [
        (copy.pid, thread.tid)
        for copy in copies
        for thread in copy.threads
        if thread.stacks and thread.tid not in copy.asleep
    ]
    found: Dict[int, Dict[int, Mark]] = {copy.pid: {} for copy in copies}
    nap, idle, end = _NAP, 0, time.monotonic() + _LONGEST
    while pending and idle < _IDLE and time.monotonic() < end:
        awake = []
        for pid, tid in pending:
            seen = sleep_mark(pid, tid)
            if isinstance(seen, Mark):
                found[pid][tid] = seen
            elif seen == RUNNING:
                awake.append((pid, tid))
        idle = idle + 1 if len(awake) == len(pending) else 0
        pending = awake
        if pending:
            time.sleep(nap)
            nap *= 2
    marks = {copy.pid: _as_copied(copy, found[copy.pid]) for copy in copies}
    for copy in copies:
        marks[copy.pid].update((tid, known[copy.pid].marks[tid]) for tid in copy.asleep if known)
    alone = {copy.pid: known[copy.pid].unstopped if known and copy.pid in known else frozenset() for copy in copies}
    return {copy.pid: Asleep(copy, marks[copy.pid], alone[copy.pid]) for copy in copies}


def copy_awake(
    pids: Sequence[int], known: Mapping[int, Asleep], copier: Copier, together: bool = False
) -> List[ProcessCopy]:
    """Whole copies of all processes at one later moment: `copier` stops only who has run since. Where somebody wakes
    up meanwhile it is called again, for all processes (`together`) or for that one."""
    marks: Dict[int, Dict[int, Mark]] = {pid: dict(one.marks) for pid, one in known.items()}
    copies: Dict[int, ProcessCopy] = {}
    known_copies = {pid: one.copy for pid, one in known.items()}
    left: Sequence[int] = pids
    for number in range(_ROUNDS + 1):
        if number == _ROUNDS:
            marks = {
                pid: {tid: seen for tid, seen in marks[pid].items() if tid in known[pid].unstopped} for pid in marks
            }
        for copy in copier(left, marks):
            known_copies[copy.pid] = copies[copy.pid] = _longest(copy, known_copies.get(copy.pid, copy))
        woke = [pid for pid in left if copies[pid].woke]
        if not woke:
            break
        for pid in woke:
            for tid in copies[pid].woke:
                del marks[pid][tid]
        left = pids if together else woke
    return [merge_copies(known[pid].copy, copies[pid]) if pid in known else copies[pid] for pid in pids]


def merge_copies(old: ProcessCopy, new: ProcessCopy) -> ProcessCopy:
    """The new copy, completed by what the old one has of the threads that slept."""
    if not new.asleep:
        return new
    stopped = {thread.tid: thread for thread in new.threads}
    slept = {thread.tid: thread for thread in old.threads if thread.tid in new.asleep}
    threads = sorted({**slept, **stopped}.values(), key=lambda thread: thread.tid != new.pid)
    pieces = Pieces(old.blocks)
    stacks = (pieces.cut(*one) for thread in slept.values() for one in thread.stacks)
    return replace(new, threads=tuple(threads), blocks=tuple(merge([*new.blocks, *stacks])))


def _as_copied(copy: ProcessCopy, marks: Mapping[int, Mark]) -> Dict[int, Mark]:
    """Those of the marks whose threads stand where they were copied, with the same frames on their stacks."""
    pieces = Pieces(copy.blocks)
    sleeping = [
        thread for thread in copy.threads if thread.tid in marks and _is_still_asleep(copy, thread, marks[thread.tid])
    ]
    blocks: List[Tuple[int, Block]] = [(one.tid, pieces.cut(*stack)) for one in sleeping for stack in one.stacks]
    now = ProcessMemory(copy.pid).read_many([(block.address, len(block.data)) for _, block in blocks])
    changed = {tid for (tid, block), data in zip(blocks, now) if not same_frames(block, data, copy.maps)}
    return {thread.tid: marks[thread.tid] for thread in sleeping if thread.tid not in changed}


def _is_still_asleep(copy: ProcessCopy, thread: ThreadCopy, seen: Mark) -> bool:
    if thread.problem is None and copy.architecture is not None:
        return stands_as(seen.standing, thread.registers, copy.architecture)
    return (seen.standing.sp, seen.standing.pc) == (thread.sp, thread.pc)  # it never stopped: no more was read


def _longest(copy: ProcessCopy, before: ProcessCopy) -> ProcessCopy:
    """The copy with the longest stop that its process has had for it."""
    felt_ms, pause = (copy.felt_ms, before.felt_ms), (copy.pause_ms, before.pause_ms)
    return replace(copy, felt_ms=_longer(felt_ms), pause_ms=_longer(pause))


def _longer(times: Tuple[Optional[float], Optional[float]]) -> Optional[float]:
    return max((one for one in times if one is not None), default=None)
