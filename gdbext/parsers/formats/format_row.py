"""One kind of line: how it is recognised and what it says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Match, Optional, Pattern, Sequence, Tuple

from gdbext.model.stack import Frame
from gdbext.model.text.literals import any_of, required_literals
from gdbext.model.text.patterns import regex
from gdbext.parsers.frame_lines import Place, named_frame
from gdbext.parsers.line_events import Detail, Event, FrameLine, Location, LogMessage, ProcessHead

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


def native_frame(match: Match[str]) -> FrameLine:
    """A native frame, of those of its parts that the pattern has groups for."""
    has = match.groupdict()
    place = Place(has.get("lib"), has.get("file"), number(has.get("line")))
    return FrameLine(named_frame(has["name"] or "", place, number(has.get("pc"))), number(has.get("number")))


def outermost_first(match: Match[str]) -> FrameLine:
    """The same, of a tool that lists the callers first."""
    return replace(native_frame(match), outermost_first=True)


def python(match: Match[str]) -> FrameLine:
    """A frame of Python."""
    line = number(match.group("line"))
    return FrameLine(Frame(match.group("name"), file=match.group("file") or None, line=line, language="python"))


def python_outermost_first(match: Match[str]) -> FrameLine:
    """The same, of a traceback."""
    return replace(python(match), outermost_first=True)


def location(match: Match[str]) -> Location:
    """Where the frame before stands."""
    return Location(match.group("file"), int(match.group("line")))


def process_head(match: Match[str]) -> ProcessHead:
    """What follows is of that process."""
    return ProcessHead(title=match.groupdict().get("title", ""), pid=int(match.group("pid")))


def announcement(match: Match[str]) -> LogMessage:
    """What a tool says before the stack that it is about."""
    has = match.groupdict()
    return LogMessage(has.get("text") or match.group(), number(has.get("pid")), about="next")


def number(text: Optional[str]) -> Optional[int]:
    """A decimal or 0x number, None for nothing."""
    return int(text, 16 if text.startswith("0x") else 10) if text else None


class Grammar:
    """Rows in order. Most lines of a log are no part of any stack: one look for what the rows need tells that."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = tuple(rows)
        self._by_kind: Dict[str, _Kind] = {}

    def read(self, line: str, inside: str) -> Optional[Tuple[str, Event]]:
        """What a line says within a stack of kind `inside`, and the kind that says it; None: no row can read it."""
        known = self._by_kind.get(inside)
        if known is None:
            known = self._by_kind[inside] = _Kind(self._rows, inside)
        for one in known.candidate_rows(line):
            if one.need in line:
                match = one.pattern.match(line)
                event = one.read(match) if match else None
                if event is not None:
                    return one.kind, event
        return None


class _Kind:
    """The rows that count within stacks of one kind."""

    def __init__(self, rows: Sequence[Row], kind: str) -> None:
        counting = [one for one in rows if not one.inside or one.inside == kind]
        own = [one for one in counting if kind in _OWN_FIRST and one.kind == kind]
        self._rows = (*own, *(one for one in counting if one not in own))
        self._needless: Optional[Tuple[Row, ...]] = None
        self._quick: Optional[Pattern[str]] = None
        self._lines = 0

    def candidate_rows(self, line: str) -> Tuple[Row, ...]:
        """All rows; only those that need no text where the line has none of what the others need. A short text is read
        before that is worked out."""
        self._lines += 1
        if self._lines <= _SHORT:
            return self._rows
        if self._quick is None or self._needless is None:
            self._quick, self._needless = self._look_for()
        return self._rows if self._quick.search(line) else self._needless

    def _look_for(self) -> Tuple[Pattern[str], Tuple[Row, ...]]:
        literals: List[str] = []
        needless: List[Row] = []
        for one in self._rows:
            need = (
                (one.need,)
                if len(one.need) >= _LONG_ENOUGH
                else None
                if one.loose
                else required_literals(one.pattern.pattern)
            )
            if need is None:
                needless.append(one)
            else:
                literals += need
        return any_of(literals), tuple(needless)


_OWN_FIRST = ("gdb", "py-spy")
"""Tools whose rows no other tool's line resembles within such a stack: most texts are of these."""

_LONG_ENOUGH = 3
_SHORT = 300  # lines
