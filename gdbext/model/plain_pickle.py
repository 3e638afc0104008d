"""Reads pickles that hold nothing but containers, strings and numbers, without the pickle module.

Python's own reader can be told to refuse classes, but not to refuse keys that are nested tuples, whose hash takes time
exponential in their depth. So the few operations that torch writes are read here, and
any other one ends it.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Dict, List, Mapping

MOST_BYTES = 64 << 20
_MOST_MEMO = 1_000_000
_MOST_OBJECTS = 2_000_000
"""torch keeps 2,000 entries of some 30 values unless it is told otherwise."""
_LONGEST_INTEGER = 16  # bytes
_LONGEST_LINE = 1024


class NotPlain(ValueError):
    """It asks for something else than plain data, or is cut short."""


def loads(data: bytes) -> Any:
    """The object. Raises `NotPlain`. Time and memory are linear in the length, and both it and what a byte can make of
    it (an empty list takes 64) are bounded."""
    if len(data) > MOST_BYTES:
        raise NotPlain(f"longer than {MOST_BYTES >> 20} MiB")
    try:
        return Machine(data, _OPERATIONS).run()
    except (IndexError, struct.error, KeyError, OverflowError):
        raise NotPlain("cut short, or no pickle") from None


class Machine:
    """Reads by a table of operations; another reader may have more of them."""

    def __init__(self, data: bytes, table: Mapping[int, Callable[[Any], None]]) -> None:
        self._data, self._at, self._table = data, 0, table
        self._stack: List[Any] = []
        self._marks: List[int] = []
        self._memo: Dict[int, Any] = {}
        self._objects = 0  # that were put on the stack

    def run(self) -> Any:
        data, operations = self._data, self._table
        while True:
            code = data[self._at]
            self._at += 1
            if code == _STOP:
                return self._stack.pop()
            operation = operations.get(code)
            if operation is None:
                raise NotPlain(f"operation {code:#x} is not one of plain data")
            operation(self)

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise NotPlain("cut short")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def push(self, value: Any) -> None:
        self._objects += 1
        if self._objects > _MOST_OBJECTS:
            raise NotPlain("too many objects")
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop()

    def line(self) -> str:
        """Text up to the end of a line."""
        end = self._data.index(b"\n", self._at, self._at + _LONGEST_LINE)
        text = self._data[self._at : end].decode("utf-8", "replace")
        self._at = end + 1
        return text

    def skip(self, size: int) -> None:
        self._take(size)

    def mark(self) -> None:
        self._marks.append(len(self._stack))

    def since_mark(self) -> List[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def constant(self, value: Any) -> None:
        self.push(value)

    def empty(self, kind: Callable[[], Any]) -> None:
        self.push(kind())

    def integer(self, size: int, signed: bool) -> None:
        self.push(self._number(size, signed))

    def long(self) -> None:
        size = self._number(1)
        if size > _LONGEST_INTEGER:
            raise NotPlain("a number too long")
        self.push(self._number(size, signed=True))

    def real(self) -> None:
        self.push(struct.unpack(">d", self._take(8))[0])

    def text(self, size: int) -> None:
        self.push(self._take(self._number(size)).decode("utf-8", "replace"))

    def put(self, size: int) -> None:
        self._remember(self._number(size))

    def memoize(self) -> None:
        self._remember(len(self._memo))

    def _remember(self, key: int) -> None:
        if len(self._memo) >= _MOST_MEMO:
            raise NotPlain("too many objects")
        self._memo[key] = self._stack[-1]

    def get(self, size: int) -> None:
        self.push(self._memo[self._number(size)])

    def append(self) -> None:
        value = self._stack.pop()
        self._list().append(value)

    def appends(self) -> None:
        items = self.since_mark()
        self._list().extend(items)

    def _list(self) -> List[Any]:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise NotPlain("appends to something that is not a list")
        return target

    def set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set([key, value])

    def set_items(self) -> None:
        self._set(self.since_mark())

    def _set(self, items: List[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise NotPlain("sets items of something that is not a dict")
        for key, value in zip(items[::2], items[1::2]):
            if not isinstance(key, (str, int)):
                raise NotPlain("a key that is not a string")
            target[key] = value

    def tuple_of(self, count: int) -> None:
        if count > len(self._stack):
            raise NotPlain("cut short")
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        self.push(items)

    def tuple_since_mark(self) -> None:
        self.push(tuple(self.since_mark()))


_STOP = ord(".")
_OPERATIONS: Dict[int, Callable[[Machine], None]] = {
    0x80: lambda it: it.skip(1),  # PROTO
    0x95: lambda it: it.skip(8),  # FRAME
    ord("("): Machine.mark,
    ord("}"): lambda it: it.empty(dict),
    ord("]"): lambda it: it.empty(list),
    ord(")"): lambda it: it.constant(()),
    ord("N"): lambda it: it.constant(None),
    0x88: lambda it: it.constant(True),
    0x89: lambda it: it.constant(False),
    ord("K"): lambda it: it.integer(1, False),
    ord("M"): lambda it: it.integer(2, False),
    ord("J"): lambda it: it.integer(4, True),
    0x8A: Machine.long,
    ord("G"): Machine.real,
    ord("X"): lambda it: it.text(4),
    0x8C: lambda it: it.text(1),
    ord("q"): lambda it: it.put(1),
    ord("r"): lambda it: it.put(4),
    0x94: Machine.memoize,
    ord("h"): lambda it: it.get(1),
    ord("j"): lambda it: it.get(4),
    ord("a"): Machine.append,
    ord("e"): Machine.appends,
    ord("s"): Machine.set_item,
    ord("u"): Machine.set_items,
    0x85: lambda it: it.tuple_of(1),
    0x86: lambda it: it.tuple_of(2),
    0x87: lambda it: it.tuple_of(3),
    ord("t"): Machine.tuple_since_mark,
}


def operations() -> Dict[int, Callable[[Any], None]]:
    """Those of plain data, for a reader that knows more."""
    return dict(_OPERATIONS)
