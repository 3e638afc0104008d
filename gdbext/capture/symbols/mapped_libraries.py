"""Which mapped object files the copied stacks run through, and where each of them lies."""

from __future__ import annotations

import bisect
import errno
import mmap
import os
from array import array
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Optional, Protocol, Sequence, Set, Tuple, Union

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.elf.layout import PT_LOAD
from gdbext.capture.elf.object_file import HEADERS, Reader, bias_of, build_id_of, bytes_reader, segments_of
from gdbext.capture.memory.maps import Mapping
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.safe_open.kept_open_files import Opened, Shelf
from gdbext.safe_open.regular_files import Identity, Refused

_WAY = "; gdbext run by root of the host (CAP_SYS_ADMIN) reads it anyway"


@dataclass(frozen=True)
class MappedFile:
    """An object file with code in use. `start` and `end` span its segments; address = `bias` + address as linked."""

    path: str  # as the process sees it
    bias: int
    start: int
    end: int
    opens_as: str  # where it is found here: at the same path, or through /proc/PID of a container
    build_id: Optional[str] = None
    deleted: bool = False
    problem: Optional[str] = None  # e.g. another file lies under this path by now
    opened: Optional[Opened] = field(default=None, compare=False)  # the file; None where there is a problem


class Finder(Protocol):
    """Says which file a mapping is of."""

    def describe(self, mapping: Mapping) -> Optional[MappedFile]:
        """`None` when it is no ELF file."""


def libraries_on_stacks(
    copy: ProcessCopy, finder: Optional[Finder] = None, shelf: Optional[Shelf] = None
) -> Tuple[MappedFile, ...]:
    """The files whose code any word of the copied stacks or registers points to, in address order.

    More than what unwinding needs (words left over from earlier calls count), never less. What is mapped but is no
    object file is left out. `finder` finds the files, by default those of the running process, which stay open as
    long as the answer is kept; ranks that share a `shelf` share them. 100 threads take about
    4 ms, and 120 ms when each of them has 64 KiB of stack in which no word occurs twice.
    """
    words = words_of(copy)
    finder = finder or _Finder(copy.pid, copy.maps, shelf or Shelf())
    found: Dict[Tuple[str, int], MappedFile] = {}
    for mapping in copy.maps:
        if mapping.executable and mapping.is_file and _hits(words, mapping):
            file = finder.describe(mapping)
            if file:
                found.setdefault((file.path, file.bias), file)
    return tuple(found.values())


def libraries_with_code(pid: int, maps: Iterable[Mapping], shelf: Shelf) -> Tuple[MappedFile, ...]:
    """All files that a running process has code of, in address order."""
    mappings = list(maps)
    finder = _Finder(pid, mappings, shelf)
    found: Dict[str, MappedFile] = {}
    for mapping in mappings:
        if mapping.executable and mapping.is_file and mapping.file not in found:
            file = finder.describe(mapping)
            if file:
                found[mapping.file] = file
    return tuple(found.values())


MOST_WORDS = 1 << 21
"""Different words of the stacks of one process: 2,000 threads of torch have a quarter of them."""


def words_of(copy: ProcessCopy) -> List[int]:
    """Every different word of registers and stacks, sorted; of more than MOST_WORDS those that came first."""
    words: Set[int] = {word for thread in copy.threads for word in thread.registers}
    for block in copy.blocks:
        if len(words) >= MOST_WORDS:
            break
        skip = -block.address % 8
        aligned = array("Q")
        aligned.frombytes(block.data[skip : skip + ((len(block.data) - skip) & ~7)])
        words.update(aligned[: MOST_WORDS - len(words)])
    return sorted(words)


def _hits(words: Sequence[int], mapping: Mapping) -> bool:
    index = bisect.bisect_left(words, mapping.start)
    return index < len(words) and words[index] < mapping.end


