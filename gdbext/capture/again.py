"""Two copies of one process, seconds apart: which calls are still the same calls?

A thread that hangs changes at most the innermost part of its stack (the driver's polling loop); a loop that makes
progress rewrites the frames of its callers. So the highest byte that differs tells how far out the standstill reaches.
"""

from __future__ import annotations

import bisect
from dataclasses import replace
from typing import Dict, Mapping, Optional, Sequence, Tuple

from gdbext.capture.memory import Block
from gdbext.capture.stop import ProcessCopy
from gdbext.capture.threads import ThreadTimes
from gdbext.model.stack import ThreadStack

_STEP = 512  # bytes compared at once


def compare(
    stacks: Sequence[ThreadStack],
    first: ProcessCopy,
    second: ProcessCopy,
    before: Mapping[int, ThreadTimes],
    after: Mapping[int, ThreadTimes],
) -> Tuple[ThreadStack, ...]:
    """The stacks of `first` with `still` and `switches` filled in where both looks saw the thread."""
    one, two = _Side(first), _Side(second)
    return tuple(
        replace(stack, still=_still(stack, one, two), switches=_switches(stack.lwp, before, after)) for stack in stacks
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
        if index < 0 or address >= self._blocks[index].end:
            return None
        return self._blocks[index]


def _still(stack: ThreadStack, one: _Side, two: _Side) -> Optional[int]:
    """Number of the innermost frame from which outward nothing changed; behind the last one when all of it did."""
    tid = stack.lwp
    if tid is None or not one.registers.get(tid) or not two.registers.get(tid):
        return None
    known = [frame.sp for frame in stack.frames if frame.sp is not None]
    if not known:
        return None
    changed = _highest_change(min(one.sp[tid], two.sp[tid]), one, two, known[-1])
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


def _highest_change(low: int, one: _Side, two: _Side, outermost: int) -> Optional[int]:
    """Address of the last byte of the stack that differs, -1 when none does, None when it cannot be compared."""
    first, second = one.block(outermost), two.block(outermost)
    if first is None or second is None:
        return None
    low = max(low, first.address, second.address)
    high = min(first.end, second.end)
    while high > low:
        start = max(low, high - _STEP)
        left = first.data[start - first.address : high - first.address]
        right = second.data[start - second.address : high - second.address]
        if left != right:
            return start + max(index for index in range(len(left)) if left[index] != right[index])
        high = start
    return -1


def _switches(tid: Optional[int], before: Mapping[int, ThreadTimes], after: Mapping[int, ThreadTimes]) -> Optional[int]:
    old, new = before.get(tid or 0), after.get(tid or 0)
    if old is None or new is None or old.started != new.started:
        return None
    counts = (old.waited, old.preempted, new.waited, new.preempted)
    if any(count is None for count in counts):
        return None
    return sum(counts[2:]) - sum(counts[:2])  # type: ignore[arg-type]
