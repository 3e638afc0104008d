"""Which mapped object files the copied stacks run through, and where each of them lies."""

from __future__ import annotations

import bisect
import errno
import mmap
import os
from array import array
from dataclasses import dataclass
from typing import Dict, List, Optional, Protocol, Sequence, Set, Tuple

from gdbext.capture.maps import Mapping
from gdbext.capture.memory import ProcessMemory
from gdbext.capture.object_file import (
    HEADERS,
    LOAD,
    Reader,
    bias_of,
    build_id_of,
    bytes_reader,
    file_reader,
    segments_of,
)
from gdbext.capture.stop import ProcessCopy

_PAGE = mmap.PAGESIZE
_WAY = "; gdbext run by root of the host (CAP_SYS_ADMIN) reads it all the same"


@dataclass(frozen=True)
class MappedFile:
    """An object file with code in use. `start` and `end` span its segments; address = `bias` + address as linked."""

    path: str  # as the process sees it
    bias: int
    start: int
    end: int
    opens_as: str  # where we can open it: the same path, or through /proc/PID of a container
    build_id: Optional[str] = None
    deleted: bool = False
    problem: Optional[str] = None  # e.g. another file lies under this path by now


class Finder(Protocol):
    """Says which file a mapping is of."""

    def describe(self, mapping: Mapping) -> Optional[MappedFile]:
        """`None` when it is no ELF file."""


def libraries_on_stacks(copy: ProcessCopy, finder: Optional[Finder] = None) -> Tuple[MappedFile, ...]:
    """The files whose code any word of the copied stacks or registers points to, in address order.

    More than what unwinding needs (words left over from earlier calls count), never less. What is mapped but is no
    object file is left out. `finder` finds the files, by default those of the running process. Reads the first
    page of each file, from disk and from the process. 100 threads take about
    4 ms, and 120 ms when each of them has 64 KiB of stack in which no word occurs twice.
    """
    words = words_of(copy)
    finder = finder or _Finder(copy)
    found: Dict[Tuple[str, int], MappedFile] = {}
    for mapping in copy.maps:
        if mapping.executable and mapping.is_file and _hits(words, mapping):
            file = finder.describe(mapping)
            if file:
                found.setdefault((file.path, file.bias), file)
    return tuple(found.values())


def words_of(copy: ProcessCopy) -> List[int]:
    """Every different word of stacks and registers, sorted."""
    words: Set[int] = set()
    for block in copy.blocks:
        skip = -block.address % 8
        aligned = array("Q")
        aligned.frombytes(block.data[skip : skip + ((len(block.data) - skip) & ~7)])
        words.update(aligned)
    for thread in copy.threads:
        words.update(thread.registers)
    return sorted(words)


def _hits(words: Sequence[int], mapping: Mapping) -> bool:
    index = bisect.bisect_left(words, mapping.start)
    return index < len(words) and words[index] < mapping.end


class _Finder:
    """Finds the file behind a mapping, as far as it still can be had."""

    def __init__(self, copy: ProcessCopy) -> None:
        self._pid = copy.pid
        self._memory = ProcessMemory(copy.pid)
        self._root = _root_of(copy.pid)
        self._headers: Dict[Tuple[str, int], List[int]] = {}  # where the beginning of a file is mapped
        for mapping in copy.maps:
            if mapping.is_file and mapping.offset == 0:
                self._headers.setdefault((mapping.path, mapping.inode), []).append(mapping.start)

    def describe(self, mapping: Mapping) -> Optional[MappedFile]:
        """`None` when it is no ELF file."""
        loaded = self._loaded_headers(mapping)
        opens_as, problem = self._locate(mapping, loaded)
        # When what we can open is not what is mapped, the headers in memory still tell where it lies.
        content = bytes_reader(loaded) if problem and loaded else file_reader(opens_as)
        if problem and not content(0, 4):
            return unknown_file(mapping, opens_as, problem)
        return mapped_file(mapping, content, opens_as, problem)

    def _loaded_headers(self, mapping: Mapping) -> bytes:
        """The first page of the file as the process has it in memory; empty when it is not mapped, or all is over."""
        below = [start for start in self._headers.get((mapping.path, mapping.inode), ()) if start <= mapping.start]
        return (self._memory.read(below[-1], HEADERS) if below else None) or b""

    def _locate(self, mapping: Mapping, loaded: bytes) -> Tuple[str, Optional[str]]:
        """Where the mapped file can be opened, and what is wrong with what is found there."""
        path = self._root + mapping.file
        if not mapping.deleted and _inode(path) == mapping.inode:
            return path, None
        # Some file systems give other inode numbers to stat than to maps, and what is installed anew may be the same.
        if loaded and file_reader(path)(0, HEADERS) == loaded:
            return path, None
        # The kernel keeps a way to the mapped file itself, for root only, and one to the program.
        kept = f"/proc/{self._pid}/map_files/{mapping.start:x}-{mapping.end:x}"
        if file_reader(kept)(0, 4):
            return kept, None
        program = f"/proc/{self._pid}/exe"
        if loaded and file_reader(program)(0, HEADERS) == loaded:
            return program, None
        way = _WAY if _is_refused(kept) else ""
        if _inode(path) is None:
            text = f"{mapping.file} was removed after it was loaded (or is out of reach): no names for its frames"
        else:
            text = f"{mapping.file} was replaced after it was loaded: its frames would get wrong names"
        return path, text + way


def mapped_file(
    mapping: Mapping, content: Reader, opens_as: str, problem: Optional[str] = None
) -> Optional[MappedFile]:
    """What lies around `mapping`, by the headers of its file; `None` when it is no ELF file with code there."""
    found = segments_of(content)
    bias = bias_of(found, mapping)
    if bias is None:
        return None
    loads = [segment for segment in found if segment.kind == LOAD]
    return MappedFile(
        path=mapping.file,
        bias=bias,
        start=bias + (min(load.address for load in loads) & -_PAGE),
        end=bias + (max(load.address + load.memory for load in loads) + _PAGE - 1 & -_PAGE),
        opens_as=opens_as,
        build_id=build_id_of(content, found),
        deleted=mapping.deleted,
        problem=problem,
    )


def unknown_file(mapping: Mapping, opens_as: str, problem: str) -> MappedFile:
    """Neither the file nor the memory can be read: it lies where most files lie whose headers we cannot see."""
    bias = mapping.start - mapping.offset
    return MappedFile(mapping.file, bias, mapping.start, mapping.end, opens_as, None, mapping.deleted, problem)


def _root_of(pid: int) -> str:
    """What to put before a path of the process to open it here: nothing, when both see the same files.

    In our own mount namespace the kernel tells paths from our root, also of a process with another one (chroot).
    """
    try:
        same = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""  # it is gone
    return "" if same else f"/proc/{pid}/root"


def _inode(path: str) -> Optional[int]:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _is_refused(path: str) -> bool:
    """Whether only the right to open it is missing."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES)
    return False
