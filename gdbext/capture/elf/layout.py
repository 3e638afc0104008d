"""The structs of 64-bit little-endian ELF files (elf(5)), for whoever reads or writes them: nobody else unpacks any.

By hand and not by pyelftools: that takes 2 to 6 ms for the segments and sections of a library (0.05 ms here), makes an
object of every symbol, and believes the sizes that a file says of itself. It reads DWARF for us (nccl_dwarf.py).
"""

from __future__ import annotations

from struct import Struct
from typing import Iterator, NamedTuple, Optional

MAGIC = b"\x7fELF"
OURS = b"\x7fELF\x02\x01"
"""64-bit, little-endian."""
HEADER = Struct("<16sHHIQQQIHHHHHH")
SEGMENT = Struct("<IIQQQQQQ")  # type, flags, offset, address, physical, size in the file, in memory, alignment
SECTION = Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, size of an entry
SYMBOL = Struct("<IBBHQQ")  # name, info, other, section, value, size
RELOCATION = Struct("<QQq")  # where, symbol << 32 | kind, addend
NOTE = Struct("<III")  # size of the name, of the data, type

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4
EM_CUDA = 190
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PF_X, PF_W, PF_R = 1, 2, 4
PN_XNUM = 0xFFFF
"""A number of segments that says: it stands in the first section header (`info`)."""
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_DYNSYM = 1, 2, 3, 4, 8, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
NT_GNU_BUILD_ID = 3


class Header(NamedTuple):
    """What stands at the beginning of a file."""

    identity: bytes
    kind: int  # ET_...
    machine: int
    version: int
    entry: int
    segments_at: int
    sections_at: int
    flags: int
    size: int
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    names: int  # number of the section with the names of sections


class Segment(NamedTuple):
    """What we need of a program header."""

    kind: int
    flags: int
    offset: int
    address: int  # as linked
    size: int  # in the file
    memory: int  # in memory


def header_of(data: bytes) -> Optional[Header]:
    """The header that the data begins with; None if the file is malformed or of another kind."""
    return None if len(data) < HEADER.size or not data.startswith(OURS) else Header(*HEADER.unpack_from(data))


def segments_in(table: bytes) -> Iterator[Segment]:
    """Those of a table of program headers, as far as it reaches."""
    whole = table[: len(table) // SEGMENT.size * SEGMENT.size]
    for kind, flags, offset, address, _physical, size, memory, _alignment in SEGMENT.iter_unpack(whole):
        yield Segment(kind, flags, offset, address, size, memory)


def padded(size: int) -> int:
    """Bytes that so many take in a note."""
    return size + 3 & -4
