"""Breakpoints over the ranks, and where each rank stands."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping

from gdbext.model.rank_breakpoints import BreakPoint, BreakTable
from gdbext.model.text.ranges import ranks
from gdbext.render.safe_text import clean, shorten_name, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table


def break_lines(answer: BreakTable, style: Style) -> List[str]:
    lines: List[str] = []
    for point in answer.points:
        text = f"Breakpoint {point.number} at {clean(point.location, style)}, {_who(point)}"
        text += f", if {clean(point.condition, style)}" if point.condition else ""
        text += f", from passing {point.count} on" if point.count > 1 else ""
        text += _then(point, style)
        text += "; pending: no process has such a place yet" if point.pending else ""
        if point.passed:
            text += "; passed " + ", ".join(f"{name}: {count}" for name, count in sorted(point.passed.items()))
        for problem, names in _by_problem(point.errors).items():
            text += f"; condition not evaluated in {', '.join(names)}: {clean(problem, style)}"
        lines += wrapped(text, style, indent="  ")
    columns = (Column("rank", right=True), Column("pid", right=True), Column("state"), Column("in", least=16))
    rows = [
        Row(
            [
                (f"{style.current} " if place.current else "") + ("" if place.rank is None else str(place.rank)),
                str(place.pid),
                f"at breakpoint {place.hit}" if place.hit is not None else "waits there" if place.held else place.state,
                clean(shorten_name(place.function, 100, style), style) if place.function else "",
            ]
        )
        for place in answer.places
    ]
    lines += table(columns, rows, style)
    for note in answer.notes:
        lines += wrapped(clean(note, style), style)
    return lines


def _by_problem(errors: Mapping[str, str]) -> Dict[str, List[str]]:
    found: Dict[str, List[str]] = {}
    for name, problem in sorted(errors.items()):
        found.setdefault(problem, []).append(name)
    return found


def _who(point: BreakPoint) -> str:
    """`rank 1`, `ranks 0-2`; pids where nobody knows the numbers."""
    if point.ranks:
        return ranks(point.ranks)
    return "any rank" if point.pids is None else "pid " + ", ".join(map(str, point.pids))


_OTHERS = {
    "hold": "the others run up to it and wait",
    "run": "the others keep running",
    "stop": "the others stop at once",
}


def _then(point: BreakPoint, style: Style) -> str:
    """What happens when a rank comes there."""
    if point.action == "report":
        return ", reported only"
    if point.action == "log":
        return f", logged only{': ' if point.expressions else ''}" + clean(", ".join(point.expressions), style)
    return f", {_OTHERS[point.others]}, released after {point.limit:g} s without a command"


RENDERERS: Mapping[type, Callable[..., List[str]]] = {BreakTable: break_lines}
