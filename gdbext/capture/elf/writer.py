"""Writes ELF files: cores of notes and memory (capture/cores/minicore.py), and of sections
(capture/elf/excerpt_file.py)."""

from __future__ import annotations

from typing import BinaryIO, List, Sequence, Tuple

from gdbext.capture.elf.layout import (
    ET_CORE,
    HEADER,
    NOTE,
    OURS,
    PF_R,
    PF_W,
    PT_LOAD,
    PT_NOTE,
    SECTION,
    SEGMENT,
    SHT_NOBITS,
    SHT_STRTAB,
    padded,
)

MOST_SEGMENTS = 0xFFFE
"""e_phnum has 16 bits, its last value means something else; one is for the notes."""
_IDENTITY = OURS + b"\x01" + bytes(9)
_OWNER = b"CORE"


def note(kind: int, data: bytes) -> bytes:
    """One note of a core file."""
    name = _OWNER + b"\0"
    return (
        NOTE.pack(len(name), len(data), kind)
        + name.ljust(padded(len(name)), b"\0")
        + data.ljust(padded(len(data)), b"\0")
    )


def write_core(stream: BinaryIO, machine: int, notes: bytes, memory: Sequence[Tuple[int, bytes]]) -> None:
    """A core file: its notes, then memory, (address, bytes) each, MOST_SEGMENTS pieces at most."""
    count = len(memory) + 1
    stream.write(
        HEADER.pack(_IDENTITY, ET_CORE, machine, 1, 0, HEADER.size, 0, 0, HEADER.size, SEGMENT.size, count, 0, 0, 0)
    )
    offset = HEADER.size + count * SEGMENT.size
    stream.write(SEGMENT.pack(PT_NOTE, 0, offset, 0, 0, len(notes), 0, 4))
    offset += len(notes)
    for address, data in memory:
        stream.write(SEGMENT.pack(PT_LOAD, PF_R | PF_W, offset, address, 0, len(data), len(data), 1))
        offset += len(data)
    stream.write(notes)
    for _, data in memory:
        stream.write(data)


class Names:
    """A string table."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, name: bytes) -> int:
        """Where the name stands in it."""
        at = len(self.data)
        self.data += name + b"\0"
        return at


class SectionFile:
    """An object file without segments, put together section by section."""

    def __init__(self) -> None:
        self._names = Names()
        self._rows: List[Tuple[int, ...]] = [(0,) * 10]
        self._blob = bytearray()

    @property
    def count(self) -> int:
        """The number that the next section gets."""
        return len(self._rows)

    def mark(self, name: bytes, flags: int, address: int, size: int) -> None:
        """A section that has addresses, and no content."""
        self._rows.append((self._names.add(name), SHT_NOBITS, flags, address, 0, size, 0, 0, 16, 0))

    def put(self, name: bytes, kind: int, data: bytes, link: int = 0, entry: int = 0) -> None:
        """A section that is not loaded. `link` and `entry` of a symbol table: its names, and bytes of a symbol."""
        self._add(self._names.add(name), kind, data, link, entry)

    def _add(self, name: int, kind: int, data: bytes, link: int = 0, entry: int = 0) -> None:
        self._align()
        info = 1 if link else 0  # of a symbol table: none of its symbols is local
        self._rows.append((name, kind, 0, 0, HEADER.size + len(self._blob), len(data), link, info, 8, entry))
        self._blob += data

    def _align(self) -> None:
        self._blob += bytes(-len(self._blob) % 8)

    def write(self, path: str, kind: int, machine: int) -> None:
        """The file, with the names of its sections as the last one."""
        own = self._names.add(b".shstrtab")
        self._add(own, SHT_STRTAB, bytes(self._names.data))
        self._align()
        header = HEADER.pack(
            _IDENTITY, kind, machine, 1, 0, 0, HEADER.size + len(self._blob), 0, HEADER.size, SEGMENT.size, 0,
            SECTION.size, len(self._rows), len(self._rows) - 1,
        )  # fmt: skip
        with open(path, "wb") as stream:
            stream.write(header + self._blob + b"".join(SECTION.pack(*row) for row in self._rows))


def forget_name(file: BinaryIO, header: int) -> None:
    """Give the section whose header stands there no name: nobody finds it then."""
    file.seek(header)
    file.write(bytes(4))  # sh_name, its first member
