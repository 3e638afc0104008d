"""How long a thread of a copy still sleeps, by the time that it handed to nanosleep(2) or clock_nanosleep(2)."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from typing import Callable, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.locks_in_memory.futexes import syscall_of
from gdbext.capture.machine import this_machine
from gdbext.capture.memory.overlapping_pieces import Pieces
from gdbext.capture.without_stop.resumed_calls import as_begun
from gdbext.knowledge.runtimes.system_calls import CLOCK_NANOSLEEP, NANOSLEEP
from gdbext.model.stack import ThreadStack

_ABSOLUTE = 1  # TIMER_ABSTIME
_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)
_TIME = struct.Struct("<qq")  # struct timespec
_SECOND = 1_000_000_000
_LONGEST = 5.0  # seconds that a look waits for the end of a sleep
_MARGIN = 0.3  # for what comes after it


def with_sleep_times(stacks: Sequence[ThreadStack], copy: ProcessCopy) -> Tuple[ThreadStack, ...]:
    """The stacks of a copy that was just taken, with `sleeps` of those that are in a sleep of their own."""
    if copy.architecture is None or copy.architecture != this_machine():
        return tuple(stacks)
    registers = {thread.tid: thread.registers for thread in copy.threads}
    pieces = Pieces(copy.blocks)
    return tuple(replace(stack, sleeps=_left(stack, registers.get(stack.lwp or 0, ()), pieces)) for stack in stacks)


def until_awake(processes: Mapping[int, Sequence[ThreadStack]]) -> float:
    """In how many seconds the main threads (by pid) of a job that sleep for a few seconds will have gone on, so that a
    second copy shows whether they do; 0 where none does, where it takes longer, or where nobody can wait for them."""
    if len(processes) < 2:
        return 0.0
    mains = (stack for pid, stacks in processes.items() for stack in stacks if stack.lwp == pid)
    ends = [stack.sleeps for stack in mains if stack.sleeps is not None]
    return max((one + _MARGIN for one in ends if one <= _LONGEST), default=0.0)


def _left(stack: ThreadStack, registers: Sequence[int], pieces: Pieces) -> Optional[float]:
    def read(address: int, size: int) -> Optional[bytes]:
        data = pieces.cut(address, size).data
        return data if len(data) == size else None

    return sleep_left(as_begun(syscall_of(registers), stack), read)


def sleep_left(call: Optional[Sequence[int]], read: Callable[[int, int], Optional[bytes]]) -> Optional[float]:
    """Seconds after which a sleep (number and arguments of its call) ends, at most: of a relative one nobody knows when
    it began."""
    if call is None or call[0] not in (NANOSLEEP, CLOCK_NANOSLEEP):
        return None
    clock, flags, address = (None, 0, call[1]) if call[0] == NANOSLEEP else call[1:4]
    data = read(address, _TIME.size)
    if data is None:
        return None
    seconds, nanoseconds = _TIME.unpack(data)
    if seconds < 0 or not 0 <= nanoseconds < _SECOND:
        return None
    ends: float = seconds + nanoseconds / _SECOND
    if not flags & _ABSOLUTE:
        return ends
    return max(0.0, ends - time.clock_gettime(clock)) if clock in _CLOCKS else None
