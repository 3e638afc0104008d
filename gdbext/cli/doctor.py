"""`gdbext doctor`: whether gdb, the packages and the rights are there that a look at the ranks needs."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
from typing import Any, Iterator, List

from gdbext.capture.private_folder import place_for_copies
from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.answer_output import show
from gdbext.cli.chosen_processes import selector_of
from gdbext.cli.terminal import Progress
from gdbext.collect.gdb_runs.batch_runs import INIT, QUIET_START, find_gdb
from gdbext.discovery.checkup import host_points
from gdbext.discovery.proc import programs
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.model.checkup import Checkup, Point
from gdbext.model.errors import OK, GdbextError, UsageError
from gdbext.model.exit_status import ALL, NONE, exit_status

_SECONDS = 30.0
_INSTALL = "install a gdb with Python (apt-get install gdb), or name one with --gdb PATH"


def run(options: argparse.Namespace) -> int:
    """The whole command; status 1 when something hinders a look."""
    if options.build is not None or options.how is not None:
        return _of_build(options)
    if options.dry_run or options.hosts:
        return _of_hosts(options)
    proc = ProcFS()
    points: List[Point] = [*_gdbs(options.gdb)]
    points += host_points(proc, find_jobs(proc, selector_of(options, options.inputs), read_environ), place_for_copies)
    checkup = Checkup(tuple(points))
    show(checkup, options)
    return exit_status(checkup.hindered)


def _of_build(options: argparse.Namespace) -> int:
    if options.hosts:
        raise UsageError("--build and --how are about this host alone", "run them there: ssh HOST gdbext doctor ...")
    report = importlib.import_module("gdbext.commands.build_report").answer(options.build, options.how)
    show(report, options)
    return exit_status(report.lacking, ALL if report.read else NONE)


def _of_hosts(options: argparse.Namespace) -> int:
    hosts = importlib.import_module("gdbext.cli.hosts")
    if options.dry_run:
        hosts.dry_run(options)
        return OK
    checkup = hosts.checkup(options, Progress())
    show(checkup, options)
    return exit_status(checkup.hindered)


def _gdbs(wanted: str) -> Iterator[Point]:
    """The gdb that looks would use, and the cuda-gdb beside it."""
    try:
        found = find_gdb(wanted)
    except GdbextError as error:
        yield Point("gdb", "hindrance", str(error))
        return
    yield from _asked(found, "hindrance")
    other = programs.find("cuda-gdb").path
    if other and other != found:
        yield from _asked(other, "warning")


def _asked(gdb: str, state: str) -> Iterator[Point]:
    """What this gdb says of itself, with our commands in it."""
    command = [gdb, *QUIET_START, "-ex", f"source {INIT}", "-ex", "llm-doctor --gdb --json"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Point(gdb, state, f"cannot be run: {error}", _INSTALL)
        return
    said: List[Any] = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if said:
        for row in json.loads(said[-1])["points"]:
            path = f" ({gdb})" if row["name"] in ("gdb", "cuda-gdb") else ""
            yield Point(row["name"], row["state"], row["text"] + path, row["remedy"])
        return
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    yield Point(
        gdb, state, lines[0][:200] if lines else f"is not a gdb with Python (status {done.returncode})", _INSTALL
    )
