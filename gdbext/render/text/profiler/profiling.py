"""What became of a profile: the server, the traces of all ranks, and what is missing."""

from __future__ import annotations

from typing import Callable, List, Mapping

from gdbext.model.profiling import (
    ProfileAnswer,
    ProfileReport,
    ProfileServer,
    ProfileStatus,
    ProfileStatuses,
    WrittenTrace,
)
from gdbext.model.text.ranges import counted
from gdbext.render.lines import joined, left_out
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.tensors.tensor import size_text
from gdbext.render.text.trace import diagnosis_lines

MOST_FILES = 64
_COLUMNS = (
    Column("trace of", keep=9),
    Column("stage", keep=6),
    Column("size", right=True, keep=7),
    Column("state", least=8, keep=8),
    Column("file", least=20, keep=5),
)
_DID = {"start": "Profile started", "stop": "Profile stopped", "run": "Profile done"}


def statuses_lines(answer: ProfileStatuses, style: Style) -> List[str]:
    """One block a job."""
    if not answer.jobs:
        return ["No job was found on this host."]
    return joined(_status_lines(one, style) for one in answer.jobs)


def _status_lines(one: ProfileStatus, style: Style) -> List[str]:
    lines = wrapped(clean(one.job, style), style)
    server = one.server
    if server is not None:
        lines += wrapped(
            f"server: {_place(server, style)}; {clean(server.recognised, style)}", style, indent="    ", first="  "
        )
        if server.folder:
            lines += wrapped(f"traces: {clean(server.folder, style)}", style, indent="    ", first="  ")
    word = {True: "ready to profile", False: "cannot be profiled now", None: "not known whether it can be profiled"}
    said = f"{word[one.ready if server is not None else False]}{': ' if one.problem else ''}{one.problem}"
    accent = {True: "good", False: "bad", None: "doubt"}[one.ready if server is not None else False]
    lines += [style.paint(line, accent) for line in wrapped(clean(said, style), style, indent="    ", first="  ")]
    for step in one.next_step:
        lines += wrapped(clean(step, style), style, indent="      ", first="    > ")
    return lines


def ending(answer: ProfileAnswer, style: Style) -> List[str]:
    """What was done, a line for each trace, what is missing."""
    head = f"{_DID.get(answer.action, answer.action)}: {_place(answer.server, style)}"
    if answer.ranks:
        head += f", {counted(answer.ranks, 'rank')}"
    lines = [style.paint(line, "strong") for line in wrapped(head, style)]
    if answer.sent and answer.action == "start":
        sent = ", ".join(f"{key}={_value(value)}" for key, value in answer.sent.items())
        lines += wrapped(f"sent: {clean(sent, style)}", style, indent="  ")
    if answer.folder:
        lines += wrapped(f"traces: {clean(answer.folder, style)}", style, indent="  ")
    if answer.requests is not None:
        failed = f", {answer.failed_requests:,} of them failed" if answer.failed_requests else ""
        lines.append(f"{counted(answer.requests, 'request')} answered{failed}")
    rows = [_row(one, style) for one in answer.files[:MOST_FILES]]
    lines += table(_COLUMNS, rows, style)
    lines += left_out(len(answer.files) - MOST_FILES, style)
    for note in answer.notes:
        lines += wrapped(clean(note, style), style, indent="  ")
    if answer.next_step:
        lines += wrapped(clean(answer.next_step, style), style, indent="    ", first="  > ")
    return lines


def report_lines(report: ProfileReport, style: Style) -> List[str]:
    """What was done, then what the traces say."""
    lines = ending(report.answer, style)
    for part in report.parts:
        lines.append("")
        if part.stage:
            lines.append(style.paint(f"Stage {clean(part.stage, style)}", "strong"))
        if part.diagnosis is not None:
            lines += diagnosis_lines(part.diagnosis, style)
        if part.merged is not None:
            events = counted(part.merged.events_out, "event")
            lines += wrapped(
                f"All ranks in one trace: {clean(part.merged.output, style)} ({events})", style, indent="  "
            )
        if part.problem:
            lines += [style.paint(line, "doubt") for line in wrapped(clean(part.problem, style), style, indent="  ")]
    return lines


def _place(server: ProfileServer, style: Style) -> str:
    pid = f" (pid {server.pid})" if server.pid is not None else ""
    return f"{clean(server.engine, style)} at {clean(server.url, style)}{pid}"


def _row(one: WrittenTrace, style: Style) -> Row:
    owner = clean(one.key, style) if one.is_rank else "front end"
    cells = (owner, clean(one.stage, style), size_text(one.bytes), clean(one.state, style), clean(one.path, style))
    return Row(cells, "" if one.state == "whole" else "doubt")


def _value(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    ProfileStatuses: statuses_lines,
    ProfileAnswer: ending,
    ProfileReport: report_lines,
}
