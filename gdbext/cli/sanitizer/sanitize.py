"""`gdbext run --sanitizer[=TOOL] -- COMMAND`: start it, stay with it, say what the reports say."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import time
from typing import Dict, List, NamedTuple, Sequence, Tuple

from gdbext.cli import diagnose
from gdbext.cli.command_line import parser
from gdbext.cli.parse_command_line import parse
from gdbext.cli.run_settings import engine_of, settings_for
from gdbext.cli.sanitizer.installed_tool import SanitizerTool, has_driver, installed, tool_problems, without_lines
from gdbext.cli.sanitizer.rank_commands import Place, log_of, options_of, placed
from gdbext.cli.sanitizer.sanitized_run import SanitizedRun, size_of
from gdbext.cli.terminal import Progress, write_lines
from gdbext.commands.kernel_reports import reports_of
from gdbext.discovery.ranks.rank_variables import claims_of
from gdbext.knowledge.launch.sanitizer_options import DRIVER_LIBRARY, ERRORS_FOUND, SLOWER, STARTER
from gdbext.knowledge.launch.start_settings import SANITIZER
from gdbext.model.errors import FINDING, NOTHING, OK, UNTOLD, GdbextError, NothingFound, UsageError
from gdbext.model.text.digits import is_whole
from gdbext.model.text.ranges import counted
from gdbext.parsers.compute_sanitizer.report_stream import WriterReport

_MOST_LOGS = 4096


class SanitizerStart(NamedTuple):
    """What is run, and a line for each thing to know."""

    words: List[str]
    environ: Dict[str, str]
    folder: str
    log: str
    said: Tuple[str, ...]


def run(options: argparse.Namespace, words: Sequence[str]) -> int:
    """Returns the exit status: 0 no error was reported, 1 some were, 3 it cannot be told, 4 there is no report."""
    environ = dict(os.environ)
    progress = Progress(options.quiet)
    start = prepare_run(options, words, installed(environ), environ)
    for line in start.said:
        progress.note(line)
    if options.dry_run:
        write_lines([shlex.join(start.words)])
        return OK
    progress.note(SLOWER)
    one = SanitizedRun(start.words, start.environ, progress, lambda: size_of(_logs(start.folder, start.log)))
    status = one.finished()
    how = "was stopped" if one.was_stopped else "ended"
    progress.note(f"the program {how}; the sanitizer's status is {status}")
    return _judged(start, status, options.quiet, "%q{" not in start.log)


def prepare_run(
    options: argparse.Namespace, words: Sequence[str], tool: SanitizerTool, environ: Dict[str, str]
) -> SanitizerStart:
    """The command line and the environment. Makes the folder, but for a dry run. Raises `GdbextError`."""
    place = placed(words, environ)
    if not place.launcher and not has_driver(environ):
        raise GdbextError(
            f"no {DRIVER_LIBRARY} on this host: under the sanitizer the program would crash at its start",
            "run it where the GPU is, in a container with --gpus all",
        )
    if not (place.launcher or options.dry_run or shutil.which(place.program[0], path=environ.get("PATH"))):
        raise NothingFound(f"cannot run {place.program[0]}: no such program here")
    ranked = not place.launcher and any(one.role == "rank" for one in claims_of(environ))
    default = "gdbext-sanitizer" if ranked else f"gdbext-sanitizer-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = os.path.abspath(options.dir or default)
    log = log_of(place, folder, environ)
    flags, lacking = options_of(tool, options.sanitizer, log, options.kernel, options.set or ())
    if not ranked and _logs(folder, log):
        raise UsageError(f"{folder} has reports of another run", "choose another folder with --dir")
    made = settings_for(SANITIZER, options.engine, place.program, environ, folder, make=not options.dry_run)
    said = [f"{tool.named} ({tool.path})", *made.said, *lacking]
    said += [
        f"warning: {one}" for one in (*tool_problems(tool, environ), without_lines(place.program[0], environ)) if one
    ]
    said += _of_logs(place, log, words)
    return SanitizerStart(
        [*place.before, tool.path, *flags, *made.words], made.environment, folder, log, tuple(dict.fromkeys(said))
    )


def _of_logs(place: Place, log: str, words: Sequence[str]) -> List[str]:
    said = [f"reports: {log.replace(f'%q{{{place.rank}}}', 'RANK')}"]
    if place.rank:
        said.append("note: on other hosts the folder must be there too, and the sanitizer at the same path")
    elif engine_of(words) is not None:
        said.append("note: a server that starts its workers itself has one log for all: reports do not say which rank")
    return said


def _logs(folder: str, log: str) -> List[str]:
    """The reports of this run. One of a rank has its number in its name."""
    name = os.path.basename(log)
    begin, variable, end = name.partition("%q{")
    end = end.partition("}")[2] if variable else ""
    try:
        names = sorted(os.listdir(folder))[:_MOST_LOGS]
    except OSError:
        return []
    return [os.path.join(folder, one) for one in names if _is_log(one, begin, end, bool(variable))]


def _is_log(name: str, begin: str, end: str, of_ranks: bool) -> bool:
    middle = name[len(begin) : len(name) - len(end)] if of_ranks else ""
    return name == begin + middle + end and (not of_ranks or is_whole(middle))


def _has_offsets(report: WriterReport) -> bool:
    frames = (frame for error in report.errors for frame in error.host_frames)
    return any(frame.module and frame.module_offset and not frame.line for frame in frames)


def _diagnosed(logs: Sequence[str], quiet: bool, of_this_host: bool) -> int:
    """`of_this_host`: libraries in the reports are files of this host as they are."""
    options = argparse.Namespace(answered=False, json=False)
    words = ["--quiet"] * quiet + ["--sysroot", "/"] * of_this_host
    parse(parser(), ["diagnose", *words, *logs], options)
    return diagnose.run(options)


def _judged(start: SanitizerStart, status: int, quiet: bool, of_this_host: bool) -> int:
    """The verdict over the reports: that of `diagnose` where there are errors."""
    logs = _logs(start.folder, start.log)
    found = [report for path in logs for report in reports_of(path)]
    if any(one.errors for one in found):
        write_lines([f"$ gdbext diagnose {start.folder}"])
        return _diagnosed(logs, quiet, of_this_host and any(map(_has_offsets, found)))
    if status == ERRORS_FOUND:
        write_lines(
            [f"The sanitizer found errors, but no report of them is in {start.folder}: look on the other hosts."]
        )
        return FINDING
    if not found:
        write_lines([f"There is no report in {start.folder}: the sanitizer did not start, see what is printed above."])
        return NOTHING
    problems = list(dict.fromkeys(line for one in found for line in one.problems))
    whole = all(one.ended for one in found)
    if whole:
        write_lines([f"No error was reported: {counted(len(found), 'report')} with a summary of 0 errors.", *problems])
        return OK
    write_lines(
        ["It cannot be told whether there are errors:", *(f"  {one}" for one in problems[:20]), *_next(problems)]
    )
    return UNTOLD


def _next(problems: Sequence[str]) -> List[str]:
    if any("before first instrumented" in one for one in problems):
        return [f"  The program never called CUDA: it ended before, or the sanitizer has no {STARTER} that it can run."]
    return []
