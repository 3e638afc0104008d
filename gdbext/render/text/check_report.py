"""A failed check as a person reads it at 3 a.m.: what, where, why, what next. And what is being watched."""

from __future__ import annotations

from typing import Callable, List, Mapping, Tuple

from gdbext.model.check_report import CheckKinds, CheckReport, CheckStatus, SwitchResults, WatchedRank
from gdbext.model.stack import Frame
from gdbext.render.safe_text import clean, clean_line, function_name, place_of, shorten_name, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.error import sticky_words
from gdbext.render.text.tensors.tensor import summary

_MOST_FRAMES = 16
_MOST_TENSORS = 12
_MESSAGE = 300


def report_lines(report: CheckReport, style: Style) -> List[str]:
    failure = report.failure
    lines = [style.paint(_headline(report, style), "bad")]
    for label, text in _facts(report, style):
        lines += wrapped(text, style, indent=" " * 12, first=f"  {label:<10}")
    for text in failure.details:
        lines += wrapped(clean(text, style), style, indent="  ", first="  ")
    lines += _source(report, style)
    lines += _frames(report, style)
    lines += _tensors(report, style)
    for name, handle in report.streams:
        lines.append(f"  stream    {clean(handle, style)}  {clean(name, style)}")
    if report.timing:
        lines += ["", *wrapped(report.timing, style)]
    if report.steps:
        lines += ["", style.paint("What to do", "strong")]
        for number, step in enumerate(report.steps, 1):
            lines += wrapped(clean(step, style), style, indent="     ", first=f"  {number}. ")
    for text in (*report.notes, *report.problems):
        lines += wrapped(clean(text, style), style, indent="  ", first="· " if style.unicode else "- ")
    return lines


def _who(report: CheckReport) -> str:
    return f"Rank {report.rank} (pid {report.pid})" if report.rank is not None else f"Process {report.pid}"


def _headline(report: CheckReport, style: Style) -> str:
    failure = report.failure
    if failure.kind == "breakpoint":
        return f"{_who(report)} is at {clean(failure.what, style)}"
    error = f": {failure.error.name} ({failure.error.number})" if failure.error else ""
    if failure.kind == "signal":
        return f"{_who(report)} got {failure.what}{clean(error, style)}"
    place = place_of(failure.file, failure.line, None, style)
    return f"{_who(report)}: a check failed{f' at {place}' if place else ''}{clean(error, style)}"


def _facts(report: CheckReport, style: Style) -> List[Tuple[str, str]]:
    failure = report.failure
    found = [("engine", report.engine or "")]
    thread = f"{report.thread} {report.thread_name}".strip()
    found.append(("thread", thread + (f" (LWP {report.lwp})" if report.lwp else "")))
    if failure.kind == "check":
        found.append(("check", " ".join(word for word in (failure.what, failure.raised) if word)))
    else:
        found.append(("after", failure.raised))
    if failure.error:
        found += [("error", failure.error.meaning), ("", sticky_words(failure.error))]
    if failure.expression:
        found.append(("call", failure.expression))
    if failure.file:
        found.append(("place", f"{failure.file}:{failure.line}" if failure.line else failure.file))
    first = report.frames[report.engine_frame] if report.engine_frame is not None else None
    if first is not None:
        found.append(("in", _frame_words(first, style)))
    message = clean(failure.message or failure.text, style)
    if message:
        found.append(("message", message[:_MESSAGE]))
    return [(label, clean(text, style)) for label, text in found if text]


def _frame_words(frame: Frame, style: Style) -> str:
    place = place_of(frame.file, frame.line, frame.module, style)
    return f"{function_name(frame.function, style)}  {place}".rstrip()


def _source(report: CheckReport, style: Style) -> List[str]:
    if not report.source:
        return []
    text = style.highlight("\n".join(clean_line(line.text.expandtabs(4), style) for line in report.source))
    width = len(str(report.source[-1].number))
    lines = [""]
    for line, shown in zip(report.source, text.split("\n")):
        mark = style.mark if line.number == report.failure.line else " "
        lines.append(f"  {mark} {line.number:>{width}}  {shown}".rstrip())
    return lines


