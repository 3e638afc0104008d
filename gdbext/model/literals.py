"""What a text must hold so that a regular expression can match anywhere in it: a look for it that costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Iterable, List, Optional, Tuple

_PARSER: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_SHORTEST = 3
_MOST = 24
_Found = Optional[Tuple[str, ...]]
"""Literals, one of which every match holds; None: nothing of the kind."""


def needed(pattern: str) -> _Found:
    """Literals of at least three characters, one of which every match of `pattern` holds; None where that cannot be told.

    `(?:bus|page) fault` gives ` fault`, `ECC error|NVLink` gives both alternatives.
    """
    found = _sequence(_PARSER.parse(pattern))
    return found if found is not None and _worth(found) >= _SHORTEST and len(found) <= _MOST else None


def _sequence(items: Iterable[Any]) -> _Found:
    """The best that one item of a sequence, or a run of plain characters in it, gives."""
    best: _Found = None
    run: List[str] = []
    for operation, value in items:
        if str(operation) == "LITERAL":
            run.append(chr(value))
            continue
        if str(operation) in ("AT", "ASSERT", "ASSERT_NOT"):
            found: _Found = None
        else:
            best, run = _better(best, ("".join(run),)), []
            found = _item(str(operation), value)
        best = _better(best, found)
    return _better(best, ("".join(run),))


def _item(operation: str, value: Any) -> _Found:
    if operation == "SUBPATTERN":
        return None if value[1] else _sequence(value[-1])  # with flags a letter may be another one
    if operation == "BRANCH":
        total: List[str] = []
        for alternative in value[1]:
            found = _sequence(alternative)
            if found is None:
                return None
            total += found
        return tuple(dict.fromkeys(total))
    if operation in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0:
        return _sequence(value[2])
    return None


def _better(one: _Found, other: _Found) -> _Found:
    """The one whose shortest literal is longer."""
    if other is None or not all(other):
        return one
    return other if one is None or _worth(other) > _worth(one) else one


def _worth(found: Tuple[str, ...]) -> int:
    return min(map(len, found), default=0)
