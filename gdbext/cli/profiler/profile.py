"""`gdbext profile start|stop|status|run`: an engine's own profiler, from its process to the traces of all ranks."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import Optional, Tuple

from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.answer_output import show
from gdbext.cli.chosen_processes import chosen_job, selector_of
from gdbext.cli.profiler.profile_http import Http, NoServer
from gdbext.cli.profiler.profile_report import report
from gdbext.cli.profiler.profile_server import named_server, server_of
from gdbext.cli.profiler.profile_session import TOKEN, Session, ways
from gdbext.collect.cleanup_on_signals import tidy_end
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.listing import describe
from gdbext.knowledge.profilers import PROFILERS
from gdbext.model.errors import GdbextError, UsageError, refused_as
from gdbext.model.exit_status import ALL, NONE, exit_status
from gdbext.model.job import Job
from gdbext.model.profiling import ProfileServer, ProfileStatus, ProfileStatuses


def run(options: argparse.Namespace) -> int:
    """The whole command; returns its exit status."""
    http = Http(_token(options))
    if options.action == "status":
        return _status(options, http)
    server, ranks, pids = _target(options, http)
    session = Session(options, http, server, ranks, pids)
    if options.action == "stop":
        answer = session.end()
    elif options.action == "start":
        answer = session.begin()
    else:
        with tidy_end():
            answer = session.whole()
        return report(answer, options, session.progress)
    show(answer, options)
    return exit_status(False)


def _token(options: argparse.Namespace) -> Optional[str]:
    """From a file or the environment, never from the command line: everybody can read that."""
    if options.token_file is None:
        return os.environ.get(TOKEN) or None
    with refused_as(f"cannot read {options.token_file}"), open(options.token_file, encoding="utf-8") as file:
        token = file.read(4096).strip()
    if not token or len(token.split()) != 1 or not token.isprintable():
        raise UsageError(f"{options.token_file} contains no token", "one word, in a file that only you can read")
    return token


def _target(options: argparse.Namespace, http: Http) -> Tuple[ProfileServer, int, Tuple[int, ...]]:
    """The server, how many ranks it has here, and their pids."""
    if options.url:
        return named_server(options, http), 0, ()
    proc = ProcFS()
    job = chosen_job(proc, options, options.inputs)
    server = server_of(job, proc, options.port, options.dir)
    pids = {*(one.pid for one in job.ranks), *filter(None, [server.pid])}
    return server, len(job.ranks), tuple(sorted(pids))


def _status(options: argparse.Namespace, http: Http) -> int:
    """All jobs that are meant, without a word to a profiler: only its routes are asked for."""
    proc = ProcFS()
    if options.url:
        statuses = [_of_server("--url", 0, named_server(options, http), http)]
    else:
        jobs = find_jobs(proc, selector_of(options, options.inputs), read_environ)
        statuses = [_of_job(job, proc, options, http) for job in jobs]
    show(ProfileStatuses(tuple(statuses)), options)
    return exit_status(False, ALL if statuses else NONE)


def _of_job(job: Job, proc: ProcFS, options: argparse.Namespace, http: Http) -> ProfileStatus:
    try:
        server = server_of(job, proc, options.port, options.dir)
    except GdbextError as error:
        hint = (error.hint,) if error.hint else ()
        return ProfileStatus(
            job=describe(job), engine=job.engine, ranks=len(job.ranks), problem=error.args[0], next_step=hint
        )
    return _of_server(describe(job), len(job.ranks), server, http)


def _of_server(name: str, ranks: int, server: ProfileServer, http: Http) -> ProfileStatus:
    row = PROFILERS[server.engine]
    found = ProfileStatus(job=name, engine=server.engine, ranks=ranks, server=server)
    try:
        routes = http.routes(server)
    except NoServer as error:
        return replace(found, ready=False, problem=str(error))
    if routes is None:
        return replace(
            found,
            problem=f"{server.url} does not list its routes; `gdbext profile start` shows whether it can be profiled",
        )
    if {row.start, row.stop} <= routes:
        return replace(found, ready=True, next_step=("gdbext profile run",))
    return replace(found, ready=False, problem=f"{server.url} has no {row.start}", next_step=ways(row))
