"""How long a thread of a copy still sleeps, by the time that it handed to nanosleep(2) or clock_nanosleep(2)."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from typing import Optional, Sequence, Tuple

from gdbext.capture.locks.futexes import syscall_of
from gdbext.capture.machine import this_machine
from gdbext.capture.memory.overlapping_pieces import Pieces
from gdbext.capture.stop.copy_of_process import ProcessCopy
from gdbext.knowledge.runtimes.system_calls import CLOCK_NANOSLEEP, NANOSLEEP
from gdbext.model.stack import ThreadStack

_ABSOLUTE = 1  # TIMER_ABSTIME
_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)
_TIME = struct.Struct("<qq")  # struct timespec
_SECOND = 1_000_000_000


def told(stacks: Sequence[ThreadStack], copy: ProcessCopy) -> Tuple[ThreadStack, ...]:
    """The stacks of a copy that was just taken, with `sleeps` of those that are in a sleep of their own."""
    if copy.architecture is None or copy.architecture != this_machine():
        return tuple(stacks)
    registers = {thread.tid: thread.registers for thread in copy.threads}
    pieces = Pieces(copy.blocks)
    return tuple(replace(stack, sleeps=_left(registers.get(stack.lwp or 0, ()), pieces)) for stack in stacks)


def _left(registers: Sequence[int], pieces: Pieces) -> Optional[float]:
    """Seconds after which its sleep ends, at most: of a relative one nobody knows when it began."""
    call = syscall_of(registers)
    if call is None or call[0] not in (NANOSLEEP, CLOCK_NANOSLEEP):
        return None
    clock, flags, address = (None, 0, call[1]) if call[0] == NANOSLEEP else call[1:4]
    data = pieces.cut(address, _TIME.size).data
    if len(data) < _TIME.size:
        return None
    seconds, nanoseconds = _TIME.unpack(data)
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        return None
    ends: float = seconds + nanoseconds / _SECOND
    if not flags & _ABSOLUTE:
        return ends
    return max(0.0, ends - time.clock_gettime(clock)) if clock in _CLOCKS else None
