"""Whose a report is: the rank that a prefix or the name of the file tells, the process whose stack is there too."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.knowledge.log_lines.file_names import SANITIZER_FILE
from gdbext.model.gpu_errors import SANITIZER
from gdbext.model.job import RankSnapshot
from gdbext.model.text.patterns import regex
from gdbext.parsers.cleaning import UNNAMED, Stream
from gdbext.parsers.compute_sanitizer.report_stream import ReportStream, WriterReport, has_reports
from gdbext.parsers.compute_sanitizer.report_tally import merge_equal_errors
from gdbext.parsers.text_lines import lines

_NAME = regex(SANITIZER_FILE)
_FEW = 8


class FileReport(NamedTuple):
    """A writer's reports, and the file they stand in."""

    file: str
    report: WriterReport


def take_reports(name: str, text: str, owner: Stream, streamed: Optional[ReportStream]) -> Tuple[List[FileReport], str]:
    """The reports in a text, and the text without them. `streamed` has read all of it, of which the text is a part."""
    if not has_reports(text) and streamed is None:
        return [], text
    reader = ReportStream(owner)
    rest = [line for line in lines(text) if not reader.feed(line)]
    found = (streamed or reader).finished()
    if streamed is not None:
        found = [one._replace(writer=owner) if one.writer == UNNAMED else one for one in found]
    return [FileReport(name, one) for one in found], "\n".join(rest) if found else text


def ranks_of_names(names: Sequence[str]) -> Dict[str, Stream]:
    """Ranks of files called `san.3.log`. The number may be a pid as well (`%p`): it is a rank where the numbers are
    those of a few ranks."""
    found = {name: int(match.group(1)) for name, match in ((name, _NAME.search(name)) for name in names) if match}
    most = max(found.values(), default=0)
    if most >= 2 * len(found) + _FEW or len(set(found.values())) < len(found):
        return {}
    return {name: Stream(rank=number) for name, number in found.items()}


def given_to(processes: Sequence[RankSnapshot], reports: Sequence[FileReport]) -> List[RankSnapshot]:
    """The processes with the errors of theirs, and those that only a report tells of."""
    found = list(processes)
    several = len({one.file for one in reports}) > 1
    for file, report in reports:
        at = _owner(found, report.writer, file if several else "")
        if at is None:
            name = report.writer.source or file
            found.append(
                RankSnapshot(
                    index=len(found),
                    threads=(),
                    pid=report.writer.pid,
                    rank=report.writer.rank,
                    title=None if report.writer.rank is not None else name,
                    source=SANITIZER,
                )
            )
            at = len(found) - 1
        found[at] = _with(found[at], report)
    return found


def _owner(processes: Sequence[RankSnapshot], writer: Stream, file: str) -> Optional[int]:
    """The process that is meant; the only one takes what names nobody."""
    for at, one in enumerate(processes):
        if writer.rank is not None and one.rank == writer.rank:
            return at
        if writer.rank is None and writer.pid is not None and one.pid == writer.pid:
            return at
    named = writer.rank is not None or writer.pid is not None
    title = writer.source or file
    if title:
        return next((at for at, one in enumerate(processes) if one.title == title), None) if not named else None
    return 0 if len(processes) == 1 and not named else None


def _with(process: RankSnapshot, report: WriterReport) -> RankSnapshot:
    return replace(
        process,
        gpu_errors=merge_equal_errors((*process.gpu_errors, *report.errors)),
        said=(*process.said, report.said),
        problems=(*process.problems, *report.problems),
    )
