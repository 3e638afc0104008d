"""A core file as the memory of a process: opened once, read in pieces where something is asked for, never whole.

From the kernel, from gcore, or one of our own; 64-bit Linux of this machine's kind. A core of 100 GB costs its headers.
"""

from __future__ import annotations

import bisect
import itertools
import os
import stat
import struct
from array import array
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.capture.cores.core_kind import check_core
from gdbext.capture.cores.core_notes import Notes, read_notes
from gdbext.capture.elf.layout import HEADER, PN_XNUM, PT_LOAD, PT_NOTE, SECTION, SEGMENT, Header, Segment, segments_in
from gdbext.capture.machine import name_of, this_machine
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.memory.process_memory import READ_LIMIT, Memory, Range
from gdbext.model.errors import GdbextError

ABSENT_INODE = -1
"""Marks memory that was mapped and was not written to the file. (Libraries' code is in the libraries.)"""

_MOST_HEADERS = 1 << 20
_HEADERS_PIECE = 4096
MOST_PARTS = 1 << 18
"""Pieces of memory: two for each thread, and four for each library. A kernel as it comes maps 65,530 at most."""
_SAMPLE = 1 << 16

Behind = Callable[[int, int], Optional[bytes]]
"""(address, size) -> bytes of memory that was left out because the mapped file has them too."""


class Part(NamedTuple):
    """A PT_LOAD: memory as it was mapped, and how much of it the file has."""

    start: int
    end: int
    offset: int
    size: int  # bytes in the file; those beyond its end are not there
    flags: int

    @property
    def permissions(self) -> str:
        return "".join(letter if self.flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1))) + "p"


class CoreFile(Memory):
    """One open core file. Raises `GdbextError` for what is none that we can read; close it, or use `with`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.behind: Optional[Behind] = None
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise _cannot_open(path, error) from None
        try:
            status = os.fstat(self._file)
            if not stat.S_ISREG(status.st_mode):
                raise GdbextError(f"{path} is not a file", "name core files")
            self._length = status.st_size
            head = self._at(0, HEADER.size)
            self.architecture = check_core(path, head)
            self._header = Header(*HEADER.unpack(head))
            self.machine = self._header.machine
            self._read_headers()
        except (OSError, struct.error) as error:
            os.close(self._file)
            raise GdbextError(f"{path} cannot be read as a core file: {error}") from None
        except GdbextError:
            os.close(self._file)
            raise
        self._starts = [part.start for part in self.parts]

    def close(self) -> None:
        """Let the file go."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __enter__(self) -> CoreFile:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def _at(self, offset: int, size: int) -> bytes:
        return os.pread(self._file, size, offset) if 0 <= offset < 1 << 62 else b""

    def _read_headers(self) -> None:
        parts: List[Part] = []
        notes: List[Range] = []
        count = pieces = wanted = 0
        for one in self._segments():
            count += 1
            if one.kind in (PT_LOAD, PT_NOTE) and one.size:
                wanted = max(wanted, one.offset + one.size)
            if one.kind == PT_NOTE:
                notes.append((one.offset, max(0, min(one.size, self._length - one.offset))))
            elif one.kind == PT_LOAD and one.memory:
                pieces += 1
                if pieces <= MOST_PARTS:
                    parts.append(_part(one, self._length))
        self.parts = tuple(sorted(parts))
        self.notes: Notes = read_notes(*self._joined(notes))
        self.cut = _cut(self._length, count, wanted)
        limits = [f"only {MOST_PARTS} of its {pieces} pieces of memory were read"] * (pieces > MOST_PARTS)
        limits += ["it has more notes than gdbext reads"] * self.notes.cut
        self.limits = tuple(limits)

    def _joined(self, ranges: Sequence[Range]) -> Tuple[Callable[[int, int], bytes], int]:
        """Reads pieces of the file as if there were nothing in between; and how many bytes they have."""
        starts = list(itertools.accumulate((size for _, size in ranges), initial=0))

        def read(at: int, size: int) -> bytes:
            data = b""
            while len(data) < size and at + len(data) < starts[-1]:
                index = bisect.bisect_right(starts, at + len(data)) - 1
                inside = at + len(data) - starts[index]
                piece = self._at(ranges[index][0] + inside, min(size - len(data), ranges[index][1] - inside))
                if not piece:
                    break
                data += piece
            return data

        return read, starts[-1]

    def _segments(self) -> Iterator[Segment]:
        header = self._header
        size, count = header.segment_size, header.segment_count
        if count == PN_XNUM:  # the number stands in the first section header (elf(5))
            count = SECTION.unpack(self._at(header.sections_at, SECTION.size))[7]
        if size != SEGMENT.size:
            raise GdbextError(f"{self.path} has program headers of {size} bytes: the core file is damaged")
        count = min(count, _MOST_HEADERS)
        for first in range(0, count, _HEADERS_PIECE):
            yield from segments_in(
                self._at(header.segments_at + first * size, size * min(_HEADERS_PIECE, count - first))
            )

    # --- memory ---

    def read(self, address: int, size: int) -> Optional[bytes]:
        """`size` bytes at `address`; `None` unless the file, or the files mapped there, have all of them."""
        if not 0 <= size <= READ_LIMIT or not 0 <= address <= (1 << 64) - size - 1:
            return None
        data = self.present(address, size)
        while len(data) < size:
            at = address + len(data)
            part = self.part_at(at)
            # What may have been written to is not what the file says.
            if self.behind is None or (part is not None and part.flags & 2):
                return None
            more = self.behind(at, min(size - len(data), self._room(at, part)))
            if not more:
                return None
            data += more + self.present(at + len(more), size - len(data) - len(more))
        return data

    def read_many(self, ranges: Sequence[Range]) -> List[Optional[bytes]]:
        """One answer per range, like `read`."""
        return [self.read(address, size) for address, size in ranges]

    def part_at(self, address: int) -> Optional[Part]:
        """The piece of memory that `address` lies in."""
        index = bisect.bisect_right(self._starts, address) - 1
        return self.parts[index] if index >= 0 and address < self.parts[index].end else None

    def _room(self, address: int, part: Optional[Part]) -> int:
        """Bytes from `address` to where this part ends, or the next begins."""
        if part is not None:
            return part.end - address
        index = bisect.bisect_right(self._starts, address)
        return self._starts[index] - address if index < len(self._starts) else READ_LIMIT

    def present(self, address: int, size: int) -> bytes:
        """What the core itself has from `address` on, up to the first byte that it does not have."""
        pieces: List[bytes] = []
        while size > 0:
            part = self.part_at(address)
            if part is None or address >= part.start + part.size:
                break
            inside = address - part.start
            piece = self._at(part.offset + inside, min(size, part.size - inside))
            if not piece:
                break
            pieces.append(piece)
            address, size = address + len(piece), size - len(piece)
        return b"".join(pieces)

    def maps(self) -> MemoryMap:
        """What was mapped where, with the names of files; memory that is not in the core has ABSENT_INODE."""
        named = MemoryMap(self.notes.files)
        found: List[Mapping] = []
        for part in self.parts:
            file = named.find(part.start)
            found += self._mappings(part, file)
        known = MemoryMap(found)
        return MemoryMap([*found, *(file for file in named if known.find(file.start) is None)])

    def _mappings(self, part: Part, file: Optional[Mapping]) -> Iterator[Mapping]:
        """A part, divided where its bytes in the core end."""
        path, offset = (file.path, file.offset + part.start - file.start) if file else ("", 0)
        permissions = part.permissions
        if permissions.startswith("r--") and not path and self._is_zero(part):
            # gdb 13.1 writes ranges that nobody may access, as those of device memory, as readable zeros (not 18.1).
            permissions = "---p"
        whole = Mapping(part.start, part.end, permissions, offset, "", 0, path)
        if part.start + part.size >= part.end or file is not None:
            yield whole
            return
        middle = part.start + part.size
        if part.size:
            yield whole._replace(end=middle)
        yield whole._replace(start=middle, inode=ABSENT_INODE)

    def _is_zero(self, part: Part) -> bool:
        """Whether the begin and the end of it are zeros."""
        ends = (part.offset, part.offset + max(0, part.size - _SAMPLE))
        return part.size > 0 and not any(self._at(at, min(part.size, _SAMPLE)).strip(b"\0") for at in ends)


