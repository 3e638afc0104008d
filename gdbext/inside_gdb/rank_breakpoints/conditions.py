"""Conditions of llm-break: checked when they are set, as far as gdb can, and never true by accident."""

from __future__ import annotations

import re
from typing import Optional

import gdb

from gdbext.inside_gdb.base import compat, symbols

_SCALARS = frozenset(
    getattr(gdb, f"TYPE_CODE_{name}") for name in ("INT", "CHAR", "BOOL", "ENUM", "FLT", "PTR", "RANGE", "FLAGS")
)
_REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
_WRONG_EVERYWHERE = re.compile(r"A (syntax|parse) error|Unterminated|Unmatched|Invalid (character|number)|Junk at end")
"""Errors of gdb's parser that do not depend on the place."""
_STRING = re.compile(r"\"(\\.|[^\"\\])*\"")
_CALLED = re.compile(r"\$(\w+)\s*\(")


def is_true(condition: str) -> bool:
    """In the selected frame. Raises gdb.error when it cannot be evaluated.

    gdb.Value takes everything for true that is not a number: a reference to 0, a struct, the result of nothing at all.
    """
    value = gdb.parse_and_eval(condition)
    kind = value.type.strip_typedefs()
    if kind.code in _REFERENCES:
        value = value.referenced_value()
        kind = value.type.strip_typedefs()
    if kind.code not in _SCALARS:
        raise gdb.error(f"its value is of type {kind}, neither true nor false")
    return bool(value)


def wrong_everywhere(condition: str) -> Optional[str]:
    """Why a condition can be evaluated nowhere; None when that cannot be told without a place."""
    return _syntax_error(condition) or _unknown_function(condition)


def problem_there(condition: str, point: gdb.Breakpoint) -> Optional[str]:
    """Why a condition can be evaluated at no place of the breakpoint; None when it can at one, or has no place yet."""
    problem = None
    places = [(address, number) for address, numbers in compat.locations(point) for number in numbers]
    for address, number in places:
        inferior = next((one for one in gdb.inferiors() if one.num == number), None)
        if inferior is None:
            continue
        with compat.inferior_selected(inferior):
            problem = _problem_at(address, condition)
        if problem is None:
            return None
    return problem


class _Probe(gdb.Breakpoint):
    """Takes a condition as gdb would at this address: names of variables are those of the place."""

    def __init__(self, address: int) -> None:
        super().__init__(f"*{address:#x}", internal=True)

    def stop(self) -> bool:
        return False


def _problem_at(address: int, condition: str) -> Optional[str]:
    probe = _Probe(address)
    try:
        probe.condition = condition
    except gdb.error as error:
        return symbols.first_line(error)
    finally:
        probe.delete()
    return None


def _syntax_error(condition: str) -> Optional[str]:
    try:
        compat.one_command(f"whatis {condition}")  # nothing is called or written
    except gdb.error as error:
        text = symbols.first_line(error)
        return text if _WRONG_EVERYWHERE.match(text) else None
    return None


def _unknown_function(condition: str) -> Optional[str]:
    """gdb parses a call of anything with a dollar, and fails when it makes it."""
    for name in _CALLED.findall(_STRING.sub('""', condition)):
        if gdb.parse_and_eval(f"${name}").type.code == gdb.TYPE_CODE_VOID:
            return f"gdb has no function ${name}"
    return None
