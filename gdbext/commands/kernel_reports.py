"""Reports of a sanitizer, read from files of any length in bounded memory: what `llm-check report FILE` adds."""

from __future__ import annotations

import glob
import os
from typing import List, Sequence

from gdbext.analysis.failures.gpu_findings import findings
from gdbext.model.errors import NothingFound, refused_as
from gdbext.model.job import JobSnapshot
from gdbext.parsers.cleaning import UNNAMED
from gdbext.parsers.compute_sanitizer.report_owners import FileReport, given_to, ranks_of_names
from gdbext.parsers.compute_sanitizer.report_stream import ReportStream, WriterReport
from gdbext.safe_open import files

_PIECE = 1 << 20
_MOST_FILES = 4096
MOST_SENTENCES = 8


def reports_of(path: str) -> List[WriterReport]:
    """Of every writer in a file. Raises `GdbextError` where it cannot be read."""
    stream = ReportStream()
    with refused_as(f"cannot read {path}"), files.stream(path) as file:
        for piece in iter(lambda: file.read(_PIECE), b""):
            stream.feed_bytes(piece)
    return stream.finished()


def job_of(paths: Sequence[str]) -> JobSnapshot:
    """The processes that reports tell of. Raises `NothingFound` where there is none."""
    names: List[str] = []
    for path in map(os.path.expanduser, paths):  # gdb leaves `*` as it is
        names += map(os.path.abspath, [path] if os.path.lexists(path) else sorted(glob.glob(path)) or [path])
    names = names[:_MOST_FILES]
    ranks = ranks_of_names(names)
    found: List[FileReport] = []
    for name in names:
        for one in reports_of(name):
            named = one._replace(writer=ranks.get(name, UNNAMED)) if one.writer == UNNAMED else one
            found.append(FileReport(name, named))
    if not found:
        raise NothingFound(f"no report of a sanitizer in {', '.join(names[:4])}", "give what --log-file wrote")
    return JobSnapshot(processes=tuple(given_to([], found)))


def report_sentences(paths: Sequence[str]) -> List[str]:
    """The gravest errors, a sentence each, and what of the reports is not there."""
    job = job_of(paths)
    errors = findings(job)
    said = [f"the sanitizer reports: {one.text}" for one in errors[:MOST_SENTENCES]]
    if len(errors) > MOST_SENTENCES:
        said.append(
            f"the sanitizer reports {len(errors) - MOST_SENTENCES:,} more kinds of errors: gdbext diagnose shows all"
        )
    return said + [problem for process in job.processes for problem in process.problems][:MOST_SENTENCES] or [
        line for process in job.processes for line in process.said
    ]