class CoreBuffer:
    """Takes the stacks of a core as capture.stacks.StackCopier asks for them."""

    def __init__(self, core: CoreFile, room: int) -> None:
        self._core, self._left = core, room
        self.pieces: Dict[int, bytes] = {}

    def copy(self, pid: int, ranges: Sequence[Range], deadline: float) -> List[int]:
        """Bytes got of each range; shorter than `ranges` where the room ends."""
        got: List[int] = []
        for address, size in ranges:
            if size > self._left:
                break
            data = self._core.present(address, size)
            self._left -= len(data)
            self.pieces[address] = data
            got.append(len(data))
        return got

    def words(self, address: int, limit: int) -> array[int]:
        """The 64-bit words of the piece copied from `address`, at most `limit` bytes."""
        data = self.pieces.get(address, b"")[:limit]
        words = array("Q")
        words.frombytes(data[: len(data) & ~7])
        return words


def maps_of(path: str) -> MemoryMap:
    """The memory map of a core file of any 64-bit machine. Raises `GdbextError`."""
    with CoreFile(path) as core:
        return core.maps()


def files_of(path: str) -> Tuple[Mapping, ...]:
    """What its NT_FILE note lists. Raises `GdbextError`."""
    with CoreFile(path) as core:
        return core.notes.files


def open_core(path: str) -> CoreFile:
    """A core whose stacks can be read here. Raises `GdbextError` for one of another kind of machine, too."""
    core = CoreFile(path)
    row, ours = core.architecture, this_machine()
    if row is None or ours is None or row.name != ours.name:
        core.close()
        raise GdbextError(
            f"{path} is from another kind of machine ({name_of(core.machine)})", "run gdbext on such a machine"
        )
    return core


def _cannot_open(path: str, error: OSError) -> GdbextError:
    denied = isinstance(error, PermissionError)
    return GdbextError(f"cannot read {path}: {error.strerror}", "run as its owner, or as root" if denied else "")


def _part(one: Segment, length: int) -> Part:
    in_file = max(0, min(one.size, one.memory, length - one.offset))
    return Part(one.address, one.address + one.memory, one.offset, in_file, one.flags)


def _cut(length: int, headers: int, wanted: int) -> Optional[str]:
    """How much of the file is missing at its end; `None` when it is whole."""
    if not headers:
        return "its program headers are missing"
    return f"{length} of {wanted} bytes are there" if length < wanted else None
