"""Writes excerpts (capture/excerpt.py): an ELF file with code sections that have no content, unwind entries, symbols.

One file may hold the excerpts of many libraries, each at the addresses where one process has it. gdb looks through all
its files for each frame, and through the sections of all of them for each file that it is given: 1,600 libraries that
are in use took it 49 s of CPU (gdb 13.1); as one file they take as long as ten.
"""

from __future__ import annotations

import bisect
import struct
from typing import List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.elf.reader import SYMTAB, Section
from gdbext.capture.unwind_entries import moved

MOST_SECTIONS = 0xF000
"""Code sections that one file can have: symbols tell theirs in 16 bits, whose last values mean something else."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_PROGBITS, _STRTAB, _NOBITS = 1, 3, 8
_EXEC, _DYN = 2, 3
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
    names, texts = _Names(), _Names()
    rows: List[Tuple[int, ...]] = [(0,) * 10]
    table, unwind = bytearray(_SYMBOL.size), bytearray()
    for parts, bias in libraries:
        first = len(rows)
        homes = _Homes(parts.code)
        for section in parts.code:
            address = section.address + bias & _ADDRESSES
            rows.append((names.add(section.name), _NOBITS, section.flags, address, 0, section.size, 0, 0, 16, 0))
        for name, info, other, value, size in parts.symbols:
            home = homes.of(value)
            if home is not None:
                table += _SYMBOL.pack(texts.add(name), info, other, first + home, value + bias & _ADDRESSES, size)
        unwind += moved(parts.unwind, bias)
    strings = len(rows) + 2
    blob = bytearray()

    def put(name: bytes, kind: int, data: bytes, link: int = 0, entry: int = 0) -> None:
        number = names.add(name)
        blob.extend(bytes(-len(blob) % 8))
        data = data or bytes(names.data)
        info = 1 if link else 0  # of a symbol table: none of its symbols is local
        rows.append((number, kind, 0, 0, _HEADER.size + len(blob), len(data), link, info, 8, entry))
        blob.extend(data)

    put(b".eh_frame", _PROGBITS, bytes(unwind) + bytes(4))  # not loaded: it has no address, and hides nothing
    put(b".symtab", SYMTAB, bytes(table), link=strings, entry=_SYMBOL.size)
    put(b".strtab", _STRTAB, bytes(texts.data))
    put(b".shstrtab", _STRTAB, b"")  # its own name comes first
    blob.extend(bytes(-len(blob) % 8))
    parts = libraries[0].parts
    header = _HEADER.pack(
        b"\x7fELF\x02\x01\x01" + bytes(9), _EXEC if len(libraries) == 1 and parts.fixed else _DYN, parts.machine, 1, 0,
        0, _HEADER.size + len(blob), 0, _HEADER.size, 56, 0, _SECTION.size, len(rows), len(rows) - 1,
    )  # fmt: skip
    with open(path, "wb") as stream:
        stream.write(header + blob + b"".join(_SECTION.pack(*row) for row in rows))


class _Homes:
    """Which code section an address lies in."""

    def __init__(self, code: Sequence[Section]) -> None:
        self._ordered = sorted((section.address, section.address + section.size, at) for at, section in enumerate(code))
        self._starts = [start for start, _, _ in self._ordered]

    def of(self, address: int) -> Optional[int]:
        """Its position among them; None when it is in none."""
        index = bisect.bisect_right(self._starts, address) - 1
        return self._ordered[index][2] if index >= 0 and address < self._ordered[index][1] else None


class _Names:
    """A string table."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, name: bytes) -> int:
        at = len(self.data)
        self.data += name + b"\0"
        return at
