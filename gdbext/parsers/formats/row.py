"""One kind of line: how it is recognised and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Match, Optional, Pattern, Sequence, Tuple

from gdbext.model.patterns import either, regex
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
    return Row(kind, need, regex(pattern), read, inside)


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
        self._by_kind: Dict[str, _Kind] = {}

    def read(self, line: str, inside: str) -> Optional[Tuple[str, Event]]:
        """What a line says within a stack of kind `inside`, and the kind that says it; None: no row can read it."""
        known = self._by_kind.get(inside)
        if known is None:
            known = self._by_kind[inside] = _Kind(self._rows, inside)
        for one in known.worth_trying(line):
            if one.need in line:
                match = one.pattern.match(line)
                event = one.read(match) if match else None
                if event is not None:
                    return one.kind, event
        return None


class _Kind:
    """The rows that count within stacks of one kind, and the expression over all that match only some lines."""

    def __init__(self, rows: Sequence[Row], kind: str) -> None:
        self._rows = tuple(one for one in rows if not one.inside or one.inside == kind)
        self._loose = tuple(one for one in self._rows if one.loose)
        self._gate = either(one.pattern.pattern for one in self._rows if not one.loose)
        self._lines = 0

    def worth_trying(self, line: str) -> Tuple[Row, ...]:
        """All rows; only the loose ones where no other can match. A short text is read before the gate is compiled."""
        self._lines += 1
        return self._rows if self._lines <= _SHORT or self._gate.match(line) else self._loose


_SHORT = 300  # lines
