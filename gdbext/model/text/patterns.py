"""Regular expressions that are compiled when they are first needed: knowledge has hundreds, one run needs a few."""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Match, Optional, Pattern, Tuple, cast

_METHODS = ("match", "search", "fullmatch", "finditer", "findall", "split", "sub")
_MOST_BEGINNINGS = 60
_GROUP_NAME = re.compile(r"\(\?P<\w+>")
_QUANTIFIERS = "?*{"
_SPECIAL = r".^$*+?{}[]\|()"


def regex(text: str, flags: int = 0) -> Pattern[str]:
    """As `re.compile`, but done at the first use; a text that begins otherwise than every match is no use yet."""
    return cast("Pattern[str]", _Lazy(text, flags))


def union_pattern(patterns: Iterable[str]) -> Pattern[str]:
    """What matches where one of them does: a gate before a look which it is. Their groups have no names in it."""
    return regex("|".join(f"(?:{_GROUP_NAME.sub('(?:', pattern)})" for pattern in patterns))


class _Lazy:
    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text
        self.flags = flags
        self._beginnings: Optional[Tuple[str, ...]] = None

    def match(self, string: str, *bounds: int) -> Optional[Match[str]]:
        if self._beginnings is None:
            self._beginnings = () if self.flags else literal_prefixes(self.pattern)
        if self._beginnings and not bounds and not string.startswith(self._beginnings):
            return None
        return self._compile().match(string, *bounds)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compile(), name)

    def _compile(self) -> Pattern[str]:
        compiled = re.compile(self.pattern, self.flags)
        for name in _METHODS:
            self.__dict__[name] = getattr(compiled, name)
        return compiled


def literal_prefixes(text: str) -> Tuple[str, ...]:
    """Literal texts, with one of which each match of the expression begins. Empty where that cannot be told easily."""
    found, end = _alternatives(text, 0)
    return tuple(found) if found and end == len(text) and len(found) <= _MOST_BEGINNINGS else ()


_Found = Optional[List[str]]
"""Beginnings; None: anything."""


def _alternatives(text: str, at: int) -> Tuple[_Found, int]:
    """Of `a|b|...` up to the closing parenthesis or the end, and where that is."""
    total: _Found = []
    while True:
        found, at = _sequence(text, at)
        total = None if total is None or found is None else [*total, *found]
        if at >= len(text) or text[at] == ")":
            return total, at
        at += 1  # the bar


def _sequence(text: str, at: int) -> Tuple[_Found, int]:
    """Of one alternative, and where it ends: at a bar, a closing parenthesis or the end of the text."""
    optional: List[str] = []
    while True:
        found, after = _item(text, at)
        if found is None or after == at:
            return None, _skip(text, at)
        at = after
        if at < len(text) and text[at] in _QUANTIFIERS:
            optional += found
            at = _quantified(text, at)
        else:
            return [*optional, *found], _skip(text, at)


def _item(text: str, at: int) -> Tuple[_Found, int]:
    """Of the next thing: a run of plain characters, a set of them or a group."""
    if text.startswith("(?i:", at):
        found, end = _alternatives(text, at + 4)
        return None if found is None else [case for one in found for case in (one[0].lower(), one[0].upper())], end + 1
    if text.startswith("(", at):
        if text.startswith("(?", at) and not text.startswith("(?:", at):
            return None, at
        found, end = _alternatives(text, at + (3 if text.startswith("(?:", at) else 1))
        return found, end + 1
    if text.startswith("[", at):
        end = text.find("]", at + 2)
        members = text[at + 1 : end]
        return (list(members), end + 1) if end > 0 and members.isalnum() else (None, at)
    end = at
    while end < len(text) and text[end] not in _SPECIAL:
        end += 1
    if end < len(text) and text[end] in _QUANTIFIERS and end - at > 1:
        end -= 1  # the quantifier is the last character's
    return [text[at:end]], end


def _quantified(text: str, at: int) -> int:
    """Behind a quantifier."""
    if text[at] == "{":
        at = text.index("}", at)
    return at + 2 if text[at + 1 : at + 2] == "?" else at + 1


def _skip(text: str, at: int) -> int:
    """The end of the alternative that `at` lies in."""
    depth = 0
    while at < len(text):
        mark = text[at]
        if mark == "\\":
            at += 1
        elif mark == "[":
            at = _behind_set(text, at)
            continue
        elif mark == "(":
            depth += 1
        elif mark == ")" and depth:
            depth -= 1
        elif mark in "|)" and not depth:
            return at
        at += 1
    return at


def _behind_set(text: str, at: int) -> int:
    """Behind `[...]`; a bracket that comes first is a member."""
    at += 2 if text[at + 1] == "^" else 1
    at += 1
    while text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at + 1
