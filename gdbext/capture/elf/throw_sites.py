"""Where the code of an object file throws: the calls of __cxa_throw, found in its bytes.

A breakpoint on such a call costs nothing until that very `throw` runs; one on __cxa_throw would stop every exception of
the process. Found without symbols and without debug information.
"""

from __future__ import annotations

import platform
from typing import Iterable, Iterator, List, Set

from gdbext.capture.elf.layout import RELOCATION, SHF_EXECINSTR, SHT_DYNSYM, SHT_PROGBITS, SHT_RELA, SYMBOL
from gdbext.capture.elf.reader import ElfSymbols
from gdbext.capture.machine.code import code_here
from gdbext.capture.machine.interface import CodePiece, ThrowSite
from gdbext.safe_open import files
from gdbext.safe_open.kept_open_files import Shelf

THROW = "__cxa_throw"
LARGEST_CODE = 256 << 20
"""Bytes of code that are searched in one file: about a second for 200 MB."""


def file_contains(path: str, texts: Iterable[bytes]) -> bool:
    """Whether any of the texts stands in the file. Raises OSError."""
    try:
        data = Shelf().open(path).mapped()
    except ValueError:  # an empty file
        return False
    with data:
        return any(data.find(text) >= 0 for text in texts)


def throw_sites(path: str) -> List[ThrowSite]:
    """All calls of __cxa_throw in a file, in order of their addresses; none where it throws nothing itself.

    Raises OSError, and ValueError for what is no ELF file, has too much code, or where this machine's code is not read.
    """
    machine = code_here()
    if machine is None:
        raise ValueError(f"how {platform.machine()} code throws is not known")
    search = machine.throw_sites
    with files.stream(path) as file:
        elf = ElfSymbols(file)
        slots = set(_slots(elf))
        own = set(elf.look_up([THROW]).values())  # with libstdc++ inside
        code = [section for section in elf.sections if section.flags & SHF_EXECINSTR and section.kind == SHT_PROGBITS]
        if sum(section.size for section in code) > LARGEST_CODE:
            raise ValueError(f"more than {LARGEST_CODE >> 20} MiB of code")
        if not slots and not own:
            return []
        return search([CodePiece(section.address, elf.content(section)) for section in code], slots, own)


def _slots(elf: ElfSymbols) -> Iterator[int]:
    """Addresses in the file's tables that the loader fills with the address of __cxa_throw."""
    wanted: Set[int] = set()
    for table in elf.sections:
        if table.kind == SHT_DYNSYM and table.link < len(elf.sections):
            names = elf.content(elf.sections[table.link])
            data = elf.content(table)
            for index, symbol in enumerate(SYMBOL.iter_unpack(data[: len(data) // SYMBOL.size * SYMBOL.size])):
                at = symbol[0]
                if names[at : at + len(THROW) + 1] == THROW.encode() + b"\0":
                    wanted.add(index)
    for table in elf.sections:
        if table.kind == SHT_RELA and wanted:
            data = elf.content(table)
            for where, info, _addend in RELOCATION.iter_unpack(data[: len(data) // RELOCATION.size * RELOCATION.size]):
                if info >> 32 in wanted:
                    yield where
