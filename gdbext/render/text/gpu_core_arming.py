"""GPU cores that are to come, as text: variables to start with, ranks that are ready, what came."""

from __future__ import annotations

import shlex
from typing import Callable, List, Mapping, Optional

from gdbext.model.gpu_core_arming import ArmedEnvironment, ArmedJob, TriggeredJob
from gdbext.render.lines import left_out
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.tensors.tensor import size_text

_ARMED = (
    Column("rank", keep=9),
    Column("pid", right=True, keep=9),
    Column("on exception", keep=8),
    Column("on demand", keep=8),
    Column("pipe", keep=7),
    Column("free", right=True, keep=4),
    Column("file", least=20, keep=5),
)
_STATE_WORDS = (
    Column("rank", keep=9),
    Column("pid", right=True, keep=9),
    Column("state", keep=8),
    Column("size", right=True, keep=6),
    Column("s", right=True, keep=5),
    Column("file", least=20, keep=7),
)


def environment_lines(found: ArmedEnvironment, style: Style) -> List[str]:
    """As a shell takes them, and what to mind."""
    lines = [f"export {name}={shlex.quote(clean(value, style))}" for name, value in found.variables.items()]
    driver = f"driver r{found.driver}" if found.driver is not None else "driver unknown"
    free = f", {size_text(found.free)} free" if found.free is not None else ""
    lines.append(f"# {driver}; cores go to {clean(found.folder, style)}{free}")
    return lines + [f"# {clean(note, style)}" for note in found.notes]


def armed_lines(job: ArmedJob, style: Style) -> List[str]:
    rows = [
        Row(
            (
                clean(one.label, style),
                str(one.pid),
                _yes(one.on_exception),
                _yes(one.on_demand),
                {None: "unknown", True: "open", False: "not there"}[one.pipe_open],
                size_text(one.free) if one.free is not None else "",
                clean(one.file, style),
            ),
            "" if one.on_exception and one.on_demand and one.pipe_open else "doubt",
        )
        for one in job.ranks
    ]
    lines = table(_ARMED, rows, style)
    problems = [f"{one.label}: {text}" for one in job.ranks for text in one.problems]
    for text in problems[:16]:
        lines += wrapped(clean(text, style), style, indent="    ", first="  ", most=3)
    lines += left_out(len(problems) - 16, style, indent="  ")
    if job.ready:
        lines.append("Every rank writes a GPU core when a kernel fails, and when it is asked: gdbext gpucore trigger")
    else:
        lines += wrapped(
            "Not every rank is armed. The variables are read when CUDA starts: restart with `gdbext gpucore arm -- "
            "COMMAND`",
            style,
            indent="  ",
            first="",
        )
    return lines


def came_lines(job: TriggeredJob, style: Style) -> List[str]:
    rows = [
        Row(
            (
                clean(one.label, style),
                str(one.pid),
                one.state if one.alive is not False else f"{one.state}, process ended",
                size_text(one.size) if one.size is not None else "",
                f"{one.seconds:.1f}" if one.seconds is not None else "",
                clean(one.file, style),
            ),
            "" if one.state == "written" else "doubt",
        )
        for one in job.ranks
    ]
    lines = table(_STATE_WORDS, rows, style)
    for one in job.ranks:
        if one.problem:
            lines += wrapped(clean(f"{one.label}: {one.problem}", style), style, indent="    ", first="  ", most=3)
    if job.files:
        lines.append(f"next: gdbext diagnose {' '.join(shlex.quote(clean(file, style)) for file in job.files[:64])}")
    return lines


def _yes(value: Optional[bool]) -> str:
    return "unknown" if value is None else "yes" if value else "no"


RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    ArmedEnvironment: environment_lines,
    ArmedJob: armed_lines,
    TriggeredJob: came_lines,
}
