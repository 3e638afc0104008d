"""Which object file an address lies in, for live processes and for core files alike.

gdb.solib_name knows only what the dynamic linker listed and is empty for a core without the linker's pages; the map of
the process also names what was mapped by hand, deleted, or is the vdso.
"""

from __future__ import annotations

import functools
import mmap
from typing import Callable, Iterable, Optional, Tuple

from gdbext.capture.cores.core_file import files_of
from gdbext.capture.elf.layout import HEADER, PT_LOAD, header_of
from gdbext.capture.elf.object_file import file_reader, segments_of
from gdbext.capture.memory.maps import Mapping, MemoryMap, read_maps
from gdbext.model.errors import GdbextError

_ET_EXEC, _ET_DYN = 2, 3
_UNKNOWN = (_ET_DYN, 0)


Row = Tuple[int, int, int, str, Optional[str]]
"""Start, end, offset in the file, its path as the process sees it, and by what name it is opened here."""


class Modules:
    """Object files of one address space."""

    def __init__(self, memory: MemoryMap, opens: Callable[[str], Optional[str]] = lambda path: path) -> None:
        """`opens` says by which path a file is opened here; None: it is not."""
        self._memory, self._opens = memory, opens
        # What a file's first page is mapped at; the later mappings of the same file count from there.
        self._bases = {(m.path, m.start - m.offset): m.start for m in memory if m.is_file and m.offset == 0}

    @classmethod
    def of_process(cls, pid: int) -> Modules:
        """Those of a running process; empty when its map cannot be read."""
        try:
            return cls(read_maps(pid), lambda path: f"/proc/{pid}/root{path}")
        except OSError:
            return cls(MemoryMap([]))

    @classmethod
    def of_core(cls, path: str) -> Modules:
        """Those that a core's NT_FILE note lists; empty when it has none."""
        try:
            return cls(MemoryMap(files_of(path)))
        except GdbextError:
            return cls(MemoryMap([]))

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> Modules:
        """Those that somebody found before."""
        found = list(rows)
        opens = {path: name for *_, path, name in found}
        # As in a core, every entry counts as code.
        mappings = [Mapping(start, end, "r-xp", at, "", 0, path) for start, end, at, path, _ in found]
        return cls(MemoryMap(mappings), opens.get)

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
        return mapping.file, pc - (base - self._of_file(mapping)[1] if base is not None else 0)

    def _base_of(self, mapping: Mapping) -> Optional[int]:
        """Where the first page of the file lies; None for a program linked to a fixed address."""
        if self._of_file(mapping)[0] == _ET_EXEC:
            return None
        base = self._bases.get((mapping.path, mapping.start - mapping.offset))
        if base is None:  # lld and mold: text is mapped a page further up than its file offset says
            below = [
                start for (path, _), start in self._bases.items() if path == mapping.path and start <= mapping.start
            ]
            base = max(below, default=mapping.start - mapping.offset)
        return base

    def _of_file(self, mapping: Mapping) -> Tuple[int, int]:
        path = self._opens(mapping.file)
        return _kind_and_first(path) if path else _UNKNOWN


@functools.lru_cache(maxsize=4096)
def _kind_and_first(path: str) -> Tuple[int, int]:
    """e_type (ET_EXEC: linked to a fixed address), and the page of the first PT_LOAD's address, which is not 0 for such
    a program and for prelinked libraries; (ET_DYN, 0) for what cannot be read (deleted files)."""
    read = file_reader(path)
    header = header_of(read(0, HEADER.size))
    if header is None:
        return _UNKNOWN
    first = min((segment.address for segment in segments_of(read) if segment.kind == PT_LOAD), default=0)
    return header.kind, first & -mmap.PAGESIZE
