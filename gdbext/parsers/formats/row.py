"""One kind of line: how it is recognised and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Dict, Match, Optional, Pattern, Sequence, Tuple

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

    @property
    def loose(self) -> bool:
        """Whether any line matches, so that only `need` and `read` decide."""
        return self.pattern.pattern == "."


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


class Grammar:
    """Rows in order. Most lines of a log are no part of any stack: one expression over all rows tells that at once."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = tuple(rows)
        self._by_kind: Dict[str, Tuple[Pattern[str], Tuple[Row, ...], Tuple[Row, ...]]] = {}

    def read(self, line: str, inside: str) -> Optional[Tuple[str, Event]]:
        """What a line says within a stack of kind `inside`, and the kind that says it; None: no row can read it."""
        known = self._by_kind.get(inside)
        if known is None:
            known = self._by_kind[inside] = self._for_kind(inside)
        gate, rows, loose = known
        for one in rows if gate.match(line) else loose:
            if one.need in line:
                match = one.pattern.match(line)
                event = one.read(match) if match else None
                if event is not None:
                    return one.kind, event
        return None

    def _for_kind(self, kind: str) -> Tuple[Pattern[str], Tuple[Row, ...], Tuple[Row, ...]]:
        rows = tuple(one for one in self._rows if not one.inside or one.inside == kind)
        strict = (one.pattern.pattern for one in rows if not one.loose)
        gate = "|".join(f"(?:{_GROUP_NAME.sub('(?:', pattern)})" for pattern in strict)
        return re.compile(gate), rows, tuple(one for one in rows if one.loose)


_GROUP_NAME = re.compile(r"\(\?P<\w+>")
