"""What a build will show, file by file, and how to build it so that it shows more."""

from __future__ import annotations

from typing import Callable, List, Mapping

from gdbext.model.build_report import BuildReport, BuildWay
from gdbext.model.text.ranges import counted
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.text.checkup import point_lines

_ALL = "Nothing is missing that this can tell."


def build_lines(report: BuildReport, style: Style) -> List[str]:
    """The files, the process, then what to do."""
    if not report.target:
        return [line for way in report.ways for line in _way(way, style)]
    lines: List[str] = []
    for file in report.files:
        known = f" (build-id {file.build_id})" if file.build_id else ""
        lines += [style.paint(line, "strong") for line in wrapped(clean(f"{file.path}{known}", style), style)]
        lines += point_lines(file.points, style)
    if report.others:
        what = f"{counted(report.others, 'other file')} of the system, of CUDA and of Python packages"
        lines += wrapped(f"{what}: `--build FILE` reads one", style)
    if report.points:
        lines += [style.paint(line, "strong") for line in wrapped(clean(report.target, style), style)]
        lines += point_lines(report.points, style)
    if not report.lacking:
        lines += wrapped(_ALL, style)
    elif report.ways:
        lines += wrapped(f"`gdbext doctor --how {report.engine}` prints how it is built with all of this.", style)
    return lines


def _way(way: BuildWay, style: Style) -> List[str]:
    """Commands are not wrapped: they are copied."""
    lines = wrapped(clean(f"{way.engine}: {way.gives}", style), style)
    lines += [f"  {clean(command, style)}" for command in way.commands]
    for note in way.notes:
        lines += wrapped(clean(note, style), style, indent="  ", first="- ")
    return lines + wrapped(clean(f"source: {way.source}", style), style)


RENDERERS: Mapping[type, Callable[..., List[str]]] = {BuildReport: build_lines}
