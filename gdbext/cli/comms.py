"""`gdbext comms`: the NCCL communicators of running ranks, read without stopping any of them."""

from __future__ import annotations

import argparse
import dataclasses
import errno
import importlib
import os
import socket
import time
from types import ModuleType
from typing import Dict, Optional, Tuple

from gdbext import __version__
from gdbext.analysis.communicators.joined_communicators import communicator_table, is_wrong, why_nothing
from gdbext.capture.memory.maps import read_maps
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.nccl.memory_scan import Budget
from gdbext.capture.nccl.pointer_search import (
    Search,
    scan_where_some_are_missing,
    search_of_process,
    search_result,
    stack_ranges,
    words_in,
)
from gdbext.capture.without_stop import kernel_threads
from gdbext.cli.answer_output import show, show_page
from gdbext.cli.chosen_processes import chosen, chosen_job, split_inputs
from gdbext.cli.inputs import standard_input
from gdbext.cli.inputs.given_files import read_snapshot
from gdbext.cli.terminal import Progress
from gdbext.collect.communicators import layout_of
from gdbext.commands.page import page_of_communicators
from gdbext.commands.user_files import write_private
from gdbext.discovery.preflight_checks.attach_permission import check
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.codes import ReadState
from gdbext.model.communicator import Searched
from gdbext.model.errors import OK, NothingFound, UsageError
from gdbext.model.exit_status import exit_status
from gdbext.model.job import Job, JobSnapshot, RankProcess
from gdbext.model.look_origin import FromFile, Origin
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.snapshot_builder.builder import ProcessReading, Stacks, rank_snapshot

STACK = 256 << 10  # bytes of each stack that are looked through for pointers
SECONDS_BETWEEN_READS = 0.5  # seconds between two reads, to see which ranks launch on
WHOLE = Budget()
"""A scan that was asked for."""
SHORT = Budget(bytes=2 << 30, seconds=4.0)
"""A scan of the ranks in which pointers led to none, or not to all that others have; for all of them together."""
FURTHER = "Not all memory was searched for the missing members: --scan searches all of it."


def run(options: argparse.Namespace) -> int:
    """The whole command; returns its exit status."""
    progress = Progress(options.quiet, one_line=True)
    pids, files = split_inputs(options.inputs)
    if len(files) > 1 or (files and (pids or chosen(options))):
        raise UsageError("give one snapshot at a time, without pids")
    origin: Optional[Origin] = None
    if options.dry_run:
        _hosts().dry_run(options)
        return OK
    if not (files or pids or options.hosts or chosen(options)) and standard_input.is_given("comms", progress):
        files = options.inputs = ["-"]
    if files:
        snapshot, origin = read_snapshot(files[0], progress)
    elif options.hosts:
        snapshot = _hosts().look(options, progress)
    else:
        snapshot = look(chosen_job(ProcFS(), options, pids), options.scan, progress)
    if options.save:
        write_private(options.save, dump_snapshot(snapshot) + "\n", options.force)
        progress.note(f"snapshot written to {options.save}")
    table = communicator_table(snapshot.processes)
    if not table.groups and not table.unreadable:
        hint = "--scan searches all of their memory" if _cut(snapshot) and not options.scan else ""
        raise NothingFound(why_nothing(snapshot.processes), hint)
    if not options.scan and not files and any(group.unseen for group in table.groups) and _cut(snapshot):
        table = dataclasses.replace(table, notes=(FURTHER, *table.notes))
    show(table if origin is None else FromFile(table, origin), options)
    if options.html is not None:
        show_page(page_of_communicators(snapshot, origin), options)
    return exit_status(any(is_wrong(group) for group in table.groups), snapshot.read)


def _hosts() -> ModuleType:
    """What a look at this host does without."""
    return importlib.import_module("gdbext.cli.hosts")


def _cut(snapshot: JobSnapshot) -> bool:
    """Whether a scan stopped before its end."""
    return any(process.search_cut for process in snapshot.processes)


def look(job: Job, scan: bool, progress: Progress) -> JobSnapshot:
    """Read the communicators of all ranks of a job, twice; no rank is stopped."""
    begun = time.monotonic()
    searches: Dict[int, Search] = {}
    problems: Dict[int, str] = {}
    for rank in job.ranks:
        try:
            searches[rank.pid] = _search(rank.pid)
        except OSError as error:
            problems[rank.pid] = f"its memory cannot be read: {_why(rank.pid) or error.strerror}"
    if scan:
        for pid, search in searches.items():
            progress.say(f"searching the memory of pid {pid}")
            search.by_scan(WHOLE)
    else:
        scan_where_some_are_missing(list(searches.values()), SHORT)
    time.sleep(max(0.0, begun + SECONDS_BETWEEN_READS - time.monotonic()) if searches else 0.0)
    for search in searches.values():
        search.again()
    processes = tuple(
        rank_snapshot(index, _Reading(rank, searches.get(rank.pid), problems.get(rank.pid)))
        for index, rank in enumerate(job.ranks)
    )
    return JobSnapshot(
        processes=processes,
        taken_at=time.time(),
        engine=job.engine,
        world_size=job.world_size,
        absent=job.absent,
        problems=job.notes,
        tool=f"gdbext {__version__}",
        command="gdbext comms",
    )


def _search(pid: int) -> Search:
    memory = read_maps(pid)
    if not any(ProcessMemory(pid).read(one.start, 8) for one in memory if one.is_file and one.permissions[0] == "r"):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))  # the map is free to read, memory is not
    search = search_of_process(pid, memory, layout_of)
    if search.possible:
        stacks = [thread.sp for thread in kernel_threads.look(pid).values() if thread.sp]
        search.from_words(words_in(ProcessMemory(pid).read, stack_ranges(memory, stacks, STACK)))
    return search


def _why(pid: int) -> str:
    """What hinders us, and the next step."""
    blocking = [problem for problem in check(ProcFS(), pid).problems if problem.blocking]
    return "; ".join(filter(None, (blocking[0].text, blocking[0].remedy))) if blocking else ""


class _Reading(ProcessReading):
    """Communicators alone: no thread of it is looked at."""

    def __init__(self, rank: RankProcess, search: Optional[Search], problem: Optional[str]) -> None:
        super().__init__(rank)
        self._search, self._problem = search, problem

    def communicators(self, stacks: Stacks) -> Searched:
        return search_result(self._search)

    def host(self) -> str:
        return self.process.host or socket.gethostname()

    def state(self, stacks: Stacks) -> ReadState:
        return ReadState.OK if self._search else ReadState.LOST

    def problems(self) -> Tuple[str, ...]:
        return (self._problem,) if self._problem else ()
