"""The memory map of a core file, by its program headers (elf(5)) and the names that its NT_FILE note knows."""

from __future__ import annotations

import struct
from typing import IO, Iterator, List, Tuple

from gdbext.capture.maps import Mapping
from gdbext.debugger.modules import Modules

ABSENT_INODE = -1
"""Marks memory that was mapped and was not written to the file. (Libraries' code is in the libraries.)"""

_PT_LOAD = 1
_PN_XNUM = 0xFFFF
_MOST_HEADERS = 1 << 20
_SAMPLE = 1 << 16


def segments(core: str) -> List[Mapping]:
    """What was mapped where. Raises `OSError`, and `ValueError` for what is no core file."""
    try:
        with open(core, "rb") as file:
            headers = list(_headers(file))
            modules = Modules.of_core(core)
            return [part for header in headers for part in _parts(file, header, modules)]
    except struct.error as error:
        raise ValueError(str(error)) from None


_Header = Tuple[int, int, int, int, int]
"""Flags, offset in the file, address, bytes in the file, bytes in memory."""


def _headers(file: IO[bytes]) -> Iterator[_Header]:
    start = file.read(64)
    if start[:5] != b"\x7fELF\x02":
        raise ValueError("not a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", start, 32)
    size, count = struct.unpack_from("<HH", start, 54)
    if count == _PN_XNUM:  # the number stands in the first section header
        file.seek(struct.unpack_from("<Q", start, 40)[0] + 44)
        (count,) = struct.unpack("<I", file.read(4))
    file.seek(table)
    data = file.read(size * min(count, _MOST_HEADERS))
    for at in range(0, len(data) - 55, max(size, 56)):
        kind, flags, offset, address, _, in_file, in_memory = struct.unpack_from("<IIQQQQQ", data, at)
        if kind == _PT_LOAD and in_memory:
            yield flags, offset, address, in_file, in_memory


def _parts(file: IO[bytes], header: _Header, modules: Modules) -> Iterator[Mapping]:
    """A segment, divided where its bytes in the file end."""
    flags, offset, address, in_file, in_memory = header
    letters = "".join(letter if flags & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    path = modules.find(address)[0] or ""
    if letters == "r--" and not path and _is_zero(file, offset, in_file):
        # gdb 13.1 writes ranges that nobody may access, as those of device memory, as readable zeros (18.1 does not).
        letters = "---"
    whole = Mapping(address, address + in_memory, letters + "p", 0, "", 0, path)
    if in_file >= in_memory or path.startswith("/"):
        yield whole
        return
    middle = address + in_file
    if in_file:
        yield whole._replace(end=middle)
    yield whole._replace(start=middle, inode=ABSENT_INODE)


def _is_zero(file: IO[bytes], offset: int, size: int) -> bool:
    """Whether the begin and the end of a segment are zeros."""
    for at in (offset, offset + max(0, size - _SAMPLE)):
        file.seek(at)
        if file.read(min(size, _SAMPLE)).strip(b"\0"):
            return False
    return size > 0
