"""Which symbols of an object file lie around an address: sorted once, and kept for the next look.

For libtorch_cpu.so (530,000 symbols) sorting takes half a second, as long as going through all of them once; a look-up
after that takes microseconds. Only positions are kept: names stay where they are, in the file.
"""

from __future__ import annotations

import bisect
import itertools
import operator
import struct
import sys
import zlib
from array import array
from typing import Iterable, Sequence, Set

from gdbext.capture.elf.reader import CODE, NAMING, ElfSymbols, tables_of

MOST = 1_000_000
"""Symbols that an index is made for: 200 MiB while it is made. For more: capture/symbols/large_symbol_tables.py."""

_MOST_FOUND = 1 << 20
_FURTHEST = 4096  # symbols before an address that are asked whether they reach to it
_HEAD = struct.Struct("<8sQ")
_MAGIC = b"symbols1"


class SymbolIndex:
    """The symbols of one file that name code, by address (as linked). Symbols are numbered through all its tables."""

    def __init__(self, starts: Sequence[int], reach: Sequence[int], numbers: Sequence[int]) -> None:
        """`reach`: how far this symbol or one before it extends, the furthest."""
        self._starts, self._reach, self._numbers = starts, reach, numbers

    @classmethod
    def of(cls, elf: ElfSymbols) -> SymbolIndex:
        """Read the tables and sort them. Raises `ValueError` on a file that is damaged, or beyond all measure."""
        code = {number for number, section in enumerate(elf.sections) if section.flags & CODE == CODE}
        kinds, starts, ends = array("I"), array("Q"), array("Q")
        for table in tables_of(elf.sections):
            # Elf64_Sym: name, then info, other and section in 32 bits; value; size
            halves, words = array("I"), array("Q")
            content = elf.content(table)[: table.size // 24 * 24]
            halves.frombytes(content)
            words.frombytes(content)
            kinds.extend(halves[1::6])
            starts.extend(words[1::3])
            ends.extend(_sums(words[1::3], words[2::3]))
        # All of this runs in C, half a million times: a loop of ours takes three times as long.
        named = {kind for kind in set(kinds) if kind >> 16 in code and kind & 15 in NAMING}
        numbers = list(itertools.compress(itertools.count(), map(named.__contains__, kinds)))
        numbers.sort(key=starts.__getitem__)
        furthest = 0
        reach = [furthest := end if end > furthest else furthest for end in map(ends.__getitem__, numbers)]
        return cls(array("Q", map(starts.__getitem__, numbers)), array("Q", reach), array("I", numbers))

    def around(self, addresses: Iterable[int]) -> Set[int]:
        """Numbers of the symbols that may cover an address, and of those at the last start before it."""
        found: Set[int] = set()
        starts, reach, numbers = self._starts, self._reach, self._numbers
        for address in addresses:
            if len(found) > _MOST_FOUND:
                raise ValueError("symbols without an end cover everything")
            behind = bisect.bisect_right(starts, address)
            if not behind:
                continue
            nearest = starts[behind - 1]
            at, last = behind - 1, max(0, behind - _FURTHEST)
            while at >= last and (reach[at] >= address or starts[at] == nearest):
                found.add(numbers[at])
                at -= 1
        return found

    def dump(self) -> bytes:
        """For `load`. The checksum is of all the rest."""
        body = b"".join(array(kind, part).tobytes() for kind, part in zip("QQI", self._parts))
        return _HEAD.pack(_MAGIC, len(self._numbers)) + body + struct.pack("<I", zlib.crc32(body))

    @property
    def _parts(self) -> Sequence[Sequence[int]]:
        return (self._starts, self._reach, self._numbers)

    @classmethod
    def load(cls, data: bytes) -> SymbolIndex:
        """What `dump` wrote. Raises `ValueError` when it is damaged."""
        if len(data) < _HEAD.size or sys.byteorder != "little":
            raise ValueError("no index")
        magic, count = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size : -4]
        if magic != _MAGIC or len(body) != 20 * count or struct.pack("<I", zlib.crc32(body)) != data[-4:]:
            raise ValueError("the index is damaged")
        parts = body[: 8 * count], body[8 * count : 16 * count], body[16 * count :]
        return cls(parts[0].cast("Q"), parts[1].cast("Q"), parts[2].cast("I"))


def _sums(values: Sequence[int], sizes: Sequence[int]) -> array[int]:
    try:
        return array("Q", map(operator.add, values, sizes))
    except OverflowError:  # of a damaged file
        return array("Q", [value + size & (1 << 64) - 1 for value, size in zip(values, sizes)])
