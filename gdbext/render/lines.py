"""Lines put together: sections with a gap between them, and what of a long list was left out."""

from __future__ import annotations

from typing import Iterable, List

from gdbext.render.style import Style


def joined(sections: Iterable[List[str]]) -> List[str]:
    """Sections with one empty line between them; those without lines are left out."""
    lines: List[str] = []
    for section in filter(None, sections):
        lines += [""] * bool(lines) + section
    return lines


def left_out(number: int, style: Style, what: str = "more, all in --json", indent: str = "") -> List[str]:
    """`… 12 more, all in --json`; nothing for none."""
    return [f"{indent}{style.ellipsis} {number:,} {what}"] if number > 0 else []
