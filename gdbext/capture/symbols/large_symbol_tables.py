"""The symbols around some addresses in tables too large for an index: gigabytes are gone through in pieces.

An index of 50 million symbols would take gigabytes to make and to keep. Of each piece of the tables we remember where
its symbols lie (24 bytes for 65,536 symbols, kept for the next look); then only pieces are read that may have one of
the addresses. Linkers write symbols by object file, so these are few; where a hash table gives the order (the exported
symbols of GNU ld) all of them are.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
import struct
import sys
import time
import zlib
from array import array
from typing import Callable, Dict, Iterator, List, NamedTuple, Sequence, Set, Tuple

from gdbext.capture.elf.reader import CODE, NAMING, ElfSymbols, tables_of

_PIECE = 1 << 16  # symbols
_ROW = 24  # bytes of one
_WORDS = struct.Struct("<3Q")
_LAST = (1 << 64) - 1
_MAGIC = b"pieces_1"


class Piece(NamedTuple):
    """Where those symbols of a piece lie that name code: all start in [`low`, `high`], none reaches beyond `reach`."""

    low: int
    high: int
    reach: int


_NOTHING = Piece(_LAST, 0, 0)
Say = Callable[[int], None]


class TimeUp(Exception):
    """There was no time for all symbols."""


def pieces_of(
    elf: ElfSymbols, say: Say = lambda done: None, begun: Sequence[Piece] = (), until: float = math.inf
) -> List[Piece]:
    """Goes through all symbols once, or through those behind what has `begun`; `say` is told how many are done. Ends
    `until` then (CLOCK_MONOTONIC), one piece further at least. Raises `ValueError` when the file is cut off."""
    found = list(begun)
    naming = _Naming(elf)
    for first, offset, count in itertools.islice(_places(elf), len(found), None):
        say(first)
        _, starts, sizes = naming.rows(offset, count)
        ends = map(operator.add, starts, sizes)
        found.append(Piece(min(starts), max(starts), min(max(ends), _LAST)) if starts else _NOTHING)
        if time.monotonic() >= until:
            break
    return found


def is_whole(elf: ElfSymbols, pieces: Sequence[Piece]) -> bool:
    """Whether these are all pieces of the tables."""
    return len(pieces) == sum(1 for _ in _places(elf))


def dump(pieces: Sequence[Piece]) -> bytes:
    """For `load`. The checksum is of all the rest."""
    body = _MAGIC + b"".join(_WORDS.pack(*piece) for piece in pieces)
    return body + struct.pack("<I", zlib.crc32(body))


def load(data: bytes, elf: ElfSymbols) -> List[Piece]:
    """What `dump` wrote of this file, the first of its pieces or all; nothing when it is damaged, or of another one."""
    body, rows = data[:-4], data[len(_MAGIC) : -4]
    if (
        len(rows) % _WORDS.size
        or len(rows) // _WORDS.size > sum(1 for _ in _places(elf))
        or body[: len(_MAGIC)] != _MAGIC
        or struct.pack("<I", zlib.crc32(body)) != data[-4:]
    ):
        return []
    return [Piece(*row) for row in _WORDS.iter_unpack(rows)]


def symbols_around(
    elf: ElfSymbols, pieces: Sequence[Piece], addresses: Sequence[int], until: float = math.inf
) -> Set[int]:
    """Numbers of the symbols that cover one of the sorted addresses, and of those at the last start before it. Raises
    `TimeUp` when they are not found `until` then."""
    search = _Search(elf, addresses, until)
    rest: List[Tuple[Piece, Tuple[int, int, int]]] = []
    for piece, place in zip(pieces, _places(elf)):
        if search.inside(piece):
            search.read(*place)
        elif piece != _NOTHING:
            rest.append((piece, place))
    # All that the others can have is the last start before an address: the nearest ones first, then few are left.
    for piece, place in sorted(rest, key=lambda pair: -pair[0].high):
        if search.nearer(piece.high):
            search.read(*place)
    return search.found()


def _places(elf: ElfSymbols) -> Iterator[Tuple[int, int, int]]:
    """(number of the first symbol, offset in the file, symbols) of each piece."""
    first = 0
    for table in tables_of(elf.sections):
        count = table.size // _ROW
        for at in range(0, count, _PIECE):
            yield first + at, table.offset + at * _ROW, min(_PIECE, count - at)
        first += count


class _Naming(Dict[int, bool]):
    """Whether a symbol names code, by the upper half of its first word: info, other, section."""

    def __init__(self, elf: ElfSymbols) -> None:
        super().__init__()
        self._elf = elf

    def __missing__(self, half: int) -> bool:
        number, sections = half >> 16, self._elf.sections
        code = number < len(sections) and sections[number].flags & CODE == CODE
        self[half] = code and half & 15 in NAMING
        return self[half]

    def rows(self, offset: int, count: int) -> Tuple[List[int], List[int], List[int]]:
        """Positions, starts and sizes of those that name code, without a line of Python for each symbol."""
        data = self._elf.at(offset, count * _ROW)
        halves, words = array("I", data), array("Q", data)
        if sys.byteorder != "little":
            halves.byteswap()
            words.byteswap()
        named = list(map(self.__getitem__, halves[1::6]))
        positions = list(itertools.compress(itertools.count(), named))
        starts, sizes = (list(itertools.compress(words[first::3], named)) for first in (1, 2))
        return positions, starts, sizes


class _Search:
    def __init__(self, elf: ElfSymbols, addresses: Sequence[int], until: float) -> None:
        self._until = until
        self._naming, self._addresses = _Naming(elf), list(addresses)
        self._covering: Set[int] = set()
        self._nearest: List[int] = [-1] * len(self._addresses)  # between the address before and this one
        self._numbers: Dict[int, List[int]] = {}  # of the symbols at a nearest start, by the position of the address

    def inside(self, piece: Piece) -> bool:
        """Whether one of the addresses lies among the symbols of a piece."""
        at = bisect.bisect_left(self._addresses, piece.low)
        return at < len(self._addresses) and self._addresses[at] <= piece.reach

    def nearer(self, start: int) -> bool:
        """Whether a symbol that starts there may be the last one before an address."""
        at = bisect.bisect_left(self._addresses, start)
        return at < len(self._addresses) and start >= self._nearest[at]

    def read(self, first: int, offset: int, count: int) -> None:
        """Look through a piece."""
        if time.monotonic() >= self._until:
            raise TimeUp
        positions, starts, sizes = self._naming.rows(offset, count)
        if not starts:
            return
        wanted = self._wanted(sorted(starts), max(sizes))
        for at in itertools.compress(itertools.count(), map(wanted.__contains__, starts)):
            self._take(first + positions[at], starts[at], starts[at] + sizes[at])

    def _wanted(self, starts: List[int], longest: int) -> Set[int]:
        """Those of these sorted starts whose symbols may cover an address, or are the last ones before it."""
        addresses = self._addresses
        found: Set[int] = set()
        begin = bisect.bisect_left(addresses, starts[0])
        end = bisect.bisect_right(addresses, starts[-1] + longest) + 1  # the first address beyond them, too
        for address in addresses[begin:end]:
            behind = bisect.bisect_right(starts, address)
            found.update(starts[bisect.bisect_left(starts, address - longest, 0, behind) : behind])
            if behind:
                found.add(starts[behind - 1])
        return found

    def _take(self, number: int, start: int, end: int) -> None:
        at = bisect.bisect_left(self._addresses, start)
        if at == len(self._addresses):
            return
        if end >= self._addresses[at]:
            self._covering.add(number)
        if start > self._nearest[at]:
            self._nearest[at] = start
            self._numbers[at] = [number]
        elif start == self._nearest[at]:
            self._numbers[at].append(number)

    def found(self) -> Set[int]:
        """An address without a start of its own has that of the address before."""
        return self._covering.union(*self._numbers.values())
