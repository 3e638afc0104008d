"""What a text must hold so that an expression can match in it: for many of them a look that costs nearly nothing."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any, Dict, Iterable, List, Optional, Pattern, Tuple

_PARSER: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_SHORTEST = 3
_MOST = 24
_Found = Optional[Tuple[str, ...]]
"""Literals, one of which every match holds; None: nothing of the kind."""


def required_literals(pattern: str) -> _Found:
    """Literals of three characters and more, one of which every match of `pattern` holds; None if that cannot be told.

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


_COMMON = " etaoinsrhldcumfpgwyb0123456789v.-_/:k"
"""Characters from the most frequent one on, as logs and stacks have them; all others are rarer."""


def any_of(literals: Iterable[str]) -> Pattern[str]:
    """An expression whose `search` finds something in every text that holds one of the literals; rarely in another.

    Of each literal the part from its rarest character on is looked for: the search stops at few characters of a text.
    """
    return re.compile(_expression(_tree({literal[_rarest(literal) :] for literal in literals})) or "(?!)")


def _rarest(literal: str) -> int:
    """Where the rarest character stands that leaves three characters."""
    places = range(max(1, len(literal) - _SHORTEST + 1))
    return max(places, key=lambda at: _COMMON.find(literal[at]) if literal[at] in _COMMON else len(_COMMON))


_Tree = Dict[str, Any]


def _tree(words: Iterable[str]) -> _Tree:
    root: _Tree = {}
    for word in sorted(words):
        node = root
        for mark in word:
            if "" in node:
                break  # a shorter one is found first
            node = node.setdefault(mark, {})
        node.clear()
        node[""] = {}
    return root


def _expression(node: _Tree) -> str:
    if "" in node:
        return ""
    several = [re.escape(mark) + _expression(rest) for mark, rest in node.items()]
    return several[0] if len(several) == 1 else f"(?:{'|'.join(several)})"
