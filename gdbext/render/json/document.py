"""Model objects as the JSON documents of `--json`: one object, `schema`, stable keys, unknown = null, never colour.

Which keys they have is said by the rows of model/json_documents; this walks over them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping as AbstractMapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Callable, Dict, List, Mapping, Optional

from gdbext import __version__
from gdbext.model.job import SCHEMA
from gdbext.model.json_documents.answers import ANSWERED, LISTS, rows_of
from gdbext.model.json_documents.document_row import Row, Rows
from gdbext.model.look_origin import FromFile
from gdbext.model.missing import Missing
from gdbext.render.json.json_text import Lines, json_text

Document = Dict[str, Any]
Step = Callable[[Any, Document], None]

TOOL = f"gdbext {__version__}"


def document(obj: Any) -> Document:
    """The JSON-ready document of a model object, or of a list of some of them (`LISTS`).

    Raises `TypeError` for a type that has none.
    """
    if isinstance(obj, FromFile):
        return {**document(obj.answer), "read_from": _plain(obj.origin)}
    head = {"schema": SCHEMA, "tool": TOOL}
    if isinstance(obj, (list, tuple)):
        key = next((key for kind, key in LISTS.items() if all(isinstance(item, kind) for item in obj)), None)
        if key is None:
            raise TypeError(f"no document for a list of {type(obj[0]).__name__}")
        return {**head, key: _plain(obj)}
    if not isinstance(obj, ANSWERED):
        raise TypeError(f"no document for {type(obj).__name__}")
    return {**head, **_plain(obj)}


def dumps(obj: Any, indent: Optional[int] = None) -> str:
    """The text of `document(obj)`."""
    return json_text(document(obj), indent)


_SCALARS = (str, int, float, bool, type(None))
_AS_THEY_ARE = frozenset(_SCALARS)


def _plain(value: Any) -> Any:
    """JSON data of any value."""
    kind: type = type(value)
    return _writer(kind)(value)


@functools.lru_cache(maxsize=None)
def _writer(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, _SCALARS):
        return _as_it_is
    if kind is Missing:
        return lambda value: None
    if issubclass(kind, AbstractMapping):
        return lambda value: {str(key): _plain(item) for key, item in value.items()}
    rows = rows_of(kind)
    return _written_by(rows) if rows else lambda value: [_plain(item) for item in value]


def _as_it_is(value: Any) -> Any:
    return value


@functools.lru_cache(maxsize=None)
def _written_by(rows: Rows) -> Callable[[Any], Document]:
    """What makes the document. Fields as they are are taken together: a job has a million of them."""
    steps: List[Step] = []
    for plain, some in groupby(rows, lambda row: row.plain):
        group = tuple(some)
        steps += [_fields(group)] if plain else map(_step, group)
    if all(row.plain for row in rows):
        return _of_fields(rows)

    def write(value: Any) -> Document:
        made: Document = {}
        for step in steps:
            step(value, made)
        return made

    return write


def _fields(rows: Rows) -> Step:
    write = _of_fields(rows)
    return lambda value, made: made.update(write(value))


def _of_fields(rows: Rows) -> Callable[[Any], Document]:
    keys, paths = [row.key for row in rows], [row.path for row in rows]
    read = attrgetter(*paths, paths[0])  # of one path it would be no tuple

    def write(value: Any) -> Document:
        found = read(value)
        if _AS_THEY_ARE.issuperset(map(type, found)):
            return dict(zip(keys, found))
        return dict(zip(keys, map(_plain, found)))

    return write


def _step(row: Row) -> Step:
    read = row.made or (attrgetter(row.path) if row.path else _as_it_is)
    turn = _turn(row)

    def step(value: Any, made: Document) -> None:
        found = read(value)
        found = None if row.or_null and not found else turn(found)
        if row.key:
            made[row.key] = found
        else:
            made.update(found or {})

    return step


def _turn(row: Row) -> Callable[[Any], Any]:
    if not row.rows:
        return _TURNS[row.turn]
    write = _written_by(row.rows)
    if row.reasons:
        return lambda value: {key: reason for key, reason in write(value).items() if reason is not None}
    return _each(write)


def _each(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of a list each item; of None and what is missing null."""

    def turn(value: Any) -> Any:
        if value is None or isinstance(value, Missing):
            return None
        several = isinstance(value, (list, tuple)) and not rows_of(type(value))
        return list(map(turn, value)) if several else write(value)

    return turn


def _number(value: Any) -> Any:
    """As JSON has it; complex as {"re", "im"}; NaN, Infinity and -Infinity as text."""
    if isinstance(value, complex):
        return {"re": _number(value.real), "im": _number(value.imag)}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


_TURNS: Mapping[str, Callable[[Any], Any]] = {
    "": _plain,
    "hex": _each(hex),
    "lines": _each(Lines),
    "number": _each(_number),
    "reason": lambda value: value.reason if isinstance(value, Missing) else None,
}
