"""Writes excerpts (capture/symbols/excerpt.py): an ELF file with code sections that have no content, unwind entries,
symbols.

One file may hold the excerpts of many libraries, each at the addresses where one process has it. gdb looks through all
its files for each frame, and through the sections of all of them for each file that it is given: 1,600 libraries that
are in use took it 49 s of CPU (gdb 13.1); as one file they take as long as ten.
"""

from __future__ import annotations

import bisect
from typing import NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.elf.layout import ET_DYN, ET_EXEC, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, SYMBOL
from gdbext.capture.elf.reader import Section
from gdbext.capture.elf.unwind_entries import relocate_entries
from gdbext.capture.elf.writer import Names, SectionFile

MOST_SECTIONS = 0xF000
"""Code sections that one file can have: symbols tell theirs in 16 bits, whose last values mean something else."""

_ADDRESSES = (1 << 64) - 1


class Symbol(NamedTuple):
    """A row of a symbol table."""

    name: bytes
    info: int
    other: int
    value: int
    size: int


class Parts(NamedTuple):
    """What the excerpt of one file consists of, with addresses as linked."""

    machine: int
    fixed: bool  # linked to a fixed address
    code: Tuple[Section, ...]
    unwind: bytes
    symbols: Tuple[Symbol, ...]
    debug: int = 0  # bytes of debug information that are left out
    named: bool = True  # False: there was no time to look for symbols
    exported: bool = False  # all other symbols are in the file with the debug information


class Placed(NamedTuple):
    """An excerpt, and what to add to its addresses."""

    parts: Parts
    bias: int


def write_file(path: str, libraries: Sequence[Placed]) -> None:
    """Write one ELF file. They are of one machine, lie apart from each other, and have MOST_SECTIONS at most."""
    file, texts = SectionFile(), Names()
    table, unwind = bytearray(SYMBOL.size), bytearray()
    for parts, bias in libraries:
        first = file.count
        homes = _Homes(parts.code)
        for section in parts.code:
            file.mark(section.name, section.flags, section.address + bias & _ADDRESSES, section.size)
        for name, info, other, value, size in parts.symbols:
            home = homes.of(value)
            if home is not None:
                table += SYMBOL.pack(texts.add(name), info, other, first + home, value + bias & _ADDRESSES, size)
        unwind += relocate_entries(parts.unwind, bias)
    file.put(b".eh_frame", SHT_PROGBITS, bytes(unwind) + bytes(4))  # not loaded: it has no address, and hides nothing
    file.put(b".symtab", SHT_SYMTAB, bytes(table), link=file.count + 1, entry=SYMBOL.size)
    file.put(b".strtab", SHT_STRTAB, bytes(texts.data))
    parts = libraries[0].parts
    file.write(path, ET_EXEC if len(libraries) == 1 and parts.fixed else ET_DYN, parts.machine)


class _Homes:
    """Which code section an address lies in."""

    def __init__(self, code: Sequence[Section]) -> None:
        self._ordered = sorted((section.address, section.address + section.size, at) for at, section in enumerate(code))
        self._starts = [start for start, _, _ in self._ordered]

    def of(self, address: int) -> Optional[int]:
        """Its position among them; None when it is in none."""
        index = bisect.bisect_right(self._starts, address) - 1
        return self._ordered[index][2] if index >= 0 and address < self._ordered[index][1] else None
