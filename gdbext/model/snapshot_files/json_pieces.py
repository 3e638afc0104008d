"""JSON text read piece by piece: of a large document no more is in memory than one value and what is made of it."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Iterator

from gdbext.model.snapshot_files.data_errors import Unfit

LONGEST = 4 << 20
"""Characters of one value that is read whole. What is longer has to be entered by `names` and `items`."""

LONG = object()
"""Stands for a value that may be longer."""

_PIECE = 1 << 20  # bytes that are added at a time

_DIGITS = 400  # of a number: the largest float has 309
_BLANKS = " \t\n\r"
_NAME = re.compile(r'"([^"\\\x00-\x1f]{0,99})"[ \t\n\r]{0,9}:')
_BROKEN = "is no JSON"


def _integer(digits: str) -> int:
    """Older Pythons take the square of its length for it."""
    if len(digits) > _DIGITS:
        raise Unfit(f"is a number of {len(digits):,} digits")
    return int(digits)


def _constant(name: str) -> Any:
    raise Unfit(f"is {name}, which is not a JSON number")


class JsonPieces:
    """Stands before a value of the text, or behind the last. Raises `Unfit` where the text is no JSON."""

    def __init__(self, data: bytes) -> None:
        self._data, self._read = data, 0  # bytes that are in the window, or have been
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._window, self._at, self._refill_at = "", 0, 0
        self._decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_constant)

    def value(self) -> Any:
        """The value, whole."""
        self._next()
        try:
            found, self._at = self._decoder.raw_decode(self._window, self._at)
        except json.JSONDecodeError:
            long = self._read < len(self._data)
            raise Unfit(f"is longer than {LONGEST:,} characters, or {_BROKEN}" if long else _BROKEN) from None
        except RecursionError:
            raise Unfit("is nested too deeply") from None
        return found

    def names(self) -> Iterator[str]:
        """The names of an object's members, each when this stands before its value, which must be read then."""
        self._enter("{", "is not an object")
        if self._leaves("}"):
            return
        while True:
            self._next()
            plain = _NAME.match(self._window, self._at)
            if plain is not None:
                self._at = plain.end()
                yield plain.group(1)
            else:
                yield self._escaped_name()
            if not self._goes_on("}"):
                return

    def _escaped_name(self) -> str:
        name = self.value()
        if type(name) is not str or self._next() != ":":
            raise Unfit(_BROKEN)
        self._at += 1
        return name

    def items(self) -> Iterator[int]:
        """The numbers of a list's items, each when this stands before the item, which must be read then."""
        self._enter("[", "is not a list")
        if self._leaves("]"):
            return
        number = 0
        while True:
            yield number
            number += 1
            if not self._goes_on("]"):
                return

    def values(self) -> Iterator[Any]:
        """The items of a list, each whole."""
        if self._next() != "[":
            raise Unfit("is not a list")
        found = self._short()
        yield from self._one_by_one() if found is LONG else found

    def entries(self) -> Iterator[Any]:
        """The items of a list, each whole, or `LONG`: then this stands before it, and it must be entered."""
        if self._next() != "[":
            raise Unfit("is not a list")
        found = self._short()
        yield from (self._short() for _ in self.items()) if found is LONG else found

    def _short(self) -> Any:
        """The value in one go, which is faster; `LONG` where not all of it is in the window, or it is none."""
        self._next()
        try:
            found, self._at = self._decoder.raw_decode(self._window, self._at)
        except (ValueError, RecursionError):
            return LONG
        return found

    def _one_by_one(self) -> Iterator[Any]:
        for number in self.items():
            try:
                yield self.value()
            except Unfit as problem:
                raise problem.within(f"[{number}]") from None

    def skip(self, levels: int = 0) -> None:
        """Go past the value; one that may be long is entered so many levels deep."""
        start = self._next()
        if levels and start == "{":
            for _ in self.names():
                self.skip(levels - 1)
        elif levels and start == "[":
            for _ in self.items():
                self.skip(levels - 1)
        else:
            self.value()

    def end(self) -> None:
        """Nothing may follow."""
        if self._next():
            raise Unfit("is followed by something else")

    def _next(self) -> str:
        """The first character that is no blank, "" at the end; a value that begins there is in the window."""
        while True:
            if self._at >= self._refill_at:
                self._refill()
            character = self._window[self._at : self._at + 1]
            if character > " " or not character or character not in _BLANKS:
                return character
            self._at += 1

    def _refill(self) -> None:
        """The window begins here, and has `LONGEST` characters, or all there are."""
        self._window, self._at = self._window[self._at :], 0
        while self._read < len(self._data) and len(self._window) <= LONGEST:
            piece = self._data[self._read : self._read + _PIECE]
            self._read += len(piece)
            self._window += self._decode(piece, self._read == len(self._data))
        left = self._read < len(self._data)
        self._refill_at = len(self._window) - LONGEST if left else len(self._window) + 1

    def _enter(self, opening: str, otherwise: str) -> None:
        if self._next() != opening:
            raise Unfit(otherwise)
        self._at += 1

    def _leaves(self, closing: str) -> bool:
        """Whether the list or object ends here; then this stands behind it."""
        ends = self._next() == closing
        self._at += ends
        return ends

    def _goes_on(self, closing: str) -> bool:
        """Whether another item follows, before which this stands then; else it stands behind the list or object."""
        found = self._next()
        if found not in (",", closing):
            raise Unfit(_BROKEN)
        self._at += 1
        return found == ","
