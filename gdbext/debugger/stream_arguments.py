"""The stream or event that a frame was called with: by debug information, on the stack, or by the code of the call."""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

import gdb

from gdbext.analysis.call_argument import Constant, Instruction, argument
from gdbext.debugger import compat
from gdbext.debugger.memory import TargetMemory
from gdbext.debugger.tensor_access import symbol_at
from gdbext.debugger.values import read_variable
from gdbext.knowledge.stream_calls import REGISTERS, CallRow
from gdbext.model.missing import Maybe, Missing

_WORD = (1 << 64) - 1
_LONGEST_CODE = 64 << 10  # bytes of a function before a call that are disassembled
_OFFSET = re.compile(r"\+ (\d+) in section ")
BY_NAME, BY_STACK, BY_CODE = "argument", "the stack", "code of the call"


def argument_of(frame: gdb.Frame, function: str, row: CallRow, memory: TargetMemory) -> Tuple[Maybe[int], str]:
    """The handle, and how it is known. `row.argument` is a number."""
    value, how = _passed(frame, function, row, memory)
    if isinstance(value, Missing) or row.offset < 0:
        return value, how
    inside = _word(value + row.offset, memory)
    return inside, how


def _passed(frame: gdb.Frame, function: str, row: CallRow, memory: TargetMemory) -> Tuple[Maybe[int], str]:
    named = read_variable(frame, row.name)
    if isinstance(named, int):
        return named & _WORD, BY_NAME
    assert row.argument is not None
    caller = frame.older()
    if caller is None:
        return Missing("the calling frame cannot be read"), ""
    if row.argument >= len(REGISTERS):
        place = _register(caller, "sp")
        if isinstance(place, Missing):
            return place, ""
        return _word(place + 8 * (row.argument - len(REGISTERS)), memory), BY_STACK
    value = _by_code(caller, function, REGISTERS[row.argument], memory)
    return value, BY_CODE if isinstance(value, int) else ""


def _by_code(caller: gdb.Frame, function: str, register: str, memory: TargetMemory) -> Maybe[int]:
    code = _code_before(caller)
    if isinstance(code, Missing):
        return code
    found = argument(code, function, register)
    if isinstance(found, Constant):
        return found.value
    if isinstance(found, Missing):
        return found
    value = _register(caller, found.register)
    for offset in found.offsets:
        value = value if isinstance(value, Missing) else _word(value + offset, memory)
    return value


def _code_before(caller: gdb.Frame) -> Maybe[List[Instruction]]:
    """The instructions of the caller up to its call."""
    if caller.type() == gdb.INLINE_FRAME:  # its code stands in the function that it was inlined into
        return _code_before(_outer(caller))
    pc = caller.pc()
    start = _start(caller, pc)
    if start is None or not start < pc <= start + _LONGEST_CODE:
        return Missing("without debug information the argument is not known, nor where the calling function begins")
    try:
        with compat.settings({"disassembly-flavor": "att"}):
            rows = caller.architecture().disassemble(start, pc - 1)
    except (gdb.error, RuntimeError):
        return Missing("the code of the caller cannot be read")
    if not rows or rows[-1]["addr"] + rows[-1]["length"] != pc:
        return Missing("the code of the caller cannot be read")
    return [Instruction(int(row["addr"]), str(row["asm"])) for row in rows]


def _outer(frame: gdb.Frame) -> gdb.Frame:
    here: Optional[gdb.Frame] = frame
    while here is not None and here.type() == gdb.INLINE_FRAME:
        frame, here = here, here.older()
    return here or frame


def _start(frame: gdb.Frame, pc: int) -> Optional[int]:
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
    try:
        return int(frame.read_register(name)) & _WORD
    except (gdb.error, ValueError):
        return Missing("a register of the calling frame is not known")


def _word(address: int, memory: TargetMemory) -> Maybe[int]:
    data = memory.read(address & _WORD, 8)
    return Missing(f"unreadable memory at {address & _WORD:#x}") if data is None else int.from_bytes(data, "little")
