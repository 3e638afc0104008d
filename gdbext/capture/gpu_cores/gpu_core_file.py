"""A GPU core as a file: its sections and tables, without a belief in what it says of itself.

A full device has a million sections, four for each thread. Kept are those that somebody asks for.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import zlib
from typing import BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.elf.layout import EM_CUDA, ET_CORE, HEADER, SECTION, SHT_STRTAB, header_of
from gdbext.capture.elf.reader import section_rows
from gdbext.knowledge.runtimes import gpu_core_format as form
from gdbext.model.errors import GdbextError, refused_as
from gdbext.model.text.ranges import counted
from gdbext.safe_open import files

GZIP = b"\x1f\x8b"
MOST_SECTIONS = 1 << 22
_MOST_UNPACKED = 2 << 30  # bytes of a compressed core
_MOST_TABLE = 256 << 20
_PIECE = 1 << 20
_KEPT = frozenset((*form.TABLES, form.IMAGE, form.RELOCATED_IMAGE, form.GLOBAL_MEMORY, SHT_STRTAB))


class CoreSection(NamedTuple):
    """`link` and `info`: the section with the table, and the row in it, that this one belongs to."""

    number: int
    kind: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    row_size: int


class GpuCoreFile:
    """The sections of an open file. Raises `ValueError` with the reason for what is no GPU core, or is cut off before
    its section headers."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.length = os.fstat(stream.fileno()).st_size
        start = stream.read(HEADER.size)
        if start.startswith(GZIP):
            raise ValueError("it is compressed; gunzip it first")
        if not start:
            raise ValueError("it is empty: the dump failed, or has not begun")
        header = header_of(start)
        if header is None:
            raise ValueError("not a GPU core: not a 64-bit ELF file")
        if header.kind != ET_CORE or header.machine != EM_CUDA:
            what = "a core file of a host process" if header.kind == ET_CORE else "an ELF file, but not a core file"
            raise ValueError(f"not a GPU core: {what} (ELF machine {header.machine}; a GPU core has {EM_CUDA})")
        self.problems: List[str] = []
        self._by_kind: Dict[int, List[CoreSection]] = {}
        self._children: Dict[Tuple[int, int, int], CoreSection] = {}
        self._read_sections(start)
        self._check_rows()

    def _read_sections(self, start: bytes) -> None:
        header = header_of(start)
        assert header is not None
        end = header.sections_at + header.section_count * header.section_size
        if end > self.length:
            raise ValueError(
                f"the GPU core is cut short: its section headers end at {end:,}, the file at {self.length:,} bytes;"
                " copy it again, or wait until the dump is complete"
            )
        cut_sections = total = 0
        self._titles, rows = section_rows(self.at, header, MOST_SECTIONS)
        for number, (_name, kind, _flags, address, offset, size, link, info, _align, row_size) in enumerate(rows):
            total += 1
            if kind not in _KEPT:
                cut_sections += offset + size > self.length and kind > 3
                continue
            one = CoreSection(number, kind, address, offset, size, link, info, row_size)
            if offset + size > self.length or size < 0:
                cut_sections += 1
                if kind != form.GLOBAL_MEMORY:
                    continue
            self._by_kind.setdefault(kind, []).append(one)
            self._children.setdefault((kind, link, info), one)
        if cut_sections:
            self.problems.append(
                f"the GPU core is cut short: {cut_sections:,} of its {counted(total, 'section')} lie beyond its end;"
                " the others were read"
            )

    def _check_rows(self) -> None:
        """Tables whose rows are too short for what we know of them are told once, and left out."""
        for kind, table in form.TABLES.items():
            wrong = {one.row_size for one in self.of(kind) if one.size and one.row_size < table.needed}
            if wrong:
                sizes = ", ".join(map(str, sorted(wrong)[:4]))
                self.problems.append(
                    f"its table of {table.title} has rows of {sizes} bytes; {table.needed} are needed: it is of a "
                    "driver that this release of gdbext does not know, or damaged"
                )

    def at(self, offset: int, size: int) -> bytes:
        """Bytes of the file. Raises `ValueError` where it is cut off."""
        if not (0 <= offset <= self.length and 0 <= size <= _MOST_TABLE):
            raise ValueError("an ELF table is damaged: it has no such size")
        self._stream.seek(offset)
        data = self._stream.read(size)
        if len(data) != size:
            raise ValueError("the GPU core is cut off")
        return data

    def of(self, kind: int) -> Sequence[CoreSection]:
        return self._by_kind.get(kind, ())

    def below(self, kind: int, parent: Optional[CoreSection], row: int) -> Optional[CoreSection]:
        """The section of that kind that belongs to a row of a table."""
        return None if parent is None else self._children.get((kind, parent.number, row))

    def rows(self, section: Optional[CoreSection]) -> Iterator[Dict[str, Optional[int]]]:
        """The rows of a table; none of one that is not there, or cannot be understood."""
        if section is None:
            return
        table = form.TABLES[section.kind]
        if section.row_size < table.needed:
            return
        data = self.at(section.offset, min(section.size, _MOST_TABLE))
        for at in range(0, len(data) - section.row_size + 1, section.row_size):
            yield table.row(data[at : at + section.row_size])

    def content(self, section: CoreSection) -> bytes:
        return self.at(section.offset, section.size)

    def text(self, offset: Optional[int]) -> str:
        """A name out of .strtab, which may be the table of the sections' own names too."""
        tables = [one for one in self.of(SHT_STRTAB) if one.number != self._titles] or self.of(SHT_STRTAB)
        for table in tables[:1]:
            if offset and offset < table.size:
                found = self.at(table.offset + offset, min(256, table.size - offset)).partition(b"\0")[0]
                return found.decode("utf-8", "replace")
        return ""


