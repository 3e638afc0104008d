"""A look that stops nobody (`--no-stop`): threads that sleep are copied while the rank runs on, others are told so."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import Budget, ProcessCopy
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.symbols.mapped_libraries import libraries_on_stacks
from gdbext.capture.without_stop.copying import copy_outside
from gdbext.capture.without_stop.frame_pointer import with_frame_pointers
from gdbext.capture.without_stop.kernel_threads import ThreadTimes, is_in_pipe_write, is_on_closed_file
from gdbext.capture.without_stop.sleeping_threads import UNKNOWN
from gdbext.collect.gdb_runs.unwinding import unread_stack
from gdbext.collect.one_rank import Held, LiveRank
from gdbext.model.codes import StackEnd
from gdbext.model.missing import Missing
from gdbext.model.python import PythonStacks
from gdbext.model.stack import UNREAD, Captured, Frame, ThreadStack

CUT = "its outer frames need registers that only a stop shows"
_IN_REGISTER = Missing("in a register that only a stop shows")
_HALF = UNKNOWN & 0xFFFFFFFF


def copies(pids: Sequence[int], budget: Budget, during: Callable[[int], Held]) -> List[ProcessCopy]:
    """A copy of each process, one after the other. `during` of each is a tuple of what `during(pid)` said, each with
    the threads that it is true of."""
    result = []
    for pid in pids:
        found = copy_outside(pid, budget, during)
        moments = tuple(replace(one.found, tids=one.tids) for one in found.moments)
        copy = replace(found.copy, during=moments)
        result.append(_completed(copy))
    return result


def copies_of_cut_short(
    times: Mapping[int, Mapping[int, ThreadTimes]], budget: Optional[Budget] = None
) -> Dict[int, ProcessCopy]:
    """By pid, the threads whose call a stop would cut short, copied without one: in a write() to a full pipe, or for a
    file that was closed meanwhile."""
    calls = {
        pid: [tid for tid, one in seen.items() if is_in_pipe_write(one) or is_on_closed_file(pid, one)]
        for pid, seen in times.items()
    }
    copied = [copy_outside(pid, budget, tids=tids).copy for pid, tids in calls.items() if tids]
    found = [replace(copy, threads=tuple(one for one in copy.threads if one.registers)) for copy in copied]
    return {copy.pid: _completed(copy) for copy in found if copy.threads}


def _completed(copy: ProcessCopy) -> ProcessCopy:
    return with_frame_pointers(copy, libraries_on_stacks(copy), ProcessMemory(copy.pid).read)


def merge_python_stacks(before: Optional[PythonStacks], found: PythonStacks, tids: FrozenSet[int]) -> PythonStacks:
    """The Python stacks that are known, and of those that were found the ones of these threads: the others ran."""
    threads = {tid: thread for tid, thread in found.threads.items() if tid in tids}
    problems, tasks = found.problems, tuple(task for task in found.tasks if task.thread in tids)
    if before is not None:
        threads = {**before.threads, **threads}
        tasks = (*(task for task in before.tasks if task.thread not in tids), *tasks)
        problems = tuple(dict.fromkeys((*before.problems, *problems)))
    return replace(found, threads=threads, problems=problems, tasks=tasks)


def summary(copy: ProcessCopy) -> str:
    """For people, while they wait."""
    read = sum(bool(thread.registers) for thread in copy.threads)
    return f"{read} of {len(copy.threads)} threads read, nothing is stopped"


def complete(rank: LiveRank) -> None:
    """Say of each thread of a rank what could not be read of it, and why."""
    assert rank.copy is not None
    stacks = [_without_unknown_registers(stack) for stack in rank.stacks]
    unread = [thread for thread in rank.copy.threads if not thread.registers]
    stacks += [unread_stack(one) for one in unread]
    rank.stacks = tuple(stacks)
    rank.times = {
        # Seen running before it was read: it slept then.
        tid: replace(one, state="S") if one.state == "R" and tid in _read(rank.copy) else one
        for tid, one in rank.times.items()
    }
    ran = sum(one.ran for one in unread)
    if ran:
        rank.note(f"{ran} of {len(rank.copy.threads)} threads ran: {UNREAD}", cut=True)
    short = sum(stack.end is StackEnd.REGISTERS for stack in stacks)
    if short:
        rank.note(
            f"the stacks of {short} threads end too early: outer frames need registers that only a stop shows", True
        )


def _read(copy: ProcessCopy) -> Mapping[int, Tuple[int, ...]]:
    return {thread.tid: thread.registers for thread in copy.threads if thread.registers}


def without_unknown_registers(stacks: Sequence[ThreadStack], tids: FrozenSet[int]) -> Tuple[ThreadStack, ...]:
    """The stacks, where these threads were read without a stop and the others stopped: of those all is known."""
    return tuple(_without_unknown_registers(stack) if stack.lwp in tids else stack for stack in stacks)


def _without_unknown_registers(stack: ThreadStack) -> ThreadStack:
    """Without values out of registers that nobody knows, and with the reason where gdb ran into one."""
    frames = tuple(_without_unknown(frame) for frame in stack.frames)
    if stack.end is StackEnd.MEMORY:  # where gdb comes when it follows UNKNOWN
        return replace(stack, frames=frames, truncated=CUT, end=StackEnd.REGISTERS)
    return replace(stack, frames=frames)


def _without_unknown(frame: Frame) -> Frame:
    if not any(map(_is_unknown, frame.captures.values())):
        return frame
    known = {name: _IN_REGISTER if _is_unknown(value) else value for name, value in frame.captures.items()}
    return replace(frame, captures=known)


def _is_unknown(value: Captured) -> bool:
    """The marker, or the half of it that a 32-bit variable takes (its top bit is 0: signed or not is the same)."""
    return isinstance(value, int) and value in (UNKNOWN, _HALF)
