"""Which symbols of an object file lie around an address: sorted once, and kept for the next look.

For libtorch_cpu.so (530,000 symbols) sorting takes half a second, as long as going through all of them once; a look-up
after that takes microseconds. Only positions are kept: names stay where they are, in the file.
"""

from __future__ import annotations

import bisect
import itertools
import struct
import sys
import zlib
from array import array
from typing import Iterable, List, Sequence, Set

from gdbext.capture.elf_symbols import ElfSymbols, Section

SYMTAB, DYNSYM = 2, 11
_CODE = 6  # SHF_ALLOC | SHF_EXECINSTR
_NAMED_KINDS = frozenset((0, 1, 2, 10))  # STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC
_NUMBER_BITS = 24  # of a symbol's number, below its address in one word
_FURTHEST = 4096  # symbols before an address that are asked whether they reach to it
_HEAD = struct.Struct("<8sQ")
_MAGIC = b"symbols1"


def tables_of(sections: Iterable[Section]) -> List[Section]:
    """The symbol tables, in the order in which their symbols are numbered."""
    return [section for section in sections if section.kind in (SYMTAB, DYNSYM)]


class SymbolIndex:
    """The symbols of one file that name code, by address (as linked). Symbols are numbered through all its tables."""

    def __init__(self, starts: Sequence[int], reach: Sequence[int], numbers: Sequence[int]) -> None:
        """`reach`: how far this symbol or one before it extends, the furthest."""
        self._starts, self._reach, self._numbers = starts, reach, numbers

    @classmethod
    def of(cls, elf: ElfSymbols) -> SymbolIndex:
        """Read the tables and sort them. Raises `ValueError` on a file that is damaged, or beyond all measure."""
        code = {number for number, section in enumerate(elf.sections) if section.flags & _CODE == _CODE}
        keys: List[int] = []
        ends = array("Q")
        for table in tables_of(elf.sections):
            words = array("Q")
            words.frombytes(elf.content(table)[: table.size // 24 * 24])
            first = len(ends)
            # Elf64_Sym: name in the lower half of the first word, then info, other, section; value; size
            values, sizes = words[1::3], words[2::3]
            keys += [
                value << _NUMBER_BITS | number
                for number, (word, value) in enumerate(zip(words[0::3], values), first)
                if word >> 48 in code and (word >> 32) & 15 in _NAMED_KINDS
            ]
            ends.extend(array("Q", [value + size & _WORD for value, size in zip(values, sizes)]))
        if len(ends) >> _NUMBER_BITS:
            raise ValueError("too many symbols for an index")
        keys.sort()
        numbers = array("I", [key & _NUMBER for key in keys])
        reach = array("Q", itertools.accumulate([ends[number] for number in numbers], max))
        return cls(array("Q", [key >> _NUMBER_BITS for key in keys]), reach, numbers)

    def around(self, addresses: Iterable[int]) -> Set[int]:
        """Numbers of the symbols that may cover an address, and of those at the last start before it."""
        found: Set[int] = set()
        starts, reach, numbers = self._starts, self._reach, self._numbers
        for address in addresses:
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


_NUMBER = (1 << _NUMBER_BITS) - 1
_WORD = (1 << 64) - 1
