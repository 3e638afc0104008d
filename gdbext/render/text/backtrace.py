"""The stack of a thread with gdb's numbers of its frames."""

from __future__ import annotations

from typing import Callable, List, Mapping, Sequence

from gdbext.model.backtrace import Backtrace
from gdbext.model.text.ranges import counted
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.text.verdict.stacks import call_text, thread_title

_LEAD = 6


def backtrace_lines(one: Backtrace, style: Style) -> List[str]:
    """Innermost frame first. Calls in a row without a name and number stay apart: each can be selected."""
    who = f"pid {one.pid}" if one.rank is None else f"Rank {one.rank} (pid {one.pid})"
    lines = [f"{who}, {thread_title(one.thread, style)}"]
    for number, frame in zip(one.numbers, one.thread.frames):
        lead = ("  py" if number is None else f"#{number}").ljust(_LEAD)
        lines.append(style.paint(lead, "dim") + call_text((frame, 1), style.width - _LEAD, style))
    if one.left_out:
        lines.append(f"{style.ellipsis} {counted(one.left_out, 'more frame')}")
    if not one.thread.frames:
        lines.append("(no frame was read)")
    for problem in dict.fromkeys((one.thread.truncated, *one.thread.problems, *one.problems)):
        if problem:
            lines += wrapped(clean(problem, style), style, indent=" " * _LEAD, most=2)
    return lines


def backtraces_lines(found: Sequence[Backtrace], style: Style) -> List[str]:
    lines: List[str] = []
    for one in found:
        lines += ([""] if lines else []) + backtrace_lines(one, style)
    return lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Backtrace: backtrace_lines}
LIST_RENDERERS: Mapping[type, Callable[..., List[str]]] = {Backtrace: backtraces_lines}
