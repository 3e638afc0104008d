"""What depends on the machine of a process: its registers, and what its code says. One folder for each architecture.

Registers are here; who reads code asks code.py, who reads what gdb prints of it disassembly.py: so that a look does not
load what only an attached gdb needs. A new architecture is a folder and a row in each of the three.
"""

from __future__ import annotations

import platform
from typing import Optional

from gdbext.capture.machine.aarch64.registers import AARCH64
from gdbext.capture.machine.interface import Architecture, GdbRegisters
from gdbext.capture.machine.x86_64.registers import X86_64
from gdbext.model.errors import GdbextError

__all__ = ["ARCHITECTURES", "SMALLEST_PAGE", "Architecture", "gdb_registers", "known_machine"]
__all__ += ["machine_of", "name_of", "this_machine"]

ARCHITECTURES = (X86_64, AARCH64)
SMALLEST_PAGE = 4096
"""Bytes. A page has as many, or a multiple: a piece of this size, at a multiple of it, lies in one page on any machine.
The size of a page here is mmap.PAGESIZE; in a core, its NT_FILE note says it."""
_OTHERS = {3: "i386", 8: "MIPS", 21: "ppc64", 22: "s390x", 40: "32-bit ARM", 243: "RISC-V", 258: "LoongArch"}


def this_machine() -> Optional[Architecture]:
    """The row of the machine we run on; `None` when there is none."""
    return next((row for row in ARCHITECTURES if row.name == platform.machine()), None)


def known_machine() -> Architecture:
    """The same. Raises `GdbextError` where there is none."""
    row = this_machine()
    if row is None:
        why = f"processes of a {platform.machine()} machine cannot be read: no row for it"
        raise GdbextError(why, "`gdbext diagnose FILE` reads stacks that another tool wrote")
    return row


def machine_of(number: int) -> Optional[Architecture]:
    """The row of an ELF file's machine (e_machine)."""
    return next((row for row in ARCHITECTURES if row.e_machine == number), None)


def name_of(number: int) -> str:
    """What people call an ELF file's machine."""
    row = machine_of(number)
    return row.name if row is not None else _OTHERS.get(number, f"type {number}")


def gdb_registers() -> Optional[GdbRegisters]:
    """What gdb calls the registers of this machine."""
    row = this_machine()
    return row.gdb if row is not None else None
