"""The frame pointer (rbp) of a blocked x86-64 thread of which only sp and pc are known, by its stack.

Code that keeps its frame in rbp can be unwound only with rbp. Between the system call and the first function of that
kind nobody has saved it, or else it would be known; so it still holds that function's frame. How far that lies from sp
is what the first instructions of the function take off the stack. It counts only where a return address stands beside
it that belongs to a call of this very function, or to one by pointer.
"""

from __future__ import annotations

import bisect
import dataclasses
import struct
import time
from typing import Callable, Dict, Optional, Protocol, Sequence, Tuple

from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.libraries import MappedFile
from gdbext.capture.machine.x86_64.prologue import room_below_frame
from gdbext.capture.memory import Block
from gdbext.capture.stop import ProcessCopy, ThreadCopy
from gdbext.capture.unwind_entries import UnwindTable
from gdbext.capture.unwind_rules import Row, row_at
from gdbext.opener.shelf import Opened

Read = Callable[[int, int], Optional[bytes]]

_RBP, _RSP, _RA = 6, 7, 16  # DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36)
_RBP_WORD = 4  # of user_regs_struct (sys/user.h)
_MOST_FRAMES = 64
_MOST_CODE = 192  # bytes of a function that are looked at
_LONGEST_CALL = 7
_SECONDS = 5.0  # for all rules of a process: instructions of one may be as long as its author likes


class Code(Protocol):
    """What the files of a process say of an address in it."""

    def row(self, address: int) -> Optional[Tuple[int, Row]]:
        """Where its function begins, and how to unwind from there."""


def with_frame_pointers(copy: ProcessCopy, files: Sequence[MappedFile], read: Read) -> ProcessCopy:
    """The copy with rbp in the registers of its threads, where a frame needs it and it can be found. `read` reads the
    memory of the process: its code."""
    if copy.architecture is None or copy.architecture.name != "x86_64":
        return copy
    code, stacks = _Files(files), _Blocks(copy.blocks)
    threads = [_completed(thread, code, stacks.word, read) if thread.registers else thread for thread in copy.threads]
    return dataclasses.replace(copy, threads=tuple(threads))


def _completed(thread: ThreadCopy, code: Code, word: Callable[[int], Optional[int]], read: Read) -> ThreadCopy:
    value = frame_pointer(thread.pc, thread.sp, code, word, read)
    if value is None:
        return thread
    registers = list(thread.registers)
    registers[_RBP_WORD] = value
    return dataclasses.replace(thread, registers=tuple(registers))


def frame_pointer(pc: int, sp: int, code: Code, word: Callable[[int], Optional[int]], read: Read) -> Optional[int]:
    """The value of rbp. None where no frame needs it, and where it cannot be found. `word` reads the copied stacks."""
    back = 0  # a return address may already belong to the next function
    for _ in range(_MOST_FRAMES):
        found = code.row(pc - back)
        if found is None:
            return None
        start, row = found
        if row.register == _RBP:
            return _in_function(start, pc, sp, row, word, read)
        if row.register != _RSP or _RBP in row.saved or _RA not in row.saved:
            return None
        frame = sp + row.offset
        caller = word(frame + row.saved[_RA])
        if not caller:
            return None
        pc, sp, back = caller, frame, 1
    return None


def _in_function(
    start: int, pc: int, sp: int, row: Row, word: Callable[[int], Optional[int]], read: Read
) -> Optional[int]:
    """rbp in the function at `start`, whose part of the stack begins at `sp`."""
    room = room_below_frame(read(start, min(_MOST_CODE, pc - start)) or b"")
    if room is None or (sp + room) % 16:
        return None
    value = sp + room
    if value + row.offset + min(row.saved.values(), default=0) < sp:
        return None  # it has saved more than its beginning has room for: it makes room in several steps
    address = word(value + row.offset + row.saved.get(_RA, -8))
    return value if address and calls(address, start, read) else None


def calls(address: int, function: int, read: Read) -> bool:
    """Whether the instruction in front of a return address calls the function: itself, by a jump, or by a pointer."""
    code = read(address - _LONGEST_CALL, _LONGEST_CALL)
    if code is None:
        return False
    if code[2] == 0xE8:
        target = address + int.from_bytes(code[3:], "little", signed=True)
        if target == function or _jump(target, read) == function:
            return True
    if code[1:3] == b"\xff\x15":  # through a word of the global offset table
        return _pointer(address + int.from_bytes(code[3:], "little", signed=True), read) == function
    return any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 and _length(code[1 - size :]) == size - 1
               for size in (2, 3, 4, 6, 7))  # fmt: skip


def _length(operand: bytes) -> int:
    """Bytes of the operand of a call by pointer."""
    mode, register = operand[0] >> 6, operand[0] & 7
    sib = register == 4 and mode != 3
    if mode == 3:
        return 1
    if mode == 1:
        return 2 + sib
    base = operand[1] & 7 if sib and len(operand) > 1 else register
    return (5 if mode == 2 or base == 5 else 1) + sib


def _jump(address: int, read: Read) -> Optional[int]:
    """Where a stub jumps to: an entry of the procedure linkage table, a thunk."""
    code = read(address, 16) or b""
    code = code[4:] if code.startswith(b"\xf3\x0f\x1e\xfa") else code  # endbr64
    here = address + 16 - len(code)
    if code.startswith(b"\xf2"):  # bnd
        code, here = code[1:], here + 1
    if code.startswith(b"\xff\x25"):
        return _pointer(here + 6 + int.from_bytes(code[2:6], "little", signed=True), read)
    if code.startswith(b"\xe9"):
        return here + 5 + int.from_bytes(code[1:5], "little", signed=True)
    return None


def _pointer(address: int, read: Read) -> Optional[int]:
    data = read(address, 8)
    return None if data is None else int.from_bytes(data, "little")


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
        self._until = time.monotonic() + _SECONDS

    def row(self, address: int) -> Optional[Tuple[int, Row]]:
        if address not in self._rows:
            self._rows[address] = self._look_up(address)
        return self._rows[address]

    def _look_up(self, address: int) -> Optional[Tuple[int, Row]]:
        if time.monotonic() > self._until:
            return None
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
