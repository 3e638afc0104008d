"""The rows of which documents and their schema are made: by which key, from where, how it is turned.

Most rows are a word, many of them stand in one text:

    rank              the field `rank`, by its name
    inferior=number   the field `number` by another name; `rank=process.rank` is a field of a field
    address:hex       turned, see `TURNS`
    symbol=name?      null where it is empty
    *                 every field of the type, in its order
    **wait            the keys of that object in this place; none where it is None

A value needs no row to be JSON: what is missing is null, a type of the model goes by its own rows or, without any, by
all of its fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Callable, Optional, Tuple, Union

TURNS = {
    "": "as it is",
    "hex": "a text: 0x and digits",
    "lines": "a text that somebody laid out in lines, which stay",
    "number": "a number of a tensor: NaN and infinities are words, a complex one has two parts",
    "reason": "why the value is missing; null where it is there",
}

_WORD = re.compile(r"(?P<spread>\*\*)?(?P<key>[\w.]+)(=(?P<path>[\w.]+))?(:(?P<turn>\w+))?(?P<empty>\?)?")


@dataclass(frozen=True)
class Row:
    """One key of a document; without a key those of an object."""

    key: str
    path: str = ""  # of fields, joined by dots; "": the object itself
    turn: str = ""
    or_null: bool = False  # what is empty is null
    made: Optional[Callable[[Any], Any]] = None  # makes the value, instead of a path; what it returns says its type
    rows: Rows = ()  # of the value, or of each item of it, instead of those of its type
    reasons: bool = False  # only those of `rows` that are not null

    @property
    def plain(self) -> bool:
        """It is a field, as it is."""
        return self == Row(key=self.key, path=self.path) and bool(self.key)


Rows = Tuple[Row, ...]


def rows(*parts: Union[str, Row]) -> Rows:
    """Rows of words and of what takes more than a word."""
    found = ([part] if isinstance(part, Row) else map(_of_word, part.split()) for part in parts)
    return tuple(row for some in found for row in some)


def _of_word(word: str) -> Row:
    if word == "*":
        return Row(key="*")
    said = _WORD.fullmatch(word)
    if said is None or (said["turn"] or "") not in TURNS:
        raise ValueError(f"{word} is not a row")
    path = said["path"] or said["key"]
    key = "" if said["spread"] else said["key"]
    return Row(key=key, path=path, turn=said["turn"] or "", or_null=bool(said["empty"]))


def fields_of(kind: type) -> Tuple[str, ...]:
    """Names of the fields of a type of the model; () of another one."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return getattr(kind, "_fields", ())


def expanded(kind: type, some: Rows) -> Rows:
    """The rows with all fields of the type in the place of `*`."""
    every = rows(*fields_of(kind))
    return tuple(row for one in some for row in (every if one.key == "*" else (one,)))


def computed(key: str, made: Callable[[Any], Any], *parts: Union[str, Row], turn: str = "") -> Row:
    """A value that a function makes of the object. Without a key its keys stand in this place."""
    return Row(key=key, made=made, rows=rows(*parts), turn=turn)


def nested(key: str, *parts: Union[str, Row], of: str = "") -> Row:
    """An object of its own, of the same fields or of those of the field `of`."""
    return Row(key=key, path=of, rows=rows(*parts))


def reasons(key: str, words: str) -> Row:
    """Why fields are missing, by the keys that they have in the document."""
    return Row(key=key, rows=tuple(replace(row, turn="reason") for row in rows(words)), reasons=True)
