"""Numbers, names, lists, tuples and dictionaries of another process's Python. Nothing is trusted: types are checked,
lengths are capped."""

from __future__ import annotations

import struct
from typing import Iterator, List, Optional, Sequence, Tuple

from gdbext.capture.python.local_variables import Locals
from gdbext.knowledge.runtimes.cpython import OBJECT_TYPE, TUPLE_LENGTH, TYPE_NAME
from gdbext.knowledge.runtimes.cpython_objects import (
    BITS_OF_A_DIGIT,
    DEQUE,
    DICT,
    FLOAT,
    INTEGER,
    LIST_ITEMS,
    SPLIT,
    UNICODE,
    ObjectsRow,
)
from gdbext.model.stack import Captured

LONGEST = 256  # characters of a name
MOST_ITEMS = 1 << 14  # of a list or dictionary that is read whole: ranks, groups, names of a module
MOST_BLOCKS = 1 << 14  # of a deque that are gone through from the nearer end: a million items
_PIECE = 1 << 12  # entries that are read at once
_WORD = struct.Struct("<Q")

Pair = Tuple[int, int]
"""The addresses of a key and of its value."""


class Containers:
    """Reads what an object holds, by its address."""

    def __init__(self, variables: Locals, row: ObjectsRow) -> None:
        self.pages, self.row = variables.pages, row
        self._text, self._tuple_items = variables.objects.text, variables.row.tuple_items

    def kind(self, address: int) -> Optional[bytes]:
        """The name of an object's type."""
        kind = self.pages.word(address + OBJECT_TYPE) if address else None
        name = self.pages.word(kind + TYPE_NAME) if kind else None
        data = self.pages.read(name, 16) if name else None
        return data.split(b"\0", 1)[0] if data else None

    def text(self, address: int, longest: int = LONGEST) -> Optional[str]:
        """Of a str; None of anything else."""
        return self._text(address, longest)

    def value(self, address: int) -> Optional[Captured]:
        """A number, a name, or the numbers of a list, separated by commas."""
        kind = self.kind(address)
        if kind == b"int":
            return self.number(address)
        if kind == b"str":
            return self.text(address)
        if kind in (b"list", b"tuple"):
            numbers = [self.number(item) for item in self.elements(address, kind == b"list", 0, MOST_ITEMS)]
            whole = len(numbers) == self.length(address)
            return ",".join(map(str, numbers)) if numbers and whole and None not in numbers else None
        return None

    def number(self, address: int, most_digits: int = 1) -> Optional[int]:
        """An int of few digits (30 bits each); one suffices for all ranks."""
        data = self.pages.read(address + INTEGER, 8) if self.kind(address) == b"int" else None
        if data is None:
            return None
        (tag,) = struct.unpack("<q", data)
        count = tag >> 3 if self.row.tagged else abs(tag)
        negative = tag & 3 == 2 if self.row.tagged else tag < 0
        if self.row.tagged and tag & 3 == 1:
            count = 0
        if count > most_digits or count < 0:
            return None
        digits = self.pages.read(address + INTEGER + 8, 4 * count) if count else b""
        if digits is None:
            return None
        size = 0
        for place, (digit,) in enumerate(struct.iter_unpack("<I", digits)):
            size += int(digit) << BITS_OF_A_DIGIT * place
        return -size if negative else size

    def real(self, address: int) -> Optional[float]:
        """A float."""
        data = self.pages.read(address + FLOAT, 8) if self.kind(address) == b"float" else None
        return float(struct.unpack("<d", data)[0]) if data else None

    def length(self, address: int) -> int:
        """Of a list, a tuple or a deque, as it says itself."""
        found = self.pages.word(address + TUPLE_LENGTH) or 0
        return found if found < 1 << 48 else 0

    def elements(self, address: int, is_list: bool, first: int, most: int) -> Sequence[int]:
        """At most so many items of a list or a tuple from the one with the number `first` on."""
        items = self.pages.word(address + LIST_ITEMS) if is_list else address + self._tuple_items
        count = min(self.length(address) - first, most)
        data = self.pages.read(items + 8 * first, 8 * count) if items and count > 0 else None
        return [item for (item,) in _WORD.iter_unpack(data)] if data else []

    def queued(self, address: int, first: int, most: int) -> Sequence[int]:
        """At most so many items of a deque from the one with the number `first` on; nothing of one that is too far
        from both ends."""
        head = self.pages.read(address + DEQUE.left_block, 32)
        count = min(self.length(address) - first, most)
        left, right, left_index, right_index = struct.unpack("<4Q", head) if head else (0, 0, 0, 0)
        to_last, end = divmod(left_index + self.length(address) - 1, DEQUE.in_block)
        if count <= 0 or left_index >= DEQUE.in_block or end != right_index:
            return []
        number, place = divmod(left_index + first, DEQUE.in_block)
        from_left = number <= to_last - number
        block, link = (left, DEQUE.right_link) if from_left else (right, DEQUE.left_link)
        steps = number if from_left else to_last - number
        if steps > MOST_BLOCKS:
            return []
        for _ in range(steps):
            block = self.pages.word(block + link) or 0
        found: List[int] = []
        while block and len(found) < count:
            size = min(DEQUE.in_block - place, count - len(found))
            data = self.pages.read(block + DEQUE.items + 8 * place, 8 * size)
            if data is None:
                break
            found += [item for (item,) in _WORD.iter_unpack(data)]
            block, place = self.pages.word(block + DEQUE.right_link) or 0, 0
        return found

    def items(self, address: int) -> Iterator[Pair]:
        """The keys and values of a dictionary, in the order in which they came; nothing of one that is very long."""
        if self.kind(address) == b"dict" and self.used(address) <= MOST_ITEMS:
            yield from self.pairs(address, MOST_ITEMS)

    def used(self, address: int) -> int:
        """How many entries a dictionary says it has."""
        return self.pages.word(address + DICT.used) or 0

    def pairs(self, address: int, most: int) -> Iterator[Pair]:
        """The first keys and values of what is a dictionary, or of a class derived of it."""
        keys, values = self.pages.word(address + DICT.keys), self.pages.word(address + DICT.values)
        if keys and values is not None:
            yield from self.with_values(keys, values + self.row.values if values else 0, most)

    def with_values(self, keys: int, values: int, most: int) -> Iterator[Pair]:
        """What a table of keys leads to; `values` is where the values stand when they are apart (else 0)."""
        header = self.pages.read(keys, self.row.indices)
        if header is None:
            return
        entries = min(_WORD.unpack_from(header, self.row.entries)[0], most)
        if self.row.log_sizes:
            wide, kind = 1 << min(header[9], 40), header[10]
        else:
            size = _WORD.unpack_from(header, 8)[0]
            wide, kind = size * (1 if size <= 0xFF else 2 if size <= 0xFFFF else 4), 0
        if bool(values) != (kind == SPLIT) and self.row.log_sizes:
            return
        words = 2 if kind in (UNICODE, SPLIT) else 3
        start = keys + self.row.indices + wide
        for first in range(0, entries, _PIECE):
            count = min(_PIECE, entries - first)
            data = self.pages.read(start + 8 * words * first, 8 * words * count)
            if data is None:
                return
            table: List[Tuple[int, ...]] = list(struct.iter_unpack(f"<{words}Q", data))
            if values:
                apart = self.pages.read(values + 8 * first, 8 * count)
                if apart is None:
                    return
                table = [(*one[:-1], value) for one, (value,) in zip(table, _WORD.iter_unpack(apart))]
            yield from ((one[-2], one[-1]) for one in table if one[-2] and one[-1])
