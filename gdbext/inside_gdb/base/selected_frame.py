"""The frames of the selected thread one by one, their registers and variables."""

from __future__ import annotations

import platform
from typing import Dict, Iterator, Optional

import gdb

from gdbext.capture.machine import gdb_registers
from gdbext.model.errors import GdbextError

_WORD = (1 << 64) - 1
_MOST_VARIABLES = 512  # of one frame


def newest_frames(most: int) -> Iterator[gdb.Frame]:
    """From the innermost outwards, at most so many. Raises gdb.error where they cannot be read."""
    frame: Optional[gdb.Frame] = gdb.newest_frame() if most > 0 else None
    for _ in range(most):
        if frame is None:
            return
        yield frame
        frame = frame.older()


def argument_register(number: int) -> str:
    """What gdb calls the register of an argument at a function's first instruction. Raises `GdbextError` on a machine
    whose registers are not known."""
    names = gdb_registers()
    if names is None:
        raise GdbextError(f"which registers pass arguments on a {platform.machine()} machine is not known")
    return names.arguments[number]


def register(frame: gdb.Frame, name: str) -> Optional[int]:
    """As an unsigned number. `sp` is gdb's own name for the stack pointer on every architecture."""
    try:
        return int(frame.read_register(name)) & _WORD
    except (gdb.error, ValueError):
        return None


def variables_of(frame: gdb.Frame) -> Dict[str, gdb.Value]:
    """Arguments and locals by name, inner scopes first, then the members of `this`."""
    found: Dict[str, gdb.Value] = {}
    block: Optional[gdb.Block] = frame.block()
    while block is not None:
        for symbol in block:
            if len(found) >= _MOST_VARIABLES:
                return found
            if (symbol.is_argument or symbol.is_variable) and symbol.name not in found:
                try:
                    found[symbol.name] = symbol.value(frame)
                except (gdb.error, RuntimeError, ValueError, TypeError):
                    continue
        if block.function is not None:
            break
        block = block.superblock
    return found
