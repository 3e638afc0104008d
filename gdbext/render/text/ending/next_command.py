"""The last line of an answer: what to type to know more."""

from __future__ import annotations

from gdbext.render.safe_text import clean
from gdbext.render.style import Style
from gdbext.render.text.ending.short_answer import Line


def next_line(style: Style, details: str, known: bool = False) -> Line:
    """`gdbext diagnose -v 4711 (shows the evidence); gdbext stacks 4711`. What `-v` shows is said in the same words at
    any width, or not at all; the rest stands there only behind it. `known`: `-v` was given already."""
    typed = style.typed
    about = f" {clean(typed.about, style)}" if typed.about else ""
    more = "" if known or not typed.command else f"{typed.command} -v{about}"
    stacks = f"{typed.stacks}{about}" if typed.stacks else ""
    behind = f" ({details})" if details and more else ""
    page = f"{typed.page} for a page" if typed.page and (more or stacks) else ""
    texts = (
        "; ".join(filter(None, [more + behind, stacks, page])),
        "; ".join(filter(None, [more + behind, page])),
        more + behind or stacks,
        more or stacks,
        "the same with -v" if more else "",
    )
    return Line("next", texts if more or stacks else (), accent="strong")
