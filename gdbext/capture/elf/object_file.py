"""What an object file says of itself: where its segments lie, and which build it is (64-bit little-endian; elf(5)).

Read by a function, so that a file, its first page in the memory of a process, and a core file serve alike.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence

from gdbext.capture.maps import Mapping
from gdbext.opener.shelf import Shelf

HEADERS = 4096
"""Bytes at the beginning of a file that tell one build from another."""

_NOTES_LIMIT = 64 << 10
_PAGE = mmap.PAGESIZE
_SEGMENTS_LIMIT = 256
LOAD, _NOTE, _EXECUTE = 1, 4, 1  # PT_LOAD, PT_NOTE, PF_X (elf.h)
_BUILD_ID = 3  # NT_GNU_BUILD_ID
_SEGMENT = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr

Reader = Callable[[int, int], bytes]
"""(offset, size) -> bytes of a file, shorter where it ends."""


def file_reader(path: str) -> Reader:
    """Reads a regular file; nothing of what is none, or cannot be opened."""
    try:
        return Shelf().open(path).read
    except OSError:
        return bytes_reader(b"")


def bytes_reader(data: bytes) -> Reader:
    """Reads the beginning of a file that is in memory."""
    return lambda offset, size: data[offset : offset + size]


@dataclass(frozen=True)
class Segment:
    """What we need of a program header (elf.h: Elf64_Phdr)."""

    kind: int
    flags: int
    offset: int
    address: int  # as linked
    size: int  # in the file
    memory: int  # in memory


def segments_of(read: Reader) -> List[Segment]:
    """The program headers of a 64-bit little-endian ELF file; empty when it is something else."""
    header = read(0, 64)
    if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    raw = read(table, _SEGMENT.size * min(count, _SEGMENTS_LIMIT)) if size == _SEGMENT.size else b""
    whole = raw[: len(raw) // _SEGMENT.size * _SEGMENT.size]
    return [
        Segment(kind, flags, offset, address, in_file, in_memory)
        for kind, flags, offset, address, _, in_file, in_memory, _ in _SEGMENT.iter_unpack(whole)
    ]


def bias_of(segments: Sequence[Segment], mapping: Mapping) -> Optional[int]:
    """Address in memory minus address as linked, by the code segment that the mapping shows."""
    for segment in segments:
        first = segment.offset & -_PAGE
        if (
            segment.kind == LOAD
            and segment.flags & _EXECUTE
            and first <= mapping.offset < segment.offset + segment.size
        ):
            return mapping.start - (segment.address & -_PAGE) - (mapping.offset - first)
    return None


def build_id_of(read: Reader, segments: Sequence[Segment]) -> Optional[str]:
    """The build id in hexadecimal, as `file` and debuginfod write it."""
    for segment in segments:
        notes = read(segment.offset, min(segment.size, _NOTES_LIMIT)) if segment.kind == _NOTE else b""
        at = 0
        while at + 12 <= len(notes):
            name_size, size, kind = struct.unpack_from("<III", notes, at)
            data = at + 12 + (name_size + 3 & -4)
            if kind == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0" and data + size <= len(notes):
                return notes[data : data + size].hex()
            at = data + (size + 3 & -4)
    return None
