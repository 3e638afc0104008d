"""The sources that were read besides the stacks: one dim line."""

from __future__ import annotations

from typing import List, Sequence

from gdbext.model.witness import Witness
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

_MOST_LINES = 2


def witness_lines(witnesses: Sequence[Witness], style: Style) -> List[str]:
    """`Other sources, read before the stop: RAS absent (port 28028 closed), /dev/shm present`."""
    if not witnesses:
        return []
    said = ", ".join(_one(witness, style) for witness in witnesses)
    lines = wrapped(f"Other sources, read before the stop: {said}.", style, most=_MOST_LINES)
    return [style.paint(line, "dim") for line in lines]


def _one(witness: Witness, style: Style) -> str:
    name, reason = clean(witness.name, style), clean(witness.reason, style)
    return f"{name} {clean(witness.state, style)}" + (f" ({reason})" if reason else "")
