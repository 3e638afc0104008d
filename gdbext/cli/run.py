"""`gdbext run --check|--profile|--dump|--sanitizer -- COMMAND`: start a program with an engine's own switches."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import time
from typing import Dict, List, Optional, Tuple

from gdbext.cli.run_settings import set_variable, settings_for
from gdbext.cli.terminal import Progress, write_lines
from gdbext.knowledge.errors.checks import STARTING
from gdbext.knowledge.launch.start_settings import PROFILE
from gdbext.model.errors import OK, NothingFound, UsageError


def run(options: argparse.Namespace) -> int:
    """Become the program; returns only by an error. Raises `UsageError`, `NothingFound`."""
    words: List[str] = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not words:
        purpose = "--sanitizer" if options.sanitizer else "--check"
        raise UsageError("missing command", f"gdbext run {purpose} -- mpirun -n 8 ./engine")
    if options.sanitizer:
        return _under_sanitizer(options, words)
    if options.kernel:
        raise UsageError("--kernel needs --sanitizer", "gdbext run --sanitizer --kernel flash_fwd -- ./server")
    environment, said = checking(options.engine, dict(os.environ)) if options.check else (dict(os.environ), ())
    purposes = [PROFILE] * bool(options.profile) + ([options.dump] if options.dump else [])
    if (options.dir or options.steps or options.set) and not purposes:
        raise UsageError("--dir, --steps and --set need --profile or --dump")
    for purpose in purposes:
        folder = options.dir or f"gdbext-{'profile' if purpose == PROFILE else 'dump'}-{time.strftime('%Y%m%d-%H%M%S')}"
        start = settings_for(
            purpose,
            options.engine,
            words,
            environment,
            folder,
            options.steps,
            (options.set or []) if purpose != PROFILE else (),
            make=not options.dry_run,
        )
        words, environment, said = start.words, start.environment, (*said, *start.said)
    for line in said:
        Progress(options.quiet).say(line)
    if options.dry_run:
        write_lines([shlex.join(words)])
        return OK
    try:
        os.execvpe(words[0], words, environment)  # noqa: S606 - the user's own words
    except OSError as error:
        raise NothingFound(f"cannot run {words[0]}: {error.strerror}") from None


def _under_sanitizer(options: argparse.Namespace, words: List[str]) -> int:
    """It does not become the program: it stays, and reads the reports."""
    if options.check or options.profile or options.dump or options.steps:
        raise UsageError("--sanitizer goes with no other purpose: a profile under it measures the sanitizer")
    sanitize = importlib.import_module("gdbext.cli.sanitizer.sanitize")
    status: int = sanitize.run(options, words)
    return status


def checking(engine: Optional[str], environment: Dict[str, str]) -> Tuple[Dict[str, str], Tuple[str, ...]]:
    """The environment with the variables of this engine (of every engine, without one), and a line for each of them.

    A variable that is set already is left as it is.
    """
    rows = [row for row in STARTING if row[0] == "" or engine in (None, row[0])]
    if engine is not None and all(row[0] != engine for row in STARTING):
        known = ", ".join(dict.fromkeys(row[0] for row in STARTING if row[0]))
        raise UsageError(f"no debug checks are known for {engine}", f"one of {known}")
    said: List[str] = []
    for _, name, value, _source in rows:
        said += set_variable(environment, name, value)
    return environment, tuple(dict.fromkeys(said))
