"""A check-up as a list: what is well, what is not, and the way out."""

from __future__ import annotations

from typing import Callable, List, Mapping

from gdbext.model.checkup import Checkup
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

_ACCENTS = {"ok": "dim", "warning": "doubt", "hindrance": "bad"}
_STATE, _NAME = 11, 12
_GOOD = "Nothing stands in the way of a look."
_UNTRIED = "No hindrance was found, but no rank either: whether ranks may be looked at is not known."


def checkup_lines(checkup: Checkup, style: Style) -> List[str]:
    """State, name, and what was found; the remedy below it."""
    lines: List[str] = []
    for point in checkup.points:
        lead = clean(point.state, style).ljust(_STATE)
        indent = " " * (_STATE + _NAME)
        text = wrapped(
            clean(point.text, style), style, indent=indent, first=lead + clean(point.name, style).ljust(_NAME)
        )
        lines += [style.paint(lead, _ACCENTS.get(point.state, "")) + text[0][_STATE:], *text[1:]]
        if point.remedy:
            lines += wrapped(clean(point.remedy, style), style, indent=indent + "  ", first=indent + "> ")
    if not checkup.hindered:
        lines += wrapped(_GOOD if checkup.tried else _UNTRIED, style)
    return lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Checkup: checkup_lines}
