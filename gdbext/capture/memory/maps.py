"""The memory map of a process: what lies where, by /proc/PID/maps (layout: proc_pid_maps(5))."""

from __future__ import annotations

import bisect
import functools
from typing import Dict, Iterator, NamedTuple, Optional, Sequence, Tuple

_DELETED = " (deleted)"
_MOST_KEPT = 4 << 20  # characters; a rank of 1,000 libraries has half a million


class Mapping(NamedTuple):
    """One line of /proc/PID/maps. `end` is exclusive; `path` is as the process sees it, empty for anonymous memory."""

    start: int
    end: int
    permissions: str  # "r-xp"
    offset: int  # of `start` in the file
    device: str  # "08:01"
    inode: int
    path: str

    @property
    def executable(self) -> bool:
        return self.permissions[2] == "x"

    @property
    def is_file(self) -> bool:
        return self.path.startswith("/")

    @property
    def deleted(self) -> bool:
        """The file has no name any more: it was removed or replaced after it was mapped."""
        return self.path.endswith(_DELETED)

    @property
    def file(self) -> str:
        """The path without the kernel's remark about its deletion."""
        return self.path[: -len(_DELETED)] if self.deleted else self.path


class MemoryMap:
    """All mappings of a process, in address order."""

    def __init__(self, mappings: Sequence[Mapping]) -> None:
        self._mappings: Tuple[Mapping, ...] = tuple(sorted(mappings))
        self._starts = [mapping.start for mapping in self._mappings]

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self._mappings)

    def __len__(self) -> int:
        return len(self._mappings)

    def find(self, address: int) -> Optional[Mapping]:
        """The mapping that `address` lies in."""
        index = bisect.bisect_right(self._starts, address) - 1
        return None if index < 0 or address >= self._mappings[index].end else self._mappings[index]


def parse_maps(text: str) -> MemoryMap:
    """Read the text of /proc/PID/maps. Lines of another shape are left out."""
    return _kept(text) if len(text) <= _MOST_KEPT else _parsed(text)


def _parsed(text: str) -> MemoryMap:
    names: Dict[str, str] = {}  # a file is mapped in many pieces, and its name may have 4,096 bytes
    lines = (text[start:end] for start, end in _lines(text))
    return MemoryMap([mapping for mapping in (_parse_line(line, names) for line in lines) if mapping])


_kept = functools.lru_cache(maxsize=32)(_parsed)
"""A look asks for the map of a rank four times, and it seldom changes in between."""


def _lines(text: str) -> Iterator[Tuple[int, int]]:
    """Begin and end of each."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield at, end
        at = end + 1


def _parse_line(line: str, names: Dict[str, str]) -> Optional[Mapping]:
    fields = line.split(None, 5)
    if len(fields) < 5:
        return None
    try:
        start, end = (int(part, 16) for part in fields[0].split("-"))
        offset, inode = int(fields[2], 16), int(fields[4])
    except ValueError:
        return None
    # The kernel writes a newline in a name as \012 and leaves every other character alone.
    path = fields[5].replace("\\012", "\n") if len(fields) > 5 else ""
    name = names.setdefault
    return Mapping(start, end, name(fields[1], fields[1]), offset, name(fields[3], fields[3]), inode, name(path, path))


def read_maps_text(pid: int) -> str:
    """The raw text, to see cheaply whether anything changed. Raises `OSError`."""
    with open(f"/proc/{pid}/maps", "rb") as stream:
        return stream.read().decode("utf-8", "surrogateescape")


def read_maps(pid: int) -> MemoryMap:
    """The memory map of a running process. Raises `OSError` when it is gone or not ours to read."""
    return parse_maps(read_maps_text(pid))
