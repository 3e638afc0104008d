"""A label explained, and the list of all labels."""

from __future__ import annotations

from typing import Callable, List, Mapping

from gdbext.model.explanation import Explanation, Glossary
from gdbext.model.text.ranges import counted
from gdbext.model.waits import shown_kind
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style

_MOST_SIGNS = {"wait": 10}
_CALLS = "the stack of a thread has one of these calls, or the log one of these lines (* stands for any characters):"
_TYPICAL = "the stack of a thread has a call like one of these:"
_LINES = 6
_RELATED = {
    "cause": "Typical waits of this cause",
    "wait": "Usual causes of this wait (gdbext explain CAUSE has their advice)",
    "state": "Usual causes when a chain ends like this",
}


def explanation_lines(one: Explanation, style: Style) -> List[str]:
    """Meaning, how it is recognised, why it happens, what to do, from which sources."""
    lines = [style.paint(f"{shown_kind(one.label)} ({one.sort})", "strong"), *_text(one.meaning, "  ", style)]
    lines += ["", style.paint("How it is recognised", "strong"), *(_calls if one.calls else _signs)(one, style)]
    reasons = list(dict.fromkeys(sign.reason for sign in one.signs if sign.reason))
    if reasons:
        lines += ["", style.paint("Why it happens", "strong")]
        for reason in reasons:
            lines += _item("- ", reason, style)
    lines += _to_do(one, style)
    if one.related:
        lines += ["", style.paint(_RELATED.get(one.sort, ""), "strong"), *_text(", ".join(one.related), "  ", style)]
    if one.sort == "wait":  # the sources of its patterns are notes for who writes rows: --json has them
        return lines
    lines += ["", style.paint("Sources", "strong")]
    return lines + _text("; ".join(one.sources), "  ", style)


def _calls(one: Explanation, style: Style) -> List[str]:
    """The calls that people know; all patterns are for a machine."""
    lines = [*_text(_TYPICAL, "  ", style), *_text(", ".join(one.calls), "    ", style)]
    return lines + _text(
        f"complete list ({counted(len(one.signs), 'group')} of calls): gdbext explain {shown_kind(one.label)} --json",
        "  ",
        style,
    )


def _signs(one: Explanation, style: Style) -> List[str]:
    lines = _text(_CALLS, "  ", style) if one.sort == "wait" else []
    most = _MOST_SIGNS.get(one.sort, len(one.signs))
    for sign in one.signs[:most]:
        lines += _item("- ", sign.text, style)
    if one.signs[most:]:
        lines += _item("- ", f"{counted(len(one.signs) - most, 'more pattern')}: --json has all", style)
    return lines


def _to_do(one: Explanation, style: Style) -> List[str]:
    lines = ["", style.paint("What to do", "strong")] if one.remedies else []
    for number, remedy in enumerate(one.remedies, 1):
        lines += _item(f"{number}. ", remedy.action, style)
        lines += _text(f"Why: {remedy.reason}", " " * len(f"  {number}. "), style)
    return lines


def glossary_lines(glossary: Glossary, style: Style) -> List[str]:
    """Every label with its line of meaning."""
    lines: List[str] = []
    for title, group in (
        ("Causes", glossary.causes),
        ("Waits", glossary.waits),
        ("States at the end of a wait chain", glossary.states),
    ):
        lines += [""] * bool(lines) + [style.paint(title, "strong")]
        width = max((len(shown_kind(one.label)) for one in group), default=0)
        for one in group:
            lead = f"  {shown_kind(one.label):<{width}}  "
            lines += wrapped(clean(one.meaning, style), style, indent=" " * len(lead), first=lead, most=3)
    return [*lines, "", "gdbext explain LABEL explains how each is recognised, why it happens and what to do."]


def _item(lead: str, text: str, style: Style) -> List[str]:
    first = f"  {lead}"
    return wrapped(clean(text, style), style, indent=" " * len(first), first=first, most=_LINES)


def _text(text: str, indent: str, style: Style) -> List[str]:
    return wrapped(clean(text, style), style, indent=indent, most=_LINES)


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Explanation: explanation_lines, Glossary: glossary_lines}
