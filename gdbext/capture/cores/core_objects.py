"""The program and libraries of a core file, found on this machine by their build-ids; never another build in silence.

Looked for, in this order: what the user named, below the given system root, the path that the core recorded, beside the
core, /usr/lib/debug/.build-id.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.cores.core_file import CoreFile
from gdbext.capture.elf.layout import MAGIC, PT_LOAD
from gdbext.capture.elf.object_file import HEADERS, Reader, build_id_of, bytes_reader, segments_of
from gdbext.capture.memory.auxiliary_vector import auxiliary
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.symbols.mapped_libraries import MappedFile, mapped_file, unknown_file
from gdbext.safe_open.kept_open_files import Opened, Shelf
from gdbext.safe_open.regular_files import Identity, Refused

_AT_ENTRY = 9
_DEBUG = "/usr/lib/debug/.build-id"
_SHOWN = 12  # digits of a build-id


class Object(NamedTuple):
    """Where one file of the core is found. Without `opens_as` it is not used: `problem` says why."""

    path: str  # as the process saw it
    opens_as: Optional[str]
    build_id: Optional[str] = None
    problem: Optional[str] = None
    unchecked: bool = False  # taken by its path and the sizes of its segments alone
    identity: Optional[Identity] = None  # of the file that was found


class CoreObjects:
    """The files of one core. `sysroot`: a folder with the files of its machine; `program`: its executable."""

    def __init__(
        self,
        core: CoreFile,
        sysroot: Optional[str] = None,
        program: Optional[str] = None,
        shelf: Optional[Shelf] = None,
    ) -> None:
        self._shelf = shelf or Shelf()
        self._core, self._sysroot, self._given = core, sysroot, program
        self.maps: MemoryMap = core.maps()
        self._files: Dict[str, List[Mapping]] = {}
        for mapping in core.notes.files:
            self._files.setdefault(mapping.file, []).append(mapping)
        entry = self.maps.find(auxiliary(core.notes.auxv).get(_AT_ENTRY, 0))
        self.program = entry.file if entry is not None and entry.is_file else ""
        self._found: Dict[str, Object] = {}
        core.behind = self._behind

    def find(self, path: str) -> Object:
        """Where the file of this path is."""
        if path not in self._found:
            self._found[path] = self._look(path)
        return self._found[path]

    def opens(self, path: str) -> Optional[str]:
        """Where to open a file of the process; None when it is not here, or is another build."""
        return self.find(path).opens_as

    def describe(self, mapping: Mapping) -> Optional[MappedFile]:
        """The file around a mapping. `None` when it is no ELF file, as far as one can tell without it."""
        found = self.find(mapping.file)
        if found.opens_as is None and not self._is_object(mapping.file):
            return None
        opened = self._opened(found)
        content = opened.read if opened else self._first_page(mapping.file)
        file = mapped_file(
            mapping, content, found.opens_as or mapping.file, found.problem, opened, self._core.notes.page
        )
        if file is None and found.opens_as is None and not content(0, 4) and found.problem:
            return unknown_file(mapping, mapping.file, found.problem)
        return file if file is None else replace(file, build_id=found.build_id or file.build_id)

    def _opened(self, found: Object) -> Optional[Opened]:
        """The file that was found, if it still lies there."""
        try:
            return self._shelf.open(found.opens_as, found.identity) if found.opens_as else None
        except OSError:
            return None

    def _is_object(self, path: str) -> bool:
        """Also data (locales, fonts, models) is mapped, and a core does not always say which memory is code."""
        named = path == self.program or ".so" in os.path.basename(path)
        return named or self._first_page(path)(0, 4) == MAGIC

    def opened_maps(self) -> MemoryMap:
        """The memory map with the paths of the files that were found in place of those that the process saw."""
        named = {path: self.opens(path) for path in self._files}
        return MemoryMap([one._replace(path=named.get(one.file) or "") if one.is_file else one for one in self.maps])

    @property
    def unchecked(self) -> Tuple[str, ...]:
        """Files that were taken without a proof that they are the right build."""
        return tuple(found.path for found in self._found.values() if found.unchecked)

    def _first_page(self, path: str) -> Reader:
        """The beginning of a file as the core has it."""
        starts = [mapping.start for mapping in self._files.get(path, ()) if mapping.offset == 0]
        return bytes_reader(self._core.present(starts[0], HEADERS) if starts else b"")

    def _look(self, path: str) -> Object:
        first = self._first_page(path)
        wanted = build_id_of(first, segments_of(first))
        others: List[str] = []
        present = False
        for candidate in self._candidates(path, wanted):
            try:
                opened = Shelf().open(candidate)
            except OSError as error:
                if isinstance(error, (Refused, TimeoutError)):
                    others.append(f"{candidate} is not read: {error.strerror}")
                continue
            read, identity = opened.read, opened.identity
            if read(0, 4) != MAGIC:
                continue
            present = True
            if wanted is not None or first(0, 4) == MAGIC:
                found = build_id_of(read, segments_of(read))
                if found == wanted if wanted is not None else read(0, HEADERS) == first(0, HEADERS):
                    return Object(path, candidate, wanted, identity=identity)
                others.append(f"{candidate} is another build" + _id(found))
            elif _fits(read, self._files.get(path, ()), self._core.notes.page):
                return Object(path, candidate, unchecked=True, identity=identity)
            else:
                others.append(f"{candidate} does not match the mapped file")
        if present:
            return Object(path, None, wanted, f"{others[0]}; the core has{_id(wanted) or ' none of this file'}")
        refused = f" ({others[0]})" if others else ""
        return Object(path, None, wanted, f"{path} is not here{_id(wanted)}{refused}")

    def _candidates(self, path: str, wanted: Optional[str]) -> Iterator[str]:
        if self._given and path == self.program:
            yield self._given
        roots = [self._sysroot.rstrip("/")] if self._sysroot else []
        for root in roots:
            yield root + path
            yield os.path.join(root, os.path.basename(path))
        yield path
        core_folder = os.path.dirname(os.path.abspath(self._core.path))
        yield os.path.join(core_folder, os.path.basename(path))
        yield core_folder + path
        if wanted:
            for root in [*roots, ""]:
                yield f"{root}{_DEBUG}/{wanted[:2]}/{wanted[2:]}"
                yield f"{root}{_DEBUG}/{wanted[:2]}/{wanted[2:]}.debug"

    def _behind(self, address: int, size: int) -> Optional[bytes]:
        """Memory that the core leaves out because nobody wrote to it: from the file, when that is the right one."""
        mapping = self.maps.find(address)
        found = self.find(mapping.file) if mapping is not None and mapping.is_file else None
        if mapping is None or found is None or found.opens_as is None or found.opens_as.endswith(".debug"):
            return None
        opened = self._opened(found)
        size = min(size, mapping.end - address)
        return (opened.read(mapping.offset + address - mapping.start, size) or None) if opened else None


def _id(build_id: Optional[str]) -> str:
    return f" (build-id {build_id[:_SHOWN]})" if build_id else ""


def _fits(read: Reader, mappings: Sequence[Mapping], page: int) -> bool:
    """Whether the segments of a file are as long as what was mapped of it, code above all."""
    loads = [segment for segment in segments_of(read) if segment.kind == PT_LOAD]
    ends = {(segment.offset & -page, segment.offset + segment.size + page - 1 & -page) for segment in loads}
    seen = {(mapping.offset, mapping.offset + mapping.end - mapping.start) for mapping in mappings}
    return bool(loads) and len(seen & ends) >= min(2, len(ends))
