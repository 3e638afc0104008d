"""Which bytes of a process its stacks are, and the order in which they are copied while it stands still."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Dict, List, Optional, Protocol, Sequence, Tuple

from gdbext.capture.machine import Architecture
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.memory.process_memory import Range
from gdbext.knowledge.runtimes.telling_libraries import WAITING

FIRST = 64 << 10  # bytes that every stack gets before any gets more
DEEP = 32 << 20  # bytes for all stacks together beyond that: about 10 ms
_FEW = 256  # threads whose stacks are copied in 3 ms, whatever their order
_SIGNAL_STACKS = 16  # threads on another stack than their own that are looked into, about 0.3 ms each
_SIGNAL_FRAME = 32 << 10  # bytes in which the signal frame is looked for


class Room(Protocol):
    """Where the bytes come to, and how: capture.memory.CopyBuffer of a process, the memory of a core file."""

    def copy(self, pid: int, ranges: Sequence[Range], deadline: float) -> List[int]:
        """Bytes got of each range; shorter than `ranges` where room or time end."""

    def words(self, address: int, limit: int) -> array[int]:
        """The 64-bit words of the piece that was copied from `address`."""


Registers = Dict[int, Sequence[int]]
"""NT_PRSTATUS words of each thread."""


@dataclass
class _Stack:
    """A stack in use: from (a little below) the stack pointer to the end of its mapping."""

    start: int
    size: int
    home: Optional[Mapping]  # None: not known
    have: int = 0  # bytes copied
    ended: bool = False  # the memory ended before its mapping did


class StackCopier:
    """Copies the stacks of one process into `buffer`, each at most `limit` bytes."""

    def __init__(self, pid: int, maps: MemoryMap, main_top: int, row: Architecture, buffer: Room, limit: int) -> None:
        self._pid, self._maps, self._main_top = pid, maps, main_top
        self._row, self._buffer, self._limit = row, buffer, limit
        self._stacks: Dict[int, List[_Stack]] = {}  # tid -> the stack in use, and the one that a signal interrupted

    def copy(self, registers: Registers, deadline: float) -> None:
        """Every stack a little, then the deep ones; may be called again for other threads. Raises `ProcessLookupError`
        when the process is gone."""
        copied = {tid: [self._stack_at(registers[tid][self._row.sp])] for tid in self._by_interest(registers)}
        self._stacks.update(copied)
        self._extend([stacks[0] for stacks in copied.values()], FIRST, deadline)
        elsewhere = [tid for tid, words in registers.items() if not self._on_own_stack(tid, words)]
        for tid in elsewhere[:_SIGNAL_STACKS]:
            interrupted = self._interrupted(self._stacks[tid][0], registers[tid][self._row.sp])
            if interrupted:
                self._stacks[tid].append(interrupted)
                self._extend([interrupted], FIRST, deadline)
        deep = DEEP
        for stack in (stack for stacks in copied.values() for stack in stacks):
            if stack.have == FIRST and deep > 0:
                deep -= self._extend([stack], deep, deadline)

    def _by_interest(self, registers: Registers) -> List[int]:
        """The main thread, then those outside of libc (CUDA, NCCL, MPI poll), then the rest, which wait to be woken.

        With few threads nothing is ever cut, and they stand still while we think.
        """
        if len(registers) <= _FEW:
            return list(registers)
        waits: Dict[Optional[str], bool] = {None: False}

        def place(tid: int) -> Tuple[bool, bool]:
            mapping = self._maps.find(registers[tid][self._row.pc])
            path = mapping.path if mapping else None
            if path not in waits:
                waits[path] = bool(WAITING.match((path or "").rsplit("/", 1)[-1]))
            return tid != self._pid, waits[path]

        return sorted(registers, key=place)

    def truncated(self, tid: int) -> Optional[str]:
        """Why the outer end of a thread's stack is missing; `None` when it is all there."""
        for stack in self._stacks.get(tid, ()):
            if not stack.ended and stack.have < stack.size:
                return f"{stack.size - stack.have} of {stack.size} bytes of its stack were not copied (budget)"
        return None

    def problem(self, tid: int) -> Optional[str]:
        """Why there is nothing of a thread's stack at all."""
        stacks = self._stacks.get(tid)
        if not stacks or stacks[0].have or not stacks[0].ended:
            return None
        where = "lies outside of any memory" if stacks[0].home is None else "cannot be read from"
        return f"its stack pointer {stacks[0].start:#x} {where}"

    def copied(self, tid: int) -> List[Range]:
        """What was copied for a thread: its stack, and the one that a signal handler of it interrupted."""
        return [(stack.start, stack.have) for stack in self._stacks.get(tid, ())]

    def _stack_at(self, sp: int) -> _Stack:
        mapping = self._maps.find(sp)
        if mapping is None:
            # Made after we looked, or nonsense: reading stops by itself where the memory ends.
            return _Stack(sp & ~15, self._limit, None)
        start = max((sp - self._row.red_zone) & ~15, mapping.start)
        end = mapping.end
        if start < self._main_top < end:
            end = self._main_top
        return _Stack(start, end - start, mapping)

    def _extend(self, stacks: Sequence[_Stack], limit: int, deadline: float) -> int:
        """Copy up to `limit` more bytes of each; how many bytes that were."""
        ranges = [(stack.start + stack.have, min(min(stack.size, self._limit) - stack.have, limit)) for stack in stacks]
        counts = self._buffer.copy(self._pid, ranges, deadline)
        for stack, (_, asked), count in zip(stacks, ranges, counts):
            stack.have += count
            stack.ended = count < asked
        return sum(counts)

    def _on_own_stack(self, tid: int, words: Sequence[int]) -> bool:
        home = self._stacks[tid][0].home
        if home is None or tid == self._pid:
            return home is None or home.path == "[stack]"
        # libc keeps the descriptor of a thread at the upper end of the stack that it gave to it.
        return self._row.thread_pointer is None or home.start <= words[self._row.thread_pointer] < home.end

    def _interrupted(self, current: _Stack, sp: int) -> Optional[_Stack]:
        """The stack that a signal handler interrupted which runs on another one (sigaltstack): the signal frame, known
        by its description of the stack that it lies on, holds the interrupted sp."""
        words = self._buffer.words(current.start, _SIGNAL_FRAME)
        for index in range(len(words) - self._row.signal_sp):
            low, size = words[index], words[index + 2]  # uc_stack.ss_sp, .ss_size
            if low <= sp < low + size <= low + self._limit:
                interrupted = words[index + self._row.signal_sp]
                if self._maps.find(interrupted):
                    return self._stack_at(interrupted)
        return None
