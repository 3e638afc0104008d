"""Who reads the code of which machine, as bytes."""

from __future__ import annotations

from typing import Optional

from gdbext.capture.machine import Architecture, this_machine
from gdbext.capture.machine.interface import Code
from gdbext.capture.machine.x86_64.call_constants import addresses_before, constants_before
from gdbext.capture.machine.x86_64.calls import calls_function
from gdbext.capture.machine.x86_64.prologue import room_below_frame
from gdbext.capture.machine.x86_64.throw_calls import throw_sites

_CODES = {"x86_64": Code(room_below_frame, calls_function, constants_before, addresses_before, throw_sites)}


def code_of(row: Optional[Architecture]) -> Optional[Code]:
    """Of a machine; None where nobody reads it."""
    return _CODES.get(row.name) if row is not None else None


def code_here() -> Optional[Code]:
    """Of this machine."""
    return code_of(this_machine())
