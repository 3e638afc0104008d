"""Who reads what gdb prints of the code of which machine."""

from __future__ import annotations

from typing import Optional

from gdbext.capture.machine import this_machine
from gdbext.capture.machine.interface import Disassembly
from gdbext.capture.machine.x86_64.call_argument import argument_operand
from gdbext.capture.machine.x86_64.clean_up import referenced_addresses
from gdbext.capture.machine.x86_64.stored_argument import stored_at

_DISASSEMBLIES = {
    "x86_64": Disassembly({"disassembly-flavor": "att"}, argument_operand, stored_at, referenced_addresses)
}


def disassembly_here() -> Optional[Disassembly]:
    """Of this machine; None where nobody reads it."""
    row = this_machine()
    return _DISASSEMBLIES.get(row.name) if row is not None else None
