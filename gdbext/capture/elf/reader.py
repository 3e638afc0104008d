"""A few symbols of an ELF file, found without reading the rest of it (64-bit little-endian; layout: elf(5)).

Tables are scanned as bytes: an object per symbol, as pyelftools makes them, takes a hundred times as long. They may
have gigabytes, so they are gone through in pieces. Nothing that a file says of itself is believed: sizes, numbers and
offsets are its author's, and what it costs to read them has limits.
"""

from __future__ import annotations

import sys
import time
from array import array
from typing import BinaryIO, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.elf.layout import (
    ET_EXEC,
    HEADER,
    PT_LOAD,
    SECTION,
    SEGMENT,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_SYMTAB,
    SYMBOL,
    Header,
    Segment,
    header_of,
    segments_in,
)

CODE = SHF_ALLOC | SHF_EXECINSTR
NAMING = frozenset((0, 1, 2, 10))  # STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC: what may name code
_MAX_TABLE = 256 << 20  # bytes that are read at once
_TEXT_PIECE = 8 << 20  # bytes of a string table
_ROWS_PIECE = 1 << 16  # rows of a symbol table
_NO_FILE_SIZE = 1 << 62  # no file is as long
_MOST_SECTIONS = 1 << 17
_MOST_NAMES = 16 << 20  # bytes of all names of sections
_LONGEST_NAME = 256
_MOST_FOUND = 1 << 12  # entries of a string table that end with a name
_SECONDS = 5.0  # of the processor, that names are looked for in one file


Reader = Callable[[int, int], bytes]
"""(offset, size) -> bytes of a file; raises `ValueError` where it is cut off."""
SectionRow = Tuple[int, ...]
"""name, type, flags, address, offset, size, link, info, alignment, size of an entry"""


class Section(NamedTuple):
    """One section header. `name` is resolved."""

    name: bytes
    kind: int
    address: int
    offset: int
    size: int
    link: int
    flags: int = 0


