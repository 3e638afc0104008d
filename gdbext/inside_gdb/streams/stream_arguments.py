"""The stream or event that a frame was called with: by debug information, on the stack, or by the code of the call."""

from __future__ import annotations

import platform
import re
from typing import List, Mapping, Optional, Tuple

import gdb

from gdbext.capture.machine import gdb_registers
from gdbext.capture.machine.disassembly import disassembly_here
from gdbext.capture.machine.interface import Constant, Disassembly, Instruction
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import TargetMemory
from gdbext.inside_gdb.base.modules import Modules
from gdbext.inside_gdb.base.selected_frame import register
from gdbext.inside_gdb.base.symbols import symbol_at
from gdbext.inside_gdb.base.values import read_variable
from gdbext.inside_gdb.stacks.unwind_tables import unwind_entry
from gdbext.knowledge.vendor_calls.stream_calls import CallRow
from gdbext.model.missing import Maybe, Missing

_WORD = (1 << 64) - 1
_LONGEST_CODE = 64 << 10  # bytes of a function before a call that are disassembled
_OFFSET = re.compile(r"\+ (\d+) in section ")
BY_NAME, BY_STACK, BY_CODE = "argument", "the stack", "code of the call"


class Arguments:
    """Of the calls in one inferior, whose modules these are."""

    def __init__(self, memory: TargetMemory, modules: Modules) -> None:
        self._memory, self._modules = memory, modules

    def of(self, frame: gdb.Frame, function: str, row: CallRow) -> Tuple[Maybe[int], str]:
        """The handle, and how it is known. `row.argument` is a number."""
        value, how = self._passed(frame, function, row)
        if isinstance(value, Missing) or row.offset < 0:
            return value, how
        return _word(value + row.offset, self._memory), how

    def _passed(self, frame: gdb.Frame, function: str, row: CallRow) -> Tuple[Maybe[int], str]:
        named = read_variable(frame, row.name)
        if isinstance(named, int):
            return named & _WORD, BY_NAME
        assert row.argument is not None
        caller = frame.older()
        if caller is None:
            return Missing("the calling frame cannot be read"), ""
        names, reader = gdb_registers(), disassembly_here()
        if names is None or reader is None:
            return Missing(f"without debug information arguments are not known on a {platform.machine()} machine"), ""
        if row.argument >= len(names.arguments):
            place = _register(caller, "sp")
            if isinstance(place, Missing):
                return place, ""
            return _word(place + 8 * (row.argument - len(names.arguments)), self._memory), BY_STACK
        value = self._by_code(reader, _outer(caller), function, row.argument)
        return value, BY_CODE if isinstance(value, int) else ""

    def in_register(self, frame: gdb.Frame, function: str, number: int) -> Maybe[int]:
        """What a frame was called with, by number of the register: as the code of its caller got it. `function` is
        the name as the linker has it."""
        caller, reader = frame.older(), disassembly_here()
        if caller is None or reader is None:
            return Missing("the calling frame cannot be read")
        return self._by_code(reader, _outer(caller), function, number)

    def _by_code(self, reader: Disassembly, caller: gdb.Frame, function: str, argument: int) -> Maybe[int]:
        code = self._code_before(caller, reader.settings)
        found = code if isinstance(code, Missing) else reader.argument(code, function, argument)
        if isinstance(found, Missing):
            return found
        if isinstance(found, Constant):
            return found.value
        value = _register(caller, found.register)
        for offset in found.offsets:
            value = value if isinstance(value, Missing) else _word(value + offset, self._memory)
        return value if isinstance(value, Missing) else (value + found.plus) & _WORD

    def _code_before(self, caller: gdb.Frame, settings: Mapping[str, str]) -> Maybe[List[Instruction]]:
        """The instructions of the caller up to its call."""
        pc = caller.pc()
        start = _known_start(caller, pc) or self._unwind_start(pc)
        if start is None or not start < pc <= start + _LONGEST_CODE:
            return Missing("without debug information the argument is not known, nor where the calling function begins")
        try:
            with compat.settings(settings):
                rows = caller.architecture().disassemble(start, pc - 1)
        except (gdb.error, RuntimeError):
            return Missing("the code of the caller cannot be read")
        if not rows or rows[-1]["addr"] + rows[-1]["length"] != pc:
            return Missing("the code of the caller cannot be read")
        return [Instruction(int(row["addr"]), str(row["asm"])) for row in rows]

    def _unwind_start(self, pc: int) -> Optional[int]:
        """Where the function begins by the unwind table of its file, which stays where all symbols are stripped."""
        entry = unwind_entry(self._memory, self._modules, pc - 1)
        return None if entry is None else entry.start


def _outer(frame: gdb.Frame) -> gdb.Frame:
    here: Optional[gdb.Frame] = frame
    while here is not None and here.type() == gdb.INLINE_FRAME:
        frame, here = here, here.older()
    return here or frame


def _known_start(frame: gdb.Frame, pc: int) -> Optional[int]:
    """Where the function begins that a return address lies in."""
    function = frame.function()
    if function is not None and function.symtab is not None:
        block = gdb.block_for_pc(pc - 1)
        while block is not None and block.function is None:
            block = block.superblock
        while block is not None and block.superblock is not None and block.superblock.function is not None:
            block = block.superblock  # out of what was inlined
        if block is not None and block.function is not None:
            return int(block.start)
    found = _OFFSET.search(symbol_at(pc - 1) or "")
    return pc - 1 - int(found.group(1)) if found else None


def _register(frame: gdb.Frame, name: str) -> Maybe[int]:
    value = register(frame, name)
    return Missing("a register of the calling frame is not known") if value is None else value


def _word(address: int, memory: TargetMemory) -> Maybe[int]:
    data = memory.read(address & _WORD, 8)
    return Missing(f"unreadable memory at {address & _WORD:#x}") if data is None else int.from_bytes(data, "little")
