"""Argument lists as debuggers print them, and which of their values are kept."""

from __future__ import annotations

import functools
import re
from typing import Dict, FrozenSet, Iterator, Mapping, Optional, Tuple

from gdbext.knowledge.causes.held_by_frames import SIGNAL_HANDLERS, SIGNAL_NUMBERS
from gdbext.knowledge.errors.checks import NAMES_OF_ERRORS
from gdbext.knowledge.frames import RULES
from gdbext.knowledge.frames.failures import ASSERTED, ASSERTS, OF_FILE, OF_FUNCTION, OF_LINE
from gdbext.knowledge.runtimes.glibc_locks import JOINS_THREAD, SYMBOL, UNTIL
from gdbext.model.missing import Missing
from gdbext.model.stack import Captured
from gdbext.model.text.patterns import regex

LOCKS = frozenset(("mutex", "futex", "futex_word", "cond", "rwlock", "sem", "lock", JOINS_THREAD, "tstate", UNTIL))
"""Arguments of the C library and CPython that say what is waited for, and until when; kept in any frame."""

_NO_LOCKS = (JOINS_THREAD, "tstate", "comm")

_BY_RULE = (
    (regex(ASSERTS), frozenset((*ASSERTED, OF_LINE, *OF_FILE, *OF_FUNCTION))),
    (regex(SIGNAL_HANDLERS), frozenset(SIGNAL_NUMBERS)),
    *(
        (regex(rule.function), frozenset(rule.captures))
        for rule in RULES
        if rule.captures and rule.language == "native"
    ),
)
_MAY_BE_CAPTURED = LOCKS.union(*(names for _, names in _BY_RULE))
_MOST_ARGUMENTS = 64
_LONGEST_TEXT = 200

_PIECE = regex(r'"(?:[^"\\]|\\.){0,400}"|\'(?:[^\'\\]|\\.[^\']{0,4})\'|[(){}\[\]<>,]')
_PARENTHESES = regex(r'"(?:[^"\\]|\\.){0,400}"|\'(?:[^\'\\]|\\.[^\']{0,4})\'|[()]')
_PLACE = regex(r" (?:at|from) ")
_DEPTH = {"(": 1, "{": 1, "[": 1, "<": 1, ")": -1, "}": -1, "]": -1, ">": -1}
_NAMED = regex(r"\s*([A-Za-z_]\w*)(?:@entry)?\s*=\s*(?:\w+@entry\s*=\s*)?(.*)\Z", re.DOTALL)
_NUMBER = regex(r"(-?\d{1,20}|0x[0-9a-fA-F]{1,16})(?:\s+<[^>]*>)?\Z")
_SYMBOL = regex(r"0x[0-9a-fA-F]{1,16}\s+<([^>]{1,200})>\Z")
_STRING = regex(r'(?:0x[0-9a-fA-F]{1,16}\s+)?"((?:[^"\\]|\\.)*)"')
_WORD = regex(r"[A-Za-z_][\w:]*\Z")
_ERROR = regex(NAMES_OF_ERRORS)
"""Enumerators of failed calls: kept in any frame."""
_UNREADABLE = regex(r"<([a-z][a-z ]{2,60})>\Z")


def captured_arguments(function: Optional[str], arguments: str) -> Mapping[str, Captured]:
    """The wanted ones of `comm=0x55, count=12, op=<optimized out>`: numbers as int, enumerators and strings as str."""
    if not arguments or "=" not in arguments:
        return {}
    kept: Dict[str, Captured] = {}
    for piece in _split(arguments):
        found = _NAMED.match(piece)
        # Most names are wanted of no function: to ask for one tries some hundred rules.
        if found and found.group(1) not in kept and _ERROR.match(found.group(2)):
            kept[found.group(1)] = found.group(2)
        elif (
            found
            and found.group(1) in _MAY_BE_CAPTURED
            and found.group(1) not in kept
            and found.group(1) in _wanted(function or "")
        ):
            value = read_value(found.group(2).strip())
            if value is not None:
                kept[found.group(1)] = value
            symbol = _SYMBOL.match(found.group(2).strip())
            if symbol and found.group(1) not in _NO_LOCKS:
                kept.setdefault(SYMBOL, symbol.group(1))
    return kept


def read_value(text: str) -> Optional[Captured]:
    """A printed value; None for structures and everything else that is not one number, word or string."""
    number = _NUMBER.match(text)
    if number:
        return int(number.group(1), 0) if number.group(1).startswith("0x") else int(number.group(1))
    string = _STRING.match(text)
    if string:
        return string.group(1)[:_LONGEST_TEXT]
    unreadable = _UNREADABLE.match(text)
    if unreadable:
        return Missing(unreadable.group(1))
    return text if _WORD.match(text) else None


@functools.lru_cache(maxsize=4096)
def _wanted(function: str) -> FrozenSet[str]:
    return LOCKS.union(*(names for pattern, names in _BY_RULE if pattern.match(function)))


def _split(arguments: str) -> Iterator[str]:
    """Pieces between commas that stand outside of brackets and strings."""
    depth = start = count = 0
    for found in _PIECE.finditer(arguments):
        mark = found.group()
        if mark == "," and depth <= 0:
            yield arguments[start : found.start()]
            start = found.end()
            count += 1
            if count >= _MOST_ARGUMENTS:
                return
        elif mark == ">" and arguments[found.start() - 1 : found.start()] == "-":
            continue
        else:
            depth = max(0, depth + _DEPTH.get(mark, 0))
    yield arguments[start:]


def split_call(text: str, spaced: bool = True) -> Tuple[str, str, str]:
    """`name (args) at file:1` -> name, args, ` at file:1`. Only a list after a space counts: `f(int)` is a name,
    unless `spaced` is off. An argument list that is cut short takes the rest.
    """
    depth = 0
    last: Optional[Tuple[int, int]] = None
    opened = 0
    for found in _PARENTHESES.finditer(text):
        mark = found.group()
        if mark == "(":
            opened = found.start() if depth == 0 else opened
            depth += 1
        elif mark == ")" and depth:
            depth -= 1
            if depth == 0 and not text.startswith("::", found.end()):  # `(anonymous namespace)::f`
                last = (opened, found.end())
                if _PLACE.match(text, found.end()):
                    break
    if depth:
        last = (opened, len(text))
    if last is None:
        return text, "", ""
    start, end = last
    if not spaced or (start and text[start - 1] == " "):
        return text[:start], text[start + 1 : end - (0 if depth else 1)], text[end:]
    return text[:end], "", text[end:]
