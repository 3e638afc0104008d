"""`gdbext ranks`: the jobs on this host, and what would hinder an attach."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import replace

from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.answer_output import show
from gdbext.cli.chosen_processes import selector_of
from gdbext.cli.terminal import Progress
from gdbext.discovery.preflight_checks.attach_permission import attach_problems, of_several
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.model.errors import OK, NothingFound
from gdbext.model.exit_status import ALL, NONE, PART, exit_status
from gdbext.model.job import Job


def run(options: argparse.Namespace) -> int:
    """The whole command; returns its exit status."""
    if options.dry_run or options.hosts:
        return _of_hosts(options)
    proc = ProcFS()
    found = find_jobs(proc, selector_of(options, options.inputs), read_environ)
    jobs = [_with_hindrances(job, proc) for job in found]
    show(jobs, options)
    if not jobs and options.json:  # the text says it itself
        Progress().say("no rank process was found on this host")
    for note in () if jobs else found.notes:
        Progress().say(note)
    return exit_status(False, ALL if jobs else NONE)


def _of_hosts(options: argparse.Namespace) -> int:
    hosts = importlib.import_module("gdbext.cli.hosts")
    if options.dry_run:
        hosts.dry_run(options)
        return OK
    jobs, all_read = hosts.jobs(options, Progress(options.quiet))
    if not jobs:
        raise NothingFound("no rank process was found on the hosts")
    show(jobs, options)
    return exit_status(False, ALL if all_read else PART)


def _with_hindrances(job: Job, proc: ProcFS) -> Job:
    """The job with a note for everything that would hinder an attach to one of its ranks."""
    notes = tuple(
        f"{'; '.join(filter(None, (problem.text, problem.remedy)))}{of_several(pids)}"
        for problem, pids in attach_problems(proc, [rank.pid for rank in job.ranks])
    )
    return replace(job, notes=job.notes + notes)