class _Finder:
    """Finds the file behind a mapping, as far as it still can be had."""

    def __init__(self, pid: int, maps: Iterable[Mapping], shelf: Shelf) -> None:
        self._pid = pid
        self._shelf = shelf
        self._memory = ProcessMemory(pid)
        self._root = _root_of(pid)
        self._headers: Dict[Tuple[str, int], List[int]] = {}  # where the beginning of a file is mapped
        for mapping in maps:
            if mapping.is_file and mapping.offset == 0:
                self._headers.setdefault((mapping.path, mapping.inode), []).append(mapping.start)

    def describe(self, mapping: Mapping) -> Optional[MappedFile]:
        """`None` when it is no ELF file."""
        loaded = self._loaded_headers(mapping)
        found = self._locate(mapping, loaded)
        if not isinstance(found, str):
            return mapped_file(mapping, found.read, found.path, opened=found) if found else None
        # The headers in memory still tell where it lies.
        path = self._root + mapping.file
        if not loaded:
            return unknown_file(mapping, path, found)
        return mapped_file(mapping, bytes_reader(loaded), path, found)

    def _loaded_headers(self, mapping: Mapping) -> bytes:
        """The first page of the file as the process has it in memory; empty when it is not mapped, or all is over."""
        below = [start for start in self._headers.get((mapping.path, mapping.inode), ()) if start <= mapping.start]
        return (self._memory.read(below[-1], HEADERS) if below else None) or b""

    def _locate(self, mapping: Mapping, loaded: bytes) -> Union[Opened, str, None]:
        """The mapped file, or why it cannot be had; None where a device is mapped."""
        opened, why = self._open(self._root + mapping.file)
        if opened is not None and not mapping.deleted and _is_mapped(opened.identity, mapping):
            return opened
        if isinstance(why, Refused) and why.identity and _is_mapped(why.identity, mapping):
            return None
        # Some file systems give other numbers to stat than to maps, and what is installed anew may be the same.
        if opened is not None and _begins(opened, loaded):
            return opened
        # The kernel keeps a way to the mapped file itself, for root only, and one to the program.
        kept, refused = self._open(f"/proc/{self._pid}/map_files/{mapping.start:x}-{mapping.end:x}")
        if kept is not None:
            return kept
        program, _ = self._open(f"/proc/{self._pid}/exe")
        if program is not None and _begins(program, loaded):
            return program
        is_refused = refused is not None and refused.errno in (errno.EPERM, errno.EACCES)
        return _problem(mapping.file, why) + (_WAY if is_refused else "")

    def _open(self, path: str) -> Tuple[Optional[Opened], Optional[OSError]]:
        try:
            return self._shelf.open(path), None
        except OSError as error:
            return None, error


def _begins(found: Opened, loaded: bytes) -> bool:
    """Whether a file begins as what the process has in memory."""
    return bool(loaded) and found.read(0, HEADERS) == loaded


def _is_mapped(found: Identity, mapping: Mapping) -> bool:
    """Whether the map means this very file: another file system may have given the same number to another one."""
    major, _, minor = mapping.device.partition(":")
    try:
        device = os.makedev(int(major, 16), int(minor, 16))
    except ValueError:
        return False
    return (found.device, found.inode) == (device, mapping.inode)


def _problem(path: str, why: Optional[OSError]) -> str:
    """Why there is nothing to be had of a file. `why` it could not be opened; None: it is another one by now."""
    if why is None:
        return f"{path} was replaced after it was loaded: its frames would get wrong names"
    if isinstance(why, Refused):
        return f"{path} was replaced after it was loaded, {why.strerror}: no names for its frames"
    if isinstance(why, TimeoutError):
        return f"{path} cannot be read, {why.strerror}: no names for its frames"
    return f"{path} was removed after it was loaded (or is out of reach): no names for its frames"


def mapped_file(
    mapping: Mapping,
    content: Reader,
    opens_as: str,
    problem: Optional[str] = None,
    opened: Optional[Opened] = None,
    page: int = mmap.PAGESIZE,
) -> Optional[MappedFile]:
    """What lies around `mapping`, by the headers of its file; `None` when it is no ELF file with code there.
    `page`: its bytes where the process ran."""
    found = segments_of(content)
    bias = bias_of(found, mapping, page)
    if bias is None:
        return None
    loads = [segment for segment in found if segment.kind == PT_LOAD]
    return MappedFile(
        path=mapping.file,
        bias=bias,
        start=bias + (min(load.address for load in loads) & -page),
        end=bias + (max(load.address + load.memory for load in loads) + page - 1 & -page),
        opens_as=opens_as,
        build_id=build_id_of(content, found),
        deleted=mapping.deleted,
        problem=problem,
        opened=opened,
    )


def unknown_file(mapping: Mapping, opens_as: str, problem: str) -> MappedFile:
    """Neither the file nor the memory can be read: it lies where most files lie whose headers we cannot see."""
    bias = mapping.start - mapping.offset
    return MappedFile(
        path=mapping.file,
        bias=bias,
        start=mapping.start,
        end=mapping.end,
        opens_as=opens_as,
        build_id=None,
        deleted=mapping.deleted,
        problem=problem,
    )


def _root_of(pid: int) -> str:
    """What to put before a path of the process to open it here: nothing, when both see the same files.

    In our own mount namespace the kernel tells paths from our root, also of a process with another one (chroot).
    """
    try:
        same = os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")
    except OSError:
        return ""  # it is gone
    return "" if same else f"/proc/{pid}/root"
