"""What an object file says of itself: where its segments lie, and which build it is (64-bit little-endian; elf(5)).

Read by a function, so that a file, its first page in the memory of a process, and a core file serve alike.
"""

from __future__ import annotations

import mmap
from typing import Callable, Iterable, List, Optional, Sequence

from gdbext.capture.elf.layout import (
    HEADER,
    NOTE,
    NT_GNU_BUILD_ID,
    PF_X,
    PT_LOAD,
    PT_NOTE,
    SEGMENT,
    Segment,
    header_of,
    padded,
    segments_in,
)
from gdbext.capture.memory.maps import Mapping
from gdbext.safe_open.kept_open_files import Shelf

HEADERS = 4096
"""Bytes at the beginning of a file that tell one build from another."""

_NOTES_LIMIT = 64 << 10
_SEGMENTS_LIMIT = 256

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


def segments_of(read: Reader) -> List[Segment]:
    """The program headers of a 64-bit little-endian ELF file; empty when it is something else."""
    header = header_of(read(0, HEADER.size))
    if header is None or header.segment_size != SEGMENT.size:
        return []
    return list(segments_in(read(header.segments_at, SEGMENT.size * min(header.segment_count, _SEGMENTS_LIMIT))))


def bias_of(segments: Sequence[Segment], mapping: Mapping, page: int = mmap.PAGESIZE) -> Optional[int]:
    """Address in memory minus address as linked, by the code segment that the mapping shows. `page`: bytes of a page
    where the process ran."""
    for segment in segments:
        first = segment.offset & -page
        if segment.kind == PT_LOAD and segment.flags & PF_X and first <= mapping.offset < segment.offset + segment.size:
            return mapping.start - (segment.address & -page) - (mapping.offset - first)
    return None


def bias_among(segments: Sequence[Segment], fixed: bool, mappings: Iterable[Mapping]) -> Optional[int]:
    """The same of a file by all of its mappings: by its code, else (code that was moved to large pages is no file's any
    more) by what begins where a segment does. None where it is not mapped the way it says. `fixed`: it has to lie where
    it was linked to."""
    shown = list(mappings)
    found = [bias_of(segments, mapping) for mapping in shown if mapping.executable]
    found += [_begins(segments, mapping) for mapping in shown]
    bias = next((one for one in found if one is not None), None)
    return None if fixed and bias else bias


def _begins(segments: Sequence[Segment], mapping: Mapping) -> Optional[int]:
    for segment in segments:
        if segment.kind == PT_LOAD and segment.offset & -mmap.PAGESIZE == mapping.offset:
            return mapping.start - (segment.address & -mmap.PAGESIZE)
    return None


def build_id_of(read: Reader, segments: Sequence[Segment]) -> Optional[str]:
    """The build id in hexadecimal, as `file` and debuginfod write it."""
    for segment in segments:
        notes = read(segment.offset, min(segment.size, _NOTES_LIMIT)) if segment.kind == PT_NOTE else b""
        at = 0
        while at + NOTE.size <= len(notes):
            name_size, size, kind = NOTE.unpack_from(notes, at)
            data = at + NOTE.size + padded(name_size)
            named = notes.startswith(b"GNU\0", at + NOTE.size)
            if kind == NT_GNU_BUILD_ID and named and data + size <= len(notes):
                return notes[data : data + size].hex()
            at = data + padded(size)
    return None