class ElfSymbols:
    """Sections, loaded segments and symbols of an open file. Raises `ValueError` on a file that is no such ELF."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        header = header_of(self.at(0, HEADER.size))
        if header is None:
            raise ValueError("not a 64-bit little-endian ELF file")
        self.machine = header.machine
        self.fixed = header.kind == ET_EXEC  # linked to a fixed address
        self.segments = tuple(self._loaded(header.segments_at, header.segment_size, header.segment_count))
        self.sections = tuple(self._sections(header))

    def at(self, offset: int, size: int) -> bytes:
        """Bytes of the file. Raises `ValueError` when it is cut off there, or on a size beyond all measure."""
        if offset >= _NO_FILE_SIZE or size > _MAX_TABLE:
            raise ValueError("an ELF table is damaged: it has no such size")
        self._stream.seek(offset)
        data = self._stream.read(size)
        if len(data) != size:
            raise ValueError("the ELF file is cut off")
        return data

    def _loaded(self, offset: int, size: int, count: int) -> List[Segment]:
        if count and size != SEGMENT.size:
            raise ValueError("an ELF table is damaged: program headers of another size")
        return [one for one in segments_in(self.at(offset, count * SEGMENT.size)) if one.kind == PT_LOAD]

    def _sections(self, header: Header) -> Iterator[Section]:
        self._headers = header.sections_at
        names, rows = section_rows(self.at, header, _MOST_SECTIONS)
        listed = list(rows)
        if names >= len(listed):
            return
        if listed[names][5] > _MOST_NAMES:
            raise ValueError("an ELF table is damaged: names of sections without an end")
        texts = self.at(listed[names][4], listed[names][5])
        for name, kind, flags, address, at, length, link, *_rest in listed:
            if at >= _NO_FILE_SIZE or (length >= _NO_FILE_SIZE and kind != SHT_NOBITS):
                raise ValueError("an ELF table is damaged: a section of unknown size")
            end = texts.find(b"\0", name, name + _LONGEST_NAME)
            yield Section(texts[name : end if end >= 0 else name], kind, address, at, length, link, flags)

    def header_of(self, number: int) -> int:
        """Where the header of a section stands in the file."""
        return self._headers + number * SECTION.size

    def content(self, section: Section) -> bytes:
        """The bytes of a section. Raises `ValueError` when the file is cut off."""
        return self.at(section.offset, section.size)

    def section(self, name: str) -> Optional[Section]:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name.encode()), None)

    def section_address(self, name: str) -> Optional[int]:
        """Where a section is loaded, as linked."""
        found = self.section(name)
        return None if found is None else found.address

    def look_up(self, names: Iterable[str]) -> Dict[str, int]:
        """Values of those of `names` that are defined; exported symbols first, then all others. Raises `ValueError`
        where the file is cut off, or takes too long."""
        wanted = tuple(names)
        found: Dict[str, int] = {}
        until = time.thread_time() + _SECONDS
        for kind in (SHT_DYNSYM, SHT_SYMTAB):
            for table in self.sections:
                if table.kind == kind and len(found) < len(wanted) and table.link < len(self.sections):
                    found = {**self._scan(table, wanted, until), **found}
        return found

    def _scan(self, table: Section, names: Sequence[str], until: float) -> Dict[str, int]:
        offsets = self._positions(self.sections[table.link], names, until)
        found: Dict[str, int] = {}
        count = table.size // SYMBOL.size if offsets else 0
        for first in range(0, count, _ROWS_PIECE):
            _in_time(until)
            rows = self.at(table.offset + first * SYMBOL.size, min(_ROWS_PIECE, count - first) * SYMBOL.size)
            words = array("I")
            words.frombytes(rows)
            if sys.byteorder != "little":
                words.byteswap()
            if offsets.keys().isdisjoint(words[0 :: SYMBOL.size // 4]):
                continue
            for name, _info, _other, section, value, _size in SYMBOL.iter_unpack(rows):
                if name in offsets and section and value:
                    found[offsets[name]] = value
        return found

    def _positions(self, texts: Section, names: Sequence[str], until: float) -> Dict[int, str]:
        """Where one of the names ends an entry of a string table: linkers let a name be the tail of a longer one."""
        wanted = [(name, name.encode() + b"\0") for name in names]
        overlap = max((len(text) for _, text in wanted), default=1) - 1
        found: Dict[int, str] = {}
        for first in range(0, texts.size, _TEXT_PIECE):
            _in_time(until)
            piece = self.at(texts.offset + first, min(_TEXT_PIECE + overlap, texts.size - first))
            for name, text in wanted:
                at = piece.find(text)
                while at >= 0:
                    found[first + at] = name
                    if len(found) > _MOST_FOUND:
                        raise ValueError("an ELF table is damaged: a name occurs in it again and again")
                    at = piece.find(text, at + 1)
        return found


def section_rows(at: Reader, header: Header, most: int) -> Tuple[int, Iterator[SectionRow]]:
    """The number of the section with the names, and all section headers as they stand. `at` as `ElfSymbols.at`."""
    offset, size, count, names = header.sections_at, header.section_size, header.section_count, header.names
    if offset and not count:  # more than 65,279: the first section header has the numbers
        first = SECTION.unpack(at(offset, SECTION.size))
        count, names = first[5], first[6]
    if count and (size != SECTION.size or count > most):
        raise ValueError("an ELF table is damaged: too many sections, or of another size")
    return names, _in_pieces(at, offset, count)


def _in_pieces(at: Reader, offset: int, count: int) -> Iterator[SectionRow]:
    for first in range(0, count, _ROWS_PIECE):
        rows = min(_ROWS_PIECE, count - first)
        yield from SECTION.iter_unpack(at(offset + first * SECTION.size, rows * SECTION.size))


def _in_time(until: float) -> None:
    if time.thread_time() > until:
        raise ValueError(f"its symbols were not found within {_SECONDS:g} s")


def tables_of(sections: Iterable[Section]) -> List[Section]:
    """The symbol tables, in the order in which their symbols are numbered."""
    return [section for section in sections if section.kind in (SHT_SYMTAB, SHT_DYNSYM)]
