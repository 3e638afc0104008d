"""`gdbext trace`: merge the profiles of ranks, say who is late, count kernels, compare two runs."""

from __future__ import annotations

import argparse
import re
from typing import Callable, Dict, List, Optional, Sequence

from gdbext.cli.answer_output import print_document, show
from gdbext.cli.terminal import Progress
from gdbext.collect.cleanup_on_signals import tidy_end
from gdbext.commands.user_files import check_writable, new_file, write_private
from gdbext.model.errors import OK, UsageError
from gdbext.model.exit_status import ALL, NONE, PART, exit_status
from gdbext.model.text.nearest import unknown_word_error
from gdbext.model.trace import read_of
from gdbext.render import dumps
from gdbext.render.text.trace_picture import picture
from gdbext.render.trace_csv import csv_of
from gdbext.traces.diagnosis import diagnose
from gdbext.traces.merged_trace import Asked, merge
from gdbext.traces.perfetto import write_perfetto
from gdbext.traces.summary import BY, compare, summarise
from gdbext.traces.trace_files import find_trace_files
from gdbext.traces.traces_of_job import read_job

_MERGED = "merged.trace.json.gz"
_MOST_RANKS = 1 << 16
_ALL_ROWS = 1_000_000
_ROWS = 40
_OWN = {
    "merge": ("merged", "perfetto", "window", "ranks", "threads", "kernels", "require_aligned", "steps"),
    "diagnose": ("picture", "csv"),
    "summary": ("steps", "by", "most", "csv"),
    "diff": ("most", "csv"),
}
_ALL = tuple(dict.fromkeys(name for names in _OWN.values() for name in names))


def run(options: argparse.Namespace) -> int:
    """One of the commands; returns its exit status."""
    if options.trace not in _OWN:
        raise unknown_word_error(
            "command", options.trace, _OWN, f"the commands are {', '.join(_OWN)}", "gdbext trace: "
        )
    foreign = [name for name in _ALL if getattr(options, name) and name not in _OWN[options.trace]]
    if foreign:
        option = {"merged": "-o"}.get(foreign[0], "--" + foreign[0].replace("_", "-"))
        raise UsageError(f"gdbext trace {options.trace} has no {option}", "see `gdbext trace --help`")
    if not options.inputs:
        raise UsageError("missing traces", f"gdbext trace {options.trace} DIR")
    if options.jobs < 0:
        raise UsageError("--jobs must not be negative")
    commands: Dict[str, Callable[[argparse.Namespace], int]] = {
        "merge": _merge,
        "diagnose": _diagnose,
        "summary": _summary,
        "diff": _diff,
    }
    return commands[options.trace](options)


def _merge(options: argparse.Namespace) -> int:
    output = options.merged or (_MERGED if not options.perfetto else "merged.pftrace")
    asked = Asked(
        window=_window(options.window),
        steps=_numbers("--steps", options.steps),
        ranks=_numbers("--ranks", options.ranks),
        threads=_pattern("--threads", options.threads),
        kernels=_pattern("--kernels", options.kernels),
        aligned=options.require_aligned,
    )
    check_writable(output, options.force)
    paths = [path for path in find_trace_files(options.inputs) if path != output]
    say = Progress(options.quiet).say
    write = write_perfetto if options.perfetto else merge
    with tidy_end(), new_file(output, options.force, 0o644) as file:
        report = write(paths, asked, file, output, say, options.jobs)
    show(report, options)
    return exit_status(False, read_of(report.files))


def _diagnose(options: argparse.Namespace) -> int:
    if options.picture:
        check_writable(options.picture, options.force)
    job = read_job(find_trace_files(options.inputs), True, Progress(options.quiet).say, options.jobs)
    diagnosis = diagnose(job)
    if options.picture:
        write_private(options.picture, picture(diagnosis), options.force, 0o644)
    _show(diagnosis, options)
    return exit_status(diagnosis.late, diagnosis.read)


def _summary(options: argparse.Namespace) -> int:
    say = Progress(options.quiet).say
    steps = _numbers("--steps", options.steps)
    by, most = options.by or BY[0], max(1, options.most or _ROWS)
    if by not in BY:
        raise UsageError(f"--by {by} is not one of {', '.join(BY)}")
    summary = summarise(find_trace_files(options.inputs), by, most, say, steps, options.jobs)
    _show(summary, options)
    return OK if read_of(summary.files) != PART else exit_status(None, PART)


def _diff(options: argparse.Namespace) -> int:
    if len(options.inputs) != 2:
        raise UsageError("diff needs two runs", "gdbext trace diff BEFORE AFTER")
    say = Progress(options.quiet).say
    before, after = (
        summarise(find_trace_files([name]), "category", _ALL_ROWS, say, jobs=options.jobs) for name in options.inputs
    )
    _show(compare(before, after, max(1, options.most or _ROWS)), options)
    read = [read_of(one.files) for one in (before, after)]
    return exit_status(None, PART) if PART in read else exit_status(False, NONE if NONE in read else ALL)


def _show(answer: object, options: argparse.Namespace) -> None:
    if options.csv and options.json:
        raise UsageError("--csv and --json cannot be combined", "give one of them")
    if options.csv:
        print_document(lambda: dumps(answer), lambda style: csv_of(answer).splitlines(), options)
    else:
        show(answer, options)


def _numbers(option: str, text: Optional[str]) -> Optional[Sequence[int]]:
    """`0-3,7` as numbers."""
    if text is None:
        return None
    numbers: List[int] = []
    for piece in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", piece)
        if match is None or int(match[2] or match[1]) - int(match[1]) > _MOST_RANKS:
            raise UsageError(f"{option} {text} is not a list of numbers", f"{option} 0-3,7")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return numbers


def _window(text: Optional[str]) -> Optional[tuple[float, float]]:
    """Seconds, from and to."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d*)?)-(\d{1,9}(?:\.\d*)?)", text)
    if match is None or float(match[1]) >= float(match[2]):
        raise UsageError(f"--window {text} is not a range of seconds", "--window 0.5-1.25")
    return float(match[1]), float(match[2])


def _pattern(option: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text} is not a valid regular expression: {error}") from None
    return text
