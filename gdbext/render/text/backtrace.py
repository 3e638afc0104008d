"""The stack of a thread with the numbers of its frames, and one Python frame with the lines around."""

from __future__ import annotations

from typing import Callable, List, Mapping, Sequence

from gdbext.model.backtrace import Backtrace, PythonPlace
from gdbext.model.text.ranges import counted
from gdbext.render.lines import joined
from gdbext.render.safe_text import clean, clean_line, shorten, wrapped
from gdbext.render.style import Style
from gdbext.render.text.verdict.stacks import call_text, thread_title

_LEAD = 6


def backtrace_lines(one: Backtrace, style: Style) -> List[str]:
    """Innermost frame first. Calls in a row without a name and number stay apart: each can be selected."""
    who = f"pid {one.pid}" if one.rank is None else f"Rank {one.rank} (pid {one.pid})"
    lines = [f"{who}, {thread_title(one.thread, style)}"]
    for number, python, frame in zip(one.numbers, one.python_numbers, one.thread.frames):
        lead = (f"  py{python}" if number is None else f"#{number}").ljust(_LEAD)
        lines.append(style.paint(lead, "dim") + call_text((frame, 1), style.width - _LEAD, style))
        if python is not None and python < len(one.variables):
            for variable in one.variables[python]:
                text = clean(f"{variable.name} = {variable.value}", style)
                lines += wrapped(text, style, indent=" " * (_LEAD + 4), first=" " * (_LEAD + 2), most=2)
    if one.left_out:
        lines.append(f"{style.ellipsis} {counted(one.left_out, 'more frame')}")
    if not one.thread.frames:
        lines.append("(no frame was read)")
    for problem in dict.fromkeys((one.thread.truncated, *one.thread.problems, *one.problems)):
        if problem:
            lines += wrapped(clean(problem, style), style, indent=" " * _LEAD, most=2)
    return lines


def backtraces_lines(found: Sequence[Backtrace], style: Style) -> List[str]:
    return joined(backtrace_lines(one, style) for one in found)


def place_lines(place: PythonPlace, style: Style) -> List[str]:
    """The frame, and its line among those around it."""
    where = f"{place.file or '?'}:{place.line}" if place.line else place.file or "?"
    head = f"py{place.number} of {counted(place.frames, 'Python frame')} of thread {place.thread}: "
    lines = wrapped(clean(f"{head}{place.function or '?'} at {where}", style), style, indent="  ", first="")
    room = max((len(str(line.number)) for line in place.source), default=0)
    for line in place.source:
        mark = ">" if line.number == place.line else " "
        text = shorten(clean_line(f"{mark} {line.number:>{room}}  {line.text}", style), style.width, style)
        lines.append(style.paint(text, "strong") if line.number == place.line else text)
    if place.source_problem:
        lines += wrapped(clean(place.source_problem, style), style, indent="    ", first="  ! ")
    return lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Backtrace: backtrace_lines, PythonPlace: place_lines}
LIST_RENDERERS: Mapping[type, Callable[..., List[str]]] = {Backtrace: backtraces_lines}
