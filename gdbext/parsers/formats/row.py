"""One kind of line: how it is recognised and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Match, Optional, Pattern, Sequence, Tuple

from gdbext.parsers.events import Detail, Event

Read = Callable[[Match[str]], Optional[Event]]


@dataclass(frozen=True)
class Row:
    """`kind` names the tool that prints such lines; empty where several do. `need` is text that the line must hold,
    looked for first because that is cheap. `pattern` is matched from the start; `read` may still say None: not mine.
    With `inside` the row counts only within a stack of that kind.
    """

    kind: str
    need: str
    pattern: Pattern[str]
    read: Read
    inside: str = ""


def row(kind: str, need: str, pattern: str, read: Read, inside: str = "") -> Row:
    """A row with its pattern compiled. Patterns must not nest repetitions: hostile text must not cost more than time
    that grows with its length."""
    return Row(kind, need, re.compile(pattern), read, inside)


def detail(_: Match[str]) -> Detail:
    """For lines that belong to a format and say nothing that is kept."""
    return Detail()


def number(text: Optional[str]) -> Optional[int]:
    """A decimal or 0x number, None for nothing."""
    return int(text, 16 if text.startswith("0x") else 10) if text else None


def first_event(rows: Sequence[Row], line: str, inside: str) -> Optional[Tuple[str, Event]]:
    """What a line says within a stack of kind `inside`, and the kind that says it; None when no row can read it."""
    for one in rows:
        if one.need in line and (not one.inside or one.inside == inside):
            match = one.pattern.match(line)
            event = one.read(match) if match else None
            if event is not None:
                return one.kind, event
    return None
