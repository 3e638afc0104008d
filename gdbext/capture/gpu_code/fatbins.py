"""Fat binaries of CUDA in an object file, by their headers: which code for which GPU, and whether it is compressed.

nvcc puts one container for each source file into a section; an entry of it is a cubin, PTX, or code for the linker. The
names of the sections are those of fatbinary_section.h. The fields of an entry are published by
n-eiling/cuda-fatbin-decompression and jiegec/fatbinary, and were compared with what nvcc 13.0 writes for each option.
Nothing that a header says of itself is believed.
"""

from __future__ import annotations

from struct import Struct
from typing import Callable, Iterable, Iterator, NamedTuple

from gdbext.capture.elf.reader import Section

SECTIONS = (b".nv_fatbin", b"__nv_relfatbin")
"""Linked code, and code that is linked when the program is (-rdc)."""
PTX, CUBIN, LINKER_CODE = 1, 2, 8
DEBUG, LZ4, ZSTD = 0x2, 0x2000, 0x8000
_KINDS = (PTX, CUBIN, LINKER_CODE)
_SPECIFIC = ((0x100000, "a"), (0x200000, "f"))
"""Flags of code for one GPU alone, and for one family: sm_90a, sm_100f."""
_MAGIC = 0xBA55ED50
_SIGN = _MAGIC.to_bytes(4, "little")
_CONTAINER = Struct("<IHHQ")  # magic, version, size of this header, of what follows
_ENTRY = Struct("<HHIQI8xIIIQ8xQ")
# kind, version, size of this header, of the content; of it when it is packed, (options, version), GPU, (name), flags,
# size of it unpacked
_ALIGNMENT = 8
_PIECE = 1 << 20
_MOST_ENTRIES = 1 << 17  # libcublasLt.so.13 has some 5,000
_LONGEST = 1 << 32  # bytes of a section that are looked through

Read = Callable[[int, int], bytes]
"""(offset, size) -> bytes of the file, shorter where it ends."""


class Entry(NamedTuple):
    """Code for one GPU. `offset` is where it stands in the file."""

    kind: int
    gpu: str  # "90a"
    flags: int
    offset: int
    size: int
    unpacked: int  # bytes; 0 where it is not packed

    @property
    def packed(self) -> bool:
        return bool(self.flags & (LZ4 | ZSTD))


class Damaged(ValueError):
    """A header that cannot be."""


def entries_in(read: Read, sections: Iterable[Section]) -> Iterator[Entry]:
    """Those of all containers, in the order of the file. Raises `Damaged` behind what could be read."""
    count = 0
    for section in sections:
        if section.name in SECTIONS:
            for entry in _of_section(read, section.offset, section.offset + min(section.size, _LONGEST)):
                count += 1
                if count > _MOST_ENTRIES:
                    raise Damaged(f"more than {_MOST_ENTRIES} pieces of GPU code")
                yield entry


def _of_section(read: Read, at: int, end: int) -> Iterator[Entry]:
    while True:
        at = _next_container(read, at, end)
        head = read(at, _CONTAINER.size)
        if at + _CONTAINER.size > end or len(head) < _CONTAINER.size:
            return
        _magic, _version, own, size = _CONTAINER.unpack(head)
        if own < _CONTAINER.size or size > end - at - own:
            raise Damaged("a fat binary is cut off, or its header is damaged")
        yield from _of_container(read, at + own, at + own + size)
        at += own + size


def _next_container(read: Read, at: int, end: int) -> int:
    """Where the next one begins; the linker fills up between them. `end` where there is none."""
    while at + _CONTAINER.size <= end:
        piece = read(at, min(_PIECE, end - at))
        found = piece.find(_SIGN)
        if found >= 0:
            return at + found
        if len(piece) < len(_SIGN):
            break
        at += len(piece) - len(_SIGN) + 1
    return end


def _of_container(read: Read, at: int, end: int) -> Iterator[Entry]:
    while at + _ENTRY.size <= end:
        head = read(at, _ENTRY.size)
        if len(head) < _ENTRY.size:
            raise Damaged("a fat binary is cut off")
        kind, _version, own, size, packed, gpu, _name, _length, flags, unpacked = _ENTRY.unpack(head)
        if not any(head):
            return  # filled up with zeros
        if own < _ENTRY.size or own > end - at or size > end - at - own or packed > size:
            raise Damaged("an entry of a fat binary is damaged")
        if kind in _KINDS:
            suffix = next((letter for flag, letter in _SPECIFIC if flags & flag), "")
            is_packed = bool(flags & (LZ4 | ZSTD))
            length = packed if is_packed and packed else size
            yield Entry(kind, f"{gpu}{suffix}", flags, at + own, length, unpacked if is_packed else 0)
        at += own + size
