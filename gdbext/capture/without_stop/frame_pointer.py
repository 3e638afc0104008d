"""The frame pointer of a blocked thread of which only sp and pc are known, by its stack.

Code that keeps its frame in that register can be unwound only with it. Between the system call and the first function
of that kind nobody has saved it, or else it would be known; so it still holds that function's frame. How far that lies
from sp is what the first instructions of the function take off the stack. It counts only where a return address stands
beside it that belongs to a call of this very function, or to one by pointer.
"""

from __future__ import annotations

import bisect
import dataclasses
import struct
import time
from typing import Callable, Dict, NamedTuple, Optional, Protocol, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy, ThreadCopy
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.elf.unwind_entries import UnwindTable
from gdbext.capture.elf.unwind_rules import Row, row_at
from gdbext.capture.machine import Architecture
from gdbext.capture.machine.code import code_of
from gdbext.capture.machine.interface import Code, Read, UnwindRegisters
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.symbols.mapped_libraries import MappedFile
from gdbext.safe_open.kept_open_files import Opened

_MOST_FRAMES = 64
_MOST_CODE = 192  # bytes of a function that are looked at
_SECONDS = 5.0  # of the processor, for all rules of a process: instructions of one may be as long as its author likes


class Rules(Protocol):
    """What the files of a process say of an address in it."""

    def row(self, address: int) -> Optional[Tuple[int, Row]]:
        """Where its function begins, and how to unwind from there."""


def with_frame_pointers(copy: ProcessCopy, files: Sequence[MappedFile], read: Read) -> ProcessCopy:
    """The copy with frame pointers in the registers of its threads, where a frame needs one and it can be found. `read`
    reads the memory of the process: its code."""
    finder = finder_of(copy.architecture, _Files(files), _Blocks(copy.blocks).word, read)
    if finder is None:
        return copy
    threads = [_completed(thread, finder) if thread.registers else thread for thread in copy.threads]
    return dataclasses.replace(copy, threads=tuple(threads))


def _completed(thread: ThreadCopy, finder: Finder) -> ThreadCopy:
    value = finder.frame_pointer(thread.pc, thread.sp)
    if value is None:
        return thread
    registers = list(thread.registers)
    registers[finder.unwind.frame_word] = value
    return dataclasses.replace(thread, registers=tuple(registers))


class Finder(NamedTuple):
    """Finds frame pointers in one process. `word` reads the copied stacks, `read` its code."""

    unwind: UnwindRegisters
    code: Code
    rules: Rules
    word: Callable[[int], Optional[int]]
    read: Read

    def frame_pointer(self, pc: int, sp: int) -> Optional[int]:
        """Of a thread. None where no frame needs it, and where it cannot be found."""
        unwind = self.unwind
        back = 0  # a return address may already belong to the next function
        for _ in range(_MOST_FRAMES):
            found = self.rules.row(pc - back)
            if found is None:
                return None
            start, row = found
            if row.register == unwind.frame:
                return self._in_function(start, pc, sp, row)
            if row.register != unwind.stack or unwind.frame in row.saved or unwind.return_address not in row.saved:
                return None
            frame = sp + row.offset
            caller = self.word(frame + row.saved[unwind.return_address])
            if not caller:
                return None
            pc, sp, back = caller, frame, 1
        return None

    def _in_function(self, start: int, pc: int, sp: int, row: Row) -> Optional[int]:
        """Of the function at `start`, whose part of the stack begins at `sp`."""
        room = self.code.room_below_frame(self.read(start, min(_MOST_CODE, pc - start)) or b"")
        if room is None or (sp + room) % self.unwind.alignment:
            return None
        value = sp + room
        if value + row.offset + min(row.saved.values(), default=0) < sp:
            return None  # it has saved more than its beginning has room for: it makes room in several steps
        back = row.saved.get(self.unwind.return_address, self.unwind.below_frame)
        address = self.word(value + row.offset + back)
        return value if address and self.code.calls(address, start, self.read) else None


def finder_of(
    row: Optional[Architecture], rules: Rules, word: Callable[[int], Optional[int]], read: Read
) -> Optional[Finder]:
    """None where the code of such a machine is not read."""
    code = code_of(row)
    return Finder(row.unwind, code, rules, word, read) if row and row.unwind and code else None


class _Blocks:
    """Words of the copied stacks."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = sorted(blocks)
        self._starts = [block.address for block in self._blocks]

    def word(self, address: int) -> Optional[int]:
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0 or address + 8 > self._blocks[index].end:
            return None
        block = self._blocks[index]
        return int.from_bytes(block.data[address - block.address : address - block.address + 8], "little")


class _Files:
    """Unwind rules out of the files of a process; each file is opened when an address in it is asked for."""

    def __init__(self, files: Sequence[MappedFile]) -> None:
        self._files = sorted((one for one in files if not one.problem), key=lambda one: one.start)
        self._starts = [one.start for one in self._files]
        self._tables: Dict[str, Optional[UnwindTable]] = {}
        self._rows: Dict[int, Optional[Tuple[int, Row]]] = {}
        self._left = _SECONDS

    def row(self, address: int) -> Optional[Tuple[int, Row]]:
        if address not in self._rows:
            begun = time.thread_time()
            self._rows[address] = self._look_up(address) if self._left > 0 else None
            self._left -= time.thread_time() - begun
        return self._rows[address]

    def _look_up(self, address: int) -> Optional[Tuple[int, Row]]:
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._files[index].end:
            return None
        file = self._files[index]
        if file.opens_as not in self._tables:
            self._tables[file.opens_as] = _table(file.opened) if file.opened is not None else None
        table = self._tables[file.opens_as]
        try:
            entry = table.entry(address - file.bias) if table is not None else None
        except (ValueError, IndexError, OverflowError, struct.error):
            return None
        row = row_at(entry, address - file.bias) if entry is not None else None
        return None if entry is None or row is None else (entry.start + file.bias, row)


def _table(file: Opened) -> Optional[UnwindTable]:
    try:
        with file.stream() as stream:
            return UnwindTable(file.mapped(), ElfSymbols(stream).sections)
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        return None
