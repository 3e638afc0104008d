"""Which object file an address lies in, for live processes and for core files alike.

gdb.solib_name knows only what the dynamic linker listed and is empty for a core without the linker's pages; the map of
the process also names what was mapped by hand, deleted, or is the vdso.
"""

from __future__ import annotations

import functools
import struct
from typing import Iterator, List, Optional, Tuple

from gdbext.capture.maps import Mapping, MemoryMap, read_maps

_ELF_HEADER = 64
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_NOTE = 1, 4
_NT_FILE = 0x46494C45
_NOTES_LIMIT = 64 << 20  # thousands of threads with vector registers take tens of MB


class Modules:
    """Object files of one address space."""

    def __init__(self, memory: MemoryMap) -> None:
        self._memory = memory
        # What a file's first page is mapped at; the later mappings of the same file count from there.
        self._bases = {(m.path, m.start - m.offset): m.start for m in memory if m.is_file and m.offset == 0}

    @classmethod
    def of_process(cls, pid: int) -> Modules:
        """Those of a running process; empty when its map cannot be read."""
        try:
            return cls(read_maps(pid))
        except OSError:
            return cls(MemoryMap([]))

    @classmethod
    def of_core(cls, path: str) -> Modules:
        """Those that a core's NT_FILE note lists; empty when it has none."""
        try:
            return cls(MemoryMap(list(_mapped_files(path))))
        except (OSError, struct.error, ValueError):
            return cls(MemoryMap([]))

    @property
    def paths(self) -> Tuple[str, ...]:
        """All files that are mapped."""
        return tuple(dict.fromkeys(mapping.file for mapping in self._memory if mapping.is_file))

    def find(self, pc: int) -> Tuple[Optional[str], Optional[int]]:
        """Path of the file at `pc`, and `pc` as addr2line takes it for it; (None, None) where there is no file."""
        mapping = self._memory.find(pc)
        if mapping is None or not (mapping.is_file or mapping.path.startswith("[v")):
            return None, None
        if not mapping.is_file:
            return mapping.path, pc - mapping.start
        base = self._base_of(mapping)
        return mapping.file, pc - (base - first_address(mapping.file) if base is not None else 0)

    def _base_of(self, mapping: Mapping) -> Optional[int]:
        """Where the first page of the file lies; None for a program linked to a fixed address."""
        if is_fixed(mapping.file):
            return None
        base = self._bases.get((mapping.path, mapping.start - mapping.offset))
        if base is None:  # lld and mold: text is mapped a page further up than its file offset says
            below = [
                start for (path, _), start in self._bases.items() if path == mapping.path and start <= mapping.start
            ]
            base = max(below, default=mapping.start - mapping.offset)
        return base


@functools.lru_cache(maxsize=4096)
def _kind_and_first(path: str) -> Tuple[int, int]:
    """e_type, and the page of the first PT_LOAD's address; (ET_DYN, 0) for what cannot be read (deleted files)."""
    try:
        with open(path, "rb") as file:
            header = file.read(_ELF_HEADER)
            if header[:5] != b"\x7fELF\x02":
                return _ET_DYN, 0
            kind = struct.unpack_from("<H", header, 16)[0]
            first = min((load[2] for load in _program_headers(file, header) if load[0] == _PT_LOAD), default=0)
            return kind, first & ~0xFFF
    except (OSError, struct.error):
        return _ET_DYN, 0


def is_fixed(path: str) -> bool:
    """A program that is not position independent: its addresses are those of the file."""
    return _kind_and_first(path)[0] == _ET_EXEC


def first_address(path: str) -> int:
    """The address that the file gives its own first page: 0, but for prelinked libraries and fixed programs."""
    return _kind_and_first(path)[1]


def _program_headers(file, header: bytes) -> Iterator[Tuple[int, int, int, int]]:  # type: ignore[no-untyped-def]
    """(type, offset, address, size in file) of each program header (elf(5), 64-bit little-endian)."""
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    file.seek(table)
    data = file.read(size * count)
    for at in range(0, len(data) - size + 1, size):
        kind, _, offset, address, _, filesize = struct.unpack_from("<IIQQQQ", data, at)
        yield kind, offset, address, filesize


def _mapped_files(path: str) -> Iterator[Mapping]:
    """The entries of the NT_FILE note of a core file (count, page size, then start, end and page offset of each)."""
    with open(path, "rb") as core:
        header = core.read(_ELF_HEADER)
        if header[:5] != b"\x7fELF\x02":
            return
        for kind, offset, _, size in list(_program_headers(core, header)):
            if kind == _PT_NOTE:
                core.seek(offset)
                yield from _entries(core.read(min(size, _NOTES_LIMIT)))


def _entries(notes: bytes) -> Iterator[Mapping]:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        at += 12 + (name_size + 3 & ~3)
        if kind == _NT_FILE:
            yield from _files_of(notes[at : at + size])
        at += size + 3 & ~3


def _files_of(note: bytes) -> Iterator[Mapping]:
    count, page = struct.unpack_from("<QQ", note, 0)
    count = min(count, len(note) // 24)
    names: List[bytes] = note[16 + 24 * count :].split(b"\0")
    for index in range(min(count, len(names))):
        start, end, offset = struct.unpack_from("<QQQ", note, 16 + 24 * index)
        # The note does not say the protection; "r-xp" lets every entry count as code.
        yield Mapping(start, end, "r-xp", offset * page, "", 0, names[index].decode("utf-8", "surrogateescape"))
