"""`gdbext gpucore trigger [JOB]`: ask all ranks for a GPU core at one time, and wait until the files are there.

A dump can end the job, or stall it until a timer does: it is never asked for without somebody's word. No process gets a
signal: that would break its dump off.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import sys
import time
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.cli.answer_output import show
from gdbext.cli.chosen_processes import chosen_job
from gdbext.cli.gpu_cores.armed_ranks import DumpPipe, armed, pids_of
from gdbext.cli.terminal import Progress
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.launch.gpu_core_settings import LEAST_FREE, REQUEST_BYTES
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.exit_status import ALL, NONE, PART, exit_status
from gdbext.model.gpu_core_arming import ArmedJob, ArmedRank, TriggeredJob, TriggeredRank
from gdbext.model.job import Job
from gdbext.model.text.ranges import counted
from gdbext.safe_open import files

_NAP, _TOLD = 0.1, 5.0  # seconds between two looks, and two lines of progress
_ASKING = 10.0  # seconds that a rank may take to read the request

WRITTEN, UNFINISHED, NOTHING, NOT_ASKED = "written", "not finished", "nothing came", "not asked"


def run(options: argparse.Namespace) -> int:
    """The whole command; status 0 when every rank has written its core. Raises `GdbextError`."""
    if options.deadline <= 0:
        raise UsageError("--deadline must be positive")
    progress = Progress(options.quiet, one_line=True)
    proc = ProcFS()
    job = chosen_job(proc, options, pids_of(options))
    outlets, status = armed(proc, job)
    pairs = _ranks_with_pipe(outlets, status)
    _agree(options, job, status, len(pairs))
    came = Dump(proc, pairs, options.deadline, progress).take()
    known = {one.pid: one for one in came}
    left = [_not_asked(one) for one in status.ranks]
    answer = TriggeredJob(tuple(known.get(one.pid, one) for one in left))
    show(answer, options)
    count = len(answer.files)
    return exit_status(False, ALL if count == len(answer.ranks) else PART if count else NONE)


def _ranks_with_pipe(outlets: Sequence[DumpPipe], status: ArmedJob) -> List[Tuple[DumpPipe, str]]:
    """The ranks that have a pipe, with their labels. Raises `NothingFound`; `GdbextError` where there is no room."""
    pairs = [(one, rank.label) for one, rank in zip(outlets, status.ranks) if rank.pipe and rank.on_demand]
    if not pairs:
        raise NothingFound(
            "no rank waits to be asked for a GPU core", "start the job with `gdbext gpucore arm -- COMMAND`"
        )
    short = [rank for rank in status.ranks if rank.free is not None and rank.free < LEAST_FREE]
    if short:
        raise GdbextError(
            f"{os.path.dirname(short[0].file) or 'the folder'} has {(short[0].free or 0) >> 20} MiB free, too little"
            " for a GPU core",
            "make room there first",
        )
    return pairs


def _agree(options: argparse.Namespace, job: Job, status: ArmedJob, asked: int) -> None:
    """Say what a dump does, and get somebody's word for it. Raises `UsageError`, `GdbextError`."""
    progress = Progress()
    progress.warn(
        f"the GPUs of {counted(asked, 'rank')} stop until their cores are written (seconds to minutes); the driver may"
        " end the processes afterwards, and a job whose ranks do not all go on hangs"
    )
    for words in status.timeouts:
        progress.warn(f"meanwhile {words}")
    missing = len(status.ranks) - asked
    if missing:
        progress.warn(f"{counted(missing, 'rank')} cannot be asked: see `gdbext gpucore status`")
    if job.world_size is not None and job.world_size > len(status.ranks):
        progress.warn("ranks on other hosts are not asked: run this there at the same time")
    if options.yes:
        return
    if options.json or sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("a dump can end or stall the job, and nobody has agreed to it", "add --yes")
    try:
        answer = input(f"Ask {counted(asked, 'rank')} for GPU cores now? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise GdbextError("nothing was asked for; the job keeps running")


class Dump:
    """One request to all ranks, and the files that come of it."""

    def __init__(
        self, proc: ProcFS, pairs: Sequence[Tuple[DumpPipe, str]], deadline: float, progress: Progress
    ) -> None:
        self._proc, self._pairs, self._deadline, self._progress = proc, pairs, deadline, progress
        self._stack = contextlib.ExitStack()
        for one, _ in pairs:
            one.hold(self._stack)
        self._before = {one.pid: one.cores() for one, _ in pairs}
        self._sizes: Dict[int, Tuple[str, int]] = {}
        self._done: Dict[int, TriggeredRank] = {}
        self._refused: Dict[int, str] = {}
        self._asked: Dict[int, float] = {}

    def take(self) -> List[TriggeredRank]:
        """Ask, wait until all is written, the deadline or Ctrl-C: the dumps go on without us."""
        with self._stack:
            return self._dump_ranks()

    def _dump_ranks(self) -> List[TriggeredRank]:
        self._ask()
        last_said = time.monotonic()
        until = last_said + self._deadline
        with contextlib.suppress(KeyboardInterrupt):
            while len(self._done) < len(self._asked) and time.monotonic() < until:
                for outlet, label in self._pairs:
                    if outlet.pid in self._asked and outlet.pid not in self._done:
                        self._look(outlet, label)
                if time.monotonic() - last_said >= _TOLD:
                    last_said = time.monotonic()
                    self._tell()
                time.sleep(_NAP)
        return [self._done.get(outlet.pid) or self._unfinished(outlet, label) for outlet, label in self._pairs]

    def _ask(self) -> None:
        """Open every pipe first, then write to all of them: the ranks begin within moments of each other."""
        opened: Dict[int, DumpPipe] = {}
        try:
            for outlet, _ in self._pairs:
                descriptor = self._open(outlet)
                if descriptor is not None:
                    opened[descriptor] = outlet
            now = time.monotonic()
            self._asked = {outlet.pid: now for outlet in opened.values()}
            self._write(opened)
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _open(self, outlet: DumpPipe) -> Optional[int]:
        name = outlet.pipe()
        try:
            if name is None:
                raise FileNotFoundError(2, "its pipe is gone")
            with files.folder(outlet.pipe_folder, outlet.root) as folder:
                return os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except OSError as error:  # ENXIO: nobody reads it
            self._refused[outlet.pid] = f"its pipe cannot be written: {error.strerror}"
            return None

    def _write(self, opened: Dict[int, DumpPipe]) -> None:
        """The request to each, as fast as each takes it. Who has read enough closes its end."""
        left = dict.fromkeys(opened, REQUEST_BYTES)
        zeros = bytes(1 << 16)
        poll = select.poll()
        for descriptor in opened:
            poll.register(descriptor, select.POLLOUT)
        until = time.monotonic() + _ASKING
        while left and time.monotonic() < until:
            for descriptor, events in poll.poll(500):
                try:
                    left[descriptor] -= os.write(descriptor, zeros[: left[descriptor]])
                except BlockingIOError:
                    continue
                except OSError:
                    left[descriptor] = 0
                if left[descriptor] <= 0 or events & (select.POLLERR | select.POLLHUP):
                    poll.unregister(descriptor)
                    del left[descriptor]

    def _look(self, outlet: DumpPipe, label: str) -> None:
        """Whether its new file is whole: it no longer grows, the process has closed it, its last table is in it."""
        before = self._before[outlet.pid]
        new = {name: size for name, (size, at) in outlet.cores().items() if before.get(name) != (size, at)}
        if not new:
            if not self._proc.exists(outlet.pid):
                self._done[outlet.pid] = self._result(outlet, label, NOTHING, problem="the process has ended")
            return
        name = max(new, key=lambda one: (new[one], one))
        size = new[name]
        same = self._sizes.get(outlet.pid) == (name, size)
        self._sizes[outlet.pid] = name, size
        if not (same and size):
            return
        open_files = self._proc.open_files(outlet.pid)
        if isinstance(open_files, tuple) and any(os.path.basename(one) == name for one in open_files):
            return
        path, whole = outlet.seen_from_here(name), outlet.is_whole(name)
        if whole or not self._proc.exists(outlet.pid):
            state = WRITTEN if whole else UNFINISHED
            self._done[outlet.pid] = self._result(outlet, label, state, path, size)

    def _result(
        self, outlet: DumpPipe, label: str, state: str, path: str = "", size: Optional[int] = None, problem: str = ""
    ) -> TriggeredRank:
        return TriggeredRank(
            label=label,
            pid=outlet.pid,
            state=state,
            file=path,
            size=size,
            seconds=time.monotonic() - self._asked[outlet.pid] if outlet.pid in self._asked else None,
            problem=problem,
            alive=self._proc.exists(outlet.pid),
        )

    def _unfinished(self, outlet: DumpPipe, label: str) -> TriggeredRank:
        if outlet.pid in self._refused:
            return self._result(outlet, label, NOT_ASKED, problem=self._refused[outlet.pid])
        name, size = self._sizes.get(outlet.pid, ("", 0))
        if name:
            path = outlet.seen_from_here(name)
            return self._result(
                outlet, label, UNFINISHED, path, size, "it is still being written, or its writer has stopped"
            )
        return self._result(outlet, label, NOTHING, problem="the driver has not begun a file within the deadline")

    def _tell(self) -> None:
        size = sum(size for _, size in self._sizes.values())
        self._progress.say(
            f"{len(self._done)} of {len(self._asked)} GPU cores written, {size >> 20} MiB so far (Ctrl-C stops waiting,"
            " not the dumps)"
        )


def _not_asked(rank: ArmedRank) -> TriggeredRank:
    why = "its pipe is not there" if rank.on_demand else "it was not started for GPU cores on demand"
    return TriggeredRank(label=rank.label, pid=rank.pid, state=NOT_ASKED, problem=why)
