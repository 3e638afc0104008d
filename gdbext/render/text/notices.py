"""Single lines: what went wrong and what to do next."""

from __future__ import annotations

from typing import List

from gdbext.model.errors import GdbextError
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style


def error_lines(error: GdbextError, style: Style) -> List[str]:
    """What went wrong, then the next step."""
    message = clean(error.args[0] if error.args else "", style) or type(error).__name__
    lead = "gdbext: "
    first, *rest = wrapped(message, style, indent="  ", first=lead)
    return [style.paint(lead, "bad") + first[len(lead) :], *rest, *hint_lines(error.hint, style)]


def hint_lines(hint: str, style: Style) -> List[str]:
    """The next step, for a person; nothing when there is none."""
    return wrapped(clean(hint, style), style, indent="        ", first="  next: ") if hint else []
