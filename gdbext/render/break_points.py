"""Breakpoints over the ranks, and where each rank stands."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Dict, List

from gdbext.model.break_points import BreakTable
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text import clean, shorten_name, wrapped


def break_lines(answer: BreakTable, style: Style) -> List[str]:
    lines: List[str] = []
    for point in answer.points:
        who = "any rank" if point.pids is None else "pid " + ", ".join(map(str, point.pids))
        text = f"Breakpoint {point.number} at {clean(point.location, style)}, {who}"
        text += f", if {clean(point.condition, style)}" if point.condition else ""
        text += f", from passing {point.count} on" if point.count > 1 else ""
        text += ", logged only" if point.action == "log" else f", released after {point.limit:g} s without a command"
        text += "; pending: no process has such a place yet" if point.pending else ""
        text += "; passed " + ", ".join(f"{name}: {count}" for name, count in sorted(point.passed.items()))
        lines += wrapped(text if point.passed else text.rpartition("; passed ")[0], style, indent="  ")
    columns = (Column("rank", right=True), Column("pid", right=True), Column("state"), Column("in", least=16))
    rows = [
        Row(
            [
                ("▶ " if place.current and style.unicode else "") + ("" if place.rank is None else str(place.rank)),
                str(place.pid),
                place.state if place.hit is None else f"at breakpoint {place.hit}",
                clean(shorten_name(place.function, 100, style), style) if place.function else "",
            ]
        )
        for place in answer.places
    ]
    lines += table(columns, rows, style)
    for note in answer.notes:
        lines += wrapped(clean(note, style), style)
    return lines


def break_document(answer: BreakTable) -> Dict[str, Any]:
    return {"breakpoints": asdict(answer)["points"], "ranks": asdict(answer)["places"], "notes": list(answer.notes)}
