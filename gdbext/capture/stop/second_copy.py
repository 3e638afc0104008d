"""Two copies of one process, seconds apart: which calls are still the same calls?

A thread that hangs changes at most the innermost part of its stack (the driver's polling loop); a loop that makes
progress rewrites the frames of its callers. So the highest byte that differs tells how far out the standstill reaches.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import Dict, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.machine import this_machine
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.without_stop.kernel_threads import ThreadTimes, turns_in_both
from gdbext.knowledge.runtimes.glibc_locks import THREAD_STARTS
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import regex

_STEP = 512  # bytes compared at once
_WORD = 8
_STARTS = regex(THREAD_STARTS)


def compare(
    stacks: Sequence[ThreadStack],
    first: ProcessCopy,
    second: ProcessCopy,
    before: Mapping[int, ThreadTimes],
    after: Mapping[int, ThreadTimes],
) -> Tuple[ThreadStack, ...]:
    """The stacks of `first` with what the second copy tells of each thread that both saw."""
    one, two = _Side(first), _Side(second)
    return tuple(
        _counted(
            replace(stack, still=_unchanged_from(stack, one, two), left=_returned_calls(stack, one, two)),
            stack.lwp in second.asleep,
            before.get(stack.lwp or 0),
            after.get(stack.lwp or 0),
        )
        for stack in stacks
    )


class _Side:
    """Registers by thread and memory by address of one copy."""

    def __init__(self, copy: ProcessCopy) -> None:
        self.registers: Dict[int, Tuple[int, ...]] = {thread.tid: thread.registers for thread in copy.threads}
        self.sp: Dict[int, int] = {thread.tid: thread.sp for thread in copy.threads}
        self._blocks = copy.blocks
        self._starts = [block.address for block in copy.blocks]

    def block(self, address: int) -> Optional[Block]:
        index = bisect.bisect_right(self._starts, address) - 1
        return None if index < 0 or address >= self._blocks[index].end else self._blocks[index]

    def word(self, address: int) -> Optional[int]:
        """The word there, where it was copied."""
        block = self.block(address)
        if block is None or address + _WORD > block.end:
            return None
        at = address - block.address
        return int.from_bytes(block.data[at : at + _WORD], "little")


def _unchanged_from(stack: ThreadStack, one: _Side, two: _Side) -> Optional[int]:
    """Number of the innermost frame from which outward nothing changed; behind the last one when all of it did."""
    tid = stack.lwp
    if tid is None or not one.registers.get(tid) or not two.registers.get(tid):
        return None
    known = [frame.sp for frame in stack.frames if frame.sp is not None]
    if not known:
        return None
    # Beyond a thread's first function lie variables of its own, and on which processor it was (rseq(2)).
    end = stack.frames[-1].sp if _STARTS.match(stack.frames[-1].function or "") else None
    changed = _highest_change(min(one.sp[tid], two.sp[tid]), one, two, known[-1], end)
    if changed is None:
        return None
    if changed < 0 and one.registers[tid] == two.registers[tid]:
        return 0
    still = len(stack.frames)
    for number in range(len(stack.frames) - 1, 0, -1):
        sp = stack.frames[number].sp
        if sp is not None and sp <= changed:
            break
        still = number
    return still


def _highest_change(low: int, one: _Side, two: _Side, outermost: int, end: Optional[int]) -> Optional[int]:
    """Address of the last byte of the stack that differs, -1 when none does, None when it cannot be compared."""
    first, second = one.block(outermost), two.block(outermost)
    if first is None or second is None:
        return None
    low = max(low, first.address, second.address)
    high = min(first.end, second.end, end or first.end)
    while high > low:
        start = max(low, high - _STEP)
        left = first.data[start - first.address : high - first.address]
        right = second.data[start - second.address : high - second.address]
        if left != right:
            return start + max(index for index in range(len(left)) if left[index] != right[index])
        high = start
    return -1


def _returned_calls(stack: ThreadStack, one: _Side, two: _Side) -> Optional[int]:
    """How many calls, from the innermost one, are over: the address that the outermost of them returns to is gone.

    Where a call puts it on the stack, it lies at a fixed distance from its caller's stack pointer; elsewhere it is not
    found, and nothing is said.
    """
    row = this_machine()
    unwind = row.unwind if row is not None else None
    if unwind is None or stack.lwp is None or not two.registers.get(stack.lwp):
        return None
    for number in range(len(stack.frames) - 1, 0, -1):
        caller = stack.frames[number]
        slot = (caller.sp or 0) + unwind.below_frame
        if caller.pc is None or one.word(slot) != caller.pc:
            continue
        if slot < two.sp[stack.lwp] or two.word(slot) not in (caller.pc, None):
            return number
    return 0


def _counted(stack: ThreadStack, slept: bool, old: Optional[ThreadTimes], new: Optional[ThreadTimes]) -> ThreadStack:
    """The stack with what its thread's counters say. `slept`: it had no processor since the first copy let it go, so
    that all it did was to be stopped."""
    turns = turns_in_both(old, new)
    if turns is None:
        return replace(stack, switches=None)
    return replace(stack, switches=0, turns=turns) if slept else replace(stack, switches=turns[1] - turns[0])