def open_core(path: str) -> BinaryIO:
    """The file, unpacked if it is compressed (CUDA_COREDUMP_GENERATION_FLAGS=gzip_compress). Raises `GdbextError`."""
    with refused_as(path):
        stream = files.stream(os.path.expanduser(path))
        if stream.read(2) != GZIP:
            stream.seek(0)
            return stream
        with stream:
            stream.seek(0)
            return _unpacked(path, stream)


def _unpacked(path: str, packed: BinaryIO) -> BinaryIO:
    """All of it in a file without a name; of one that is cut short, as far as it goes."""
    room = shutil.disk_usage(tempfile.gettempdir()).free // 2
    most = min(_MOST_UNPACKED, room)
    into = tempfile.TemporaryFile()  # noqa: SIM115 - the caller's
    try:
        with gzip.GzipFile(fileobj=packed) as source:
            while True:
                piece = source.read(_PIECE)
                if not piece:
                    break
                if into.tell() > most:
                    into.close()
                    raise GdbextError(
                        f"{path} is compressed, and has more than {most >> 20} MiB",
                        f"unpack it first: gunzip -k {path}",
                    )
                into.write(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        if not into.tell():
            into.close()
            raise GdbextError(f"{path} is compressed, and cut short or damaged", "copy it again") from None
    into.seek(0)
    return into


def is_complete(stream: BinaryIO) -> bool:
    """Whether a GPU core reaches its end: its section headers, written last, are in it. Of a compressed one nothing can
    tell that."""
    start = stream.read(HEADER.size)
    length = os.fstat(stream.fileno()).st_size
    header = header_of(start)
    if header is None:
        return start.startswith(GZIP)
    if not 0 < header.sections_at <= length:
        return False
    stream.seek(header.sections_at)
    first = stream.read(SECTION.size)
    if len(first) < SECTION.size:
        return False
    count = header.section_count or SECTION.unpack(first)[5]
    return bool(header.sections_at + count * SECTION.size <= length)