def _frames(report: CheckReport, style: Style) -> List[str]:
    if not report.frames:
        return []
    start = report.engine_frame if report.engine_frame is not None else 0
    begin = max(0, min(start, report.check_frame if report.check_frame is not None else start))
    lines = ["", style.paint("Stack", "strong")]
    for number in range(begin, min(len(report.frames), begin + _MOST_FRAMES)):
        frame = report.frames[number]
        name = shorten_name(function_name(frame.function, style), max(20, style.width - 40), style)
        text = f"{name}  {place_of(frame.file, frame.line, frame.module, style)}".rstrip()
        accent = "strong" if number == report.engine_frame else "python" if frame.language == "python" else ""
        mark = style.mark if number == report.engine_frame else " "
        lines.append(f"  {mark} {style.paint(text, accent)}")
    rest = len(report.frames) - begin - _MOST_FRAMES
    return [*lines, f"    {style.ellipsis} {rest} more"] if rest > 0 else lines


def _tensors(report: CheckReport, style: Style) -> List[str]:
    if report.tensors is None or not report.tensors.tensors:
        return []
    lines = ["", style.paint(f"Tensors of {clean(report.tensors.place, style)}", "strong")]
    for info in report.tensors.tensors[:_MOST_TENSORS]:
        lines.append(f"    {clean(info.name, style)}: {summary(info, style)}")
    rest = len(report.tensors.tensors) - _MOST_TENSORS
    return [*lines, f"    {style.ellipsis} {rest} more: llm-tensor list"] if rest > 0 else lines


def status_lines(status: CheckStatus, style: Style) -> List[str]:
    if not status.on:
        return [clean(note, style) for note in status.notes]
    then = f"appended to {status.log}" if status.log else "printed"
    goes_on = "" if status.action == "stop" else ", and it keeps running"
    verb = "stops" if status.action == "stop" else "is reported"
    lines = wrapped(f"A rank whose check fails {verb}; the report is {clean(then, style)}{goes_on}.", style)
    columns = (
        Column("rank", right=True),
        Column("pid", right=True),
        Column("engine"),
        Column("throws", right=True),
        Column("functions", right=True),
        Column("passed", right=True),
        Column("failures", right=True),
        Column("watched in", least=16),
    )
    lines += ["", *table(columns, [Row(_cells(rank, style)) for rank in status.ranks], style)] if status.ranks else []
    for rank in status.ranks:
        for problem in rank.problems:
            lines += wrapped(f"{rank.pid}: {clean(problem, style)}", style, indent="  ", first="  ")
    for note in status.notes:
        lines += wrapped(clean(note, style), style)
    return lines


def _cells(rank: WatchedRank, style: Style) -> List[str]:
    files = ", ".join(clean(path, style).rpartition("/")[2] for path in rank.files)
    number = "" if rank.rank is None else str(rank.rank)
    counts = (rank.sites, len(rank.functions), rank.passed, rank.failures)
    return [number, str(rank.pid), rank.engine or "", *(f"{count:,}" for count in counts), files]


def kinds_lines(kinds: CheckKinds, style: Style) -> List[str]:
    columns = (Column("engine"), Column("check", least=20), Column("seen at", least=20))
    return table(columns, [Row((one.engine, one.check, one.seen)) for one in kinds.kinds], style)


def switch_lines(answer: SwitchResults, style: Style) -> List[str]:
    lines: List[str] = []
    for one in answer.results:
        who = f"rank {one.rank} (pid {one.pid})" if one.rank is not None else f"process {one.pid}"
        text = f"{who}: {clean(one.function, style)}{': ' if one.function else ''}{clean(one.text, style)}"
        first, *rest = wrapped(text, style, indent="  ", first="")
        lines += [style.paint(first, "good" if one.done else "doubt"), *rest]
    return lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    CheckReport: report_lines,
    CheckStatus: status_lines,
    CheckKinds: kinds_lines,
    SwitchResults: switch_lines,
}
