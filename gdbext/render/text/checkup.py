"""A check-up as a list: what is well, what is not, and the way out."""

from __future__ import annotations

from typing import Callable, List, Mapping, Sequence

from gdbext.model.checkup import Checkup, Point
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

_ACCENTS = {"ok": "dim", "warning": "doubt", "hindrance": "bad"}
_STATE, _NAME = 11, 12
_GOOD = "Ready: no problems found."
_UNTRIED = "No problems found, but no rank is running here, so the permission to read ranks could not be checked."


def checkup_lines(checkup: Checkup, style: Style) -> List[str]:
    """The points, and what they come to."""
    lines = point_lines(checkup.points, style)
    if not checkup.hindered:
        lines += wrapped(_GOOD if checkup.tried else _UNTRIED, style)
    return lines


def point_lines(points: Sequence[Point], style: Style) -> List[str]:
    """State, name, and what was found; the remedy below it."""
    lines: List[str] = []
    for point in points:
        lead = clean(point.state, style).ljust(_STATE)
        indent = " " * (_STATE + _NAME)
        text = wrapped(
            clean(point.text, style), style, indent=indent, first=lead + clean(point.name, style).ljust(_NAME)
        )
        lines += [style.paint(lead, _ACCENTS.get(point.state, "")) + text[0][_STATE:], *text[1:]]
        if point.remedy:
            lines += wrapped(clean(point.remedy, style), style, indent=indent + "  ", first=indent + "> ")
    return lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Checkup: checkup_lines}
