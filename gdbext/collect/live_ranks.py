"""Looks at running rank processes: stop, copy, release, then read the copies at leisure.

No rank is ever held while symbols are read or text is printed. The order: everything that /proc tells without a
stop, the copies (milliseconds each), the names of Python frames, then a gdb that reads the copies as cores, and last
a second copy, compared with the first byte by byte, that tells waiting from passing through.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import Budget, ProcessCopy
from gdbext.capture.copies.held_note import Note
from gdbext.capture.copies.thread_status import tracer_of
from gdbext.capture.locks_in_memory import futexes
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.python.python_frames import freeze
from gdbext.capture.python.runtime import Interpreter, interpreter_of
from gdbext.capture.python.thread_facts import resolve_all
from gdbext.capture.stop import copy_of_process, kill_timer, second_copy
from gdbext.capture.stop.several_processes import copy_together
from gdbext.capture.stop.still_asleep import copy_asleep, copy_awake, sleeping_threads
from gdbext.capture.symbols.environ import read_environ, recorded
from gdbext.capture.without_stop import counters, kernel_threads, sleep_times
from gdbext.collect import communicators, release_check, unreadable_ranks
from gdbext.collect import unstopped_ranks as no_stop
from gdbext.collect.cleanup_on_signals import private_folder
from gdbext.collect.gdb_runs import batch_runs
from gdbext.collect.gdb_runs.unwinding import FEW, unwind
from gdbext.collect.gdbs_side_by_side import most_gdbs
from gdbext.collect.live_snapshot_source import LiveReading
from gdbext.collect.one_rank import Held, LiveRank, reasons
from gdbext.collect.progress import Progress
from gdbext.collect.rank_locks import Neighbours
from gdbext.discovery.preflight_checks.attach_permission import check
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import rank_from_environ, told_apart
from gdbext.model.codes import Code, ReadState
from gdbext.model.errors import NothingFound
from gdbext.model.job import Job, JobSnapshot, RankSnapshot, Refusal
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.text.ranges import counted
from gdbext.model.witness import Witness
from gdbext.snapshot_builder.builder import rank_snapshot
from gdbext.witnesses.all_witnesses import ask_all

_NO_GDB = Refusal("gdb was not used", "install gdb there: apt-get install gdb")
_WITH_ONE = "gdb would add the C and C++ calls of each thread, and the locks that they wait for"
_STACK = 6 << 10  # bytes that are copied of a thread, on the average of a torch rank's


@dataclass(frozen=True)
class Limits:
    """What a look may cost."""

    max_pause: float = 2.0  # seconds a rank may be held
    frames: int = 256  # per thread
    deadline: float = 120.0  # seconds gdb may take
    together: bool = False  # one consistent picture instead of the shortest stops
    gdb: Optional[str] = None
    confirm: float = 1.2  # seconds between the two copies of a look; 0: one copy only
    witnesses: bool = True  # ask RAS, NVML, ... before the stop
    no_stop: bool = False  # stop nobody; `max_pause` is then the time that a rank is read for
    jobs: int = 0  # gdbs side by side; 0: as many as pay
    outlines: bool = True  # of ranks that may not be read, tell what /proc says: for an answer that is more than stacks


class Look:
    """One look at all ranks of a job. `take` does it."""

    def __init__(
        self,
        job: Job,
        limits: Limits,
        progress: Progress,
        proc: Optional[ProcFS] = None,
        before: Optional[counters.Census] = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """`before`: the census of the look before this one, where that tells more than nothing. `meanwhile` is called
        while gdb works."""
        self._job, self._limits, self._progress = job, limits, progress
        self._proc = proc or ProcFS()
        self._budget = Budget(seconds=limits.max_pause)
        self._ranks = [LiveRank(process=process) for process in (*job.ranks, *job.serving)]
        self._problems: List[str] = []
        self._apart: Optional[float] = None
        self._began = 0.0  # CLOCK_MONOTONIC
        self._witnesses: Tuple[Witness, ...] = ()
        self._before, self._meanwhile = before, meanwhile
        self.census: Optional[counters.Census] = None

    def take(self) -> JobSnapshot:
        """The snapshot. Raises `NothingFound` when no rank at all could be read."""
        wanted = self._limits.gdb
        gdb = None if wanted == batch_runs.NO_GDB else batch_runs.find_gdb(wanted)  # before anything is stopped
        with private_folder() as folder:
            self._limit_stops(folder)
            with batch_runs.begin(gdb, self._gdbs(), folder) if gdb else contextlib.nullcontext(()) as begun:
                for rank in self._ranks:
                    self._prepare(rank)
                for rank, process in zip(self._ranks, told_apart([rank.process for rank in self._ranks])):
                    rank.process = process
                self._ask_witnesses()
                pids = [rank.pid for rank in self._ranks]
                self.census = counters.take(pids)
                if self._before is not None:
                    self._report_activity(self._before, self.census)
                taken_at, self._began = time.time(), time.monotonic()
                self._copy()
                readable = [rank for rank in self._ranks if rank.copy is not None and rank.copy.state != ReadState.LOST]
                closed = [
                    rank
                    for rank in self._ranks
                    if self._limits.outlines and unreadable_ranks.lacks_only_permission(rank)
                ]
                if not readable and not closed and self._ranks:
                    raise NothingFound(f"no rank could be read ({reasons(self._ranks)})")
                for rank in readable:
                    self._name_python(rank)
                if readable and gdb:
                    self._unwind(readable, gdb, folder, begun)
                elif readable:
                    self._do_without_gdb(readable)
            self._find_communicators(readable)
            if self._limits.confirm > 0:
                self._confirm(readable, closed)
        touched = [rank for rank in self._ranks if rank.copy is not None]
        since = {rank.pid: release_check.marks_of(rank.pid) for rank in touched}
        for rank in closed:
            unreadable_ranks.complete(rank)
        job = {one.pid for one in (*self._job.ranks, *self._job.others, *self._job.left_out)}
        neighbours = Neighbours(self._proc, readable, job)
        processes = [rank_snapshot(index, LiveReading(rank, neighbours)) for index, rank in enumerate(self._ranks)]
        for index, rank in enumerate(self._ranks):
            if rank.copy is not None:
                processes[index] = self._check_released(rank, since[rank.pid], processes[index])
        return self._snapshot(taken_at, processes)

    def _limit_stops(self, folder: Path) -> None:
        """A stop ends us when it lasts too long, and the user learns of it."""
        if self._limits.no_stop:
            return
        why = kill_timer.why_none()
        if why is not None:
            self._progress.note(
                f"no timer for the stop ({why}): if gdbext itself is stopped meanwhile, the ranks stay stopped"
            )
        with contextlib.suppress(OSError):  # no room: then it ends us without a word
            self._budget = replace(self._budget, note=Note(folder))

    def _gdbs(self) -> int:
        """How many gdbs will probably have work: they start while the ranks are looked at. None before a stop that
        takes all processors."""
        if self._limits.together:
            return 0
        threads_of_all = sum(len(self._proc.tasks(rank.pid)) for rank in self._ranks)
        return most_gdbs(len(self._ranks), threads_of_all * _STACK, self._limits.jobs)

    def _report_activity(self, before: counters.Census, after: counters.Census) -> None:
        found = counters.activity_between(before, after, [rank.pid for rank in self._ranks])
        for rank in self._ranks:
            rank.activity = found.get(rank.pid)

    # --- before the stop ---

    def _prepare(self, rank: LiveRank) -> None:
        """Everything that /proc and memory tell while the rank runs on."""
        flight = check(self._proc, rank.pid)
        if flight.problems:
            rank.refusal = Refusal(flight.problems[0].text, flight.problems[0].remedy)
        for problem in flight.problems:
            rank.note(f"{problem.text}; {problem.remedy}" if problem.remedy else problem.text)
        rank.blocked = not flight.ok and not self._limits.no_stop  # who is not touched may well belong to another
        rank.barred = flight.barred
        environ = read_environ(rank.pid)
        if isinstance(environ, Missing):
            environ = self._proc.environ(rank.pid)
        if not isinstance(environ, Missing):
            rank.process = rank_from_environ(rank.process, environ)
            rank.environment = recorded(environ)
            rank.cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '')}/.cache"
        if not rank.blocked:
            rank.interpreter = interpreter_of(rank.pid)
        rank.times = rank.before = kernel_threads.look(rank.pid)
        rank.traced = tracer_of(rank.pid, rank.pid) != 0

    def _ask_witnesses(self) -> None:
        """A stopped rank does not answer its peers, nor NCCL's status service: so they are asked before."""
        if self._limits.witnesses:
            self._witnesses = ask_all([rank.asked(index) for index, rank in enumerate(self._ranks)], self._proc.root)

    # --- the stop ---

    def _copy(self) -> None:
        wanted = [rank for rank in self._ranks if not rank.blocked]
        times = {rank.pid: rank.times for rank in wanted}
        slept = {}
        if not self._limits.no_stop:
            slept = copy_asleep(times, self._budget, no_stop.copies_of_cut_short(times, self._budget))
        for rank in wanted:
            rank.asleep = slept.get(rank.pid)
        for rank, copy in zip(wanted, self._copies(wanted, times, python=True)):
            rank.copy, rank.copied_at = copy, time.monotonic()
            for problem in copy.problems:
                rank.note(problem, cut=True)
            rank.pause_ms = 0.0 if self._limits.no_stop else copy.felt_ms
        if self._limits.confirm > 0 and not self._limits.no_stop:
            marked = sleeping_threads([rank.copy for rank in wanted if rank.copy is not None], slept)
            for rank in wanted:
                rank.asleep = marked.get(rank.pid)
        self._report_copies([rank for rank in wanted if rank.pause_ms is not None])

    def _report_copies(self, ranks: Sequence[LiveRank]) -> None:
        """A line for each rank while they are few, else one for all."""
        copies = [rank.copy for rank in ranks if rank.copy is not None]
        counts = [sum(bool(thread.registers) for thread in copy.threads) for copy in copies]
        if len(ranks) > FEW:
            longest = max(rank.pause_ms or 0.0 for rank in ranks)
            how = "without a stop" if self._limits.no_stop else f"each stopped for at most {longest:.1f} ms"
            self._progress.say(f"{counted(sum(counts), 'thread')} of {len(ranks)} ranks copied, {how}")
            return
        for rank, copy, count in zip(ranks, copies, counts):
            if self._limits.no_stop:
                self._progress.say(f"{rank.label}: {no_stop.summary(copy)}")
            else:
                self._progress.say(
                    f"{rank.label}: {counted(count, 'thread')} copied, stopped for {rank.pause_ms:.1f} ms"
                )

    def _copies(
        self, ranks: Sequence[LiveRank], times: Mapping[int, Mapping[int, kernel_threads.ThreadTimes]], python: bool
    ) -> Sequence[ProcessCopy]:
        interpreters = {rank.pid: rank.interpreter for rank in ranks if isinstance(rank.interpreter, Interpreter)}

        waits = {pid: futexes.Wanted({tid: one.syscall for tid, one in seen.items()}) for pid, seen in times.items()}

        def during(pid: int) -> Held:
            memory, found = ProcessMemory(pid), interpreters.get(pid) if python else None
            pages = memory.read_many(waits[pid].ranges)
            return Held(freeze(found, memory.read) if isinstance(found, Interpreter) else None, waits[pid], pages)

        def all_at_once(pids: Sequence[int], marks: copy_of_process.Marks) -> Sequence[ProcessCopy]:
            found = copy_together(pids, self._budget, lambda pid: during(pid).plain(), marks)
            held = (one.during and Held.of(one.during, interpreters.get(one.pid), waits[one.pid]) for one in found)
            return [replace(copy, during=one) for copy, one in zip(found, held)]

        def one_by_one(pids: Sequence[int], marks: copy_of_process.Marks) -> Sequence[ProcessCopy]:
            return copy_of_process.copy_processes(pids, self._budget, during, marks=marks)

        pids = [rank.pid for rank in ranks]
        if self._limits.no_stop:
            return no_stop.copies(pids, self._budget, during)
        known = {rank.pid: rank.asleep for rank in ranks if rank.asleep is not None}
        together = self._limits.together
        copies = copy_awake(pids, known, all_at_once if together else one_by_one, together)
        return [replace(copy, during=(copy.during,) if copy.during else ()) for copy in copies]

    # --- after it ---

    def _name_python(self, rank: LiveRank) -> None:
        assert rank.copy is not None
        if isinstance(rank.interpreter, Missing):
            if rank.interpreter.code is not Code.NOT_PYTHON:
                rank.note(f"no Python frames: {rank.interpreter.reason}")
            return
        tids = [thread.tid for thread in rank.copy.threads]
        for held in rank.copy.during:
            if held.python is not None:
                found = resolve_all(held.python, ProcessMemory(rank.pid).read, tids)
                rank.python = found if held.tids is None else no_stop.merge_python_stacks(rank.python, found, held.tids)
        if rank.python is None:
            rank.note("no Python frames: they were not read with the stacks")
            return
        for problem in rank.python.problems:
            rank.note(f"Python: {problem}")

    def _unwind(self, ranks: Sequence[LiveRank], gdb: str, folder: Path, begun: batch_runs.Begun) -> None:
        """Let gdb unwind and name the copies."""
        copies = [rank.copy for rank in ranks if rank.copy is not None]
        number = counted(len(ranks), "copy", "copies")
        self._progress.say(f"reading symbols and unwinding {number}; all ranks are running again")
        limits = self._limits
        say, jobs, meanwhile = self._progress.say, limits.jobs, self._meanwhile
        names = [rank.label for rank in ranks if rank.copy is not None]
        result = unwind(copies, gdb, folder, limits.frames, limits.deadline, say, (), jobs, begun, meanwhile, names)
        if result.failure is not None:
            if not any(rank.python for rank in ranks):
                raise result.failure
            self._problems.append(f"no native frames: {result.failure}")
            for rank in ranks:
                rank.cut = True
        self._problems += result.problems
        for rank, one in zip(ranks, result.ranks):
            rank.stacks = one.stacks if rank.copy is None else sleep_times.with_sleep_times(one.stacks, rank.copy)
            for problem in one.files:
                rank.note(problem)
            for problem in one.cut:
                rank.note(problem, cut=True)
            for problem in one.problems:
                rank.note(problem, cut=not one.stacks)
            if self._limits.no_stop:
                no_stop.complete(rank)
            elif rank.asleep is not None and rank.asleep.unstopped:
                rank.stacks = no_stop.without_unknown_registers(rank.stacks, rank.asleep.unstopped)

    def _do_without_gdb(self, ranks: Sequence[LiveRank]) -> None:
        """Python frames alone; of a rank that has none, what /proc says of its threads."""
        self._problems.append(f"no native frames: {_NO_GDB.text}; {_WITH_ONE}")
        for rank in ranks:
            threads = rank.python.threads if rank.python else {}
            rank.stacks = tuple(ThreadStack(id=str(tid), frames=(), lwp=tid) for tid in threads)
            rank.stacks += unreadable_ranks.helpers_of(rank.times, threads)
            if not threads:
                rank.stacks = unreadable_ranks.stacks_of(rank.times, kernel_threads.look(rank.pid))
                rank.refusal = rank.refusal or _NO_GDB
            rank.note(f"{len(rank.times) - len(threads)} threads without Python frames: {_NO_GDB.text}", cut=True)

    @staticmethod
    def _find_communicators(ranks: Sequence[LiveRank]) -> None:
        searches = communicators.find([(rank.copy, rank.stacks) for rank in ranks if rank.copy is not None])
        for rank, search in zip(ranks, searches):
            rank.communicators = search

    def _confirm(self, ranks: Sequence[LiveRank], closed: Sequence[LiveRank]) -> None:
        """A second copy, and what changed since the first one. `closed`: only looked at by others, a second time."""
        first_at = min([rank.copied_at for rank in ranks] or [self._began])
        until = max([rank.copied_at for rank in ranks] or [self._began]) + self._limits.confirm
        asleep_for = sleep_times.until_awake({rank.pid: rank.stacks for rank in ranks})
        time.sleep(max(0.0, until - time.monotonic(), asleep_for))
        again_at = time.monotonic()
        later = {rank.pid: kernel_threads.look(rank.pid) for rank in ranks}
        pids = [rank.pid for rank in self._ranks]
        for rank, copy in zip(ranks, self._copies(ranks, later, python=False)):
            assert rank.copy is not None
            rank.second = copy
            rank.pause_ms = max(rank.pause_ms or 0.0, copy.felt_ms or 0.0)
            rank.times = kernel_threads.with_lasting_stops(rank.times, later[rank.pid])
            rank.stacks = second_copy.compare(rank.stacks, rank.copy, copy, rank.times, later[rank.pid])
            cpu = kernel_threads.processor_use_between(rank.times, later[rank.pid])
            rank.stacks = tuple(replace(stack, cpu=cpu.get(stack.lwp or 0)) for stack in rank.stacks)
            if copy.state == ReadState.LOST:
                rank.note(f"ended after the first copy: {' '.join(copy.problems)}")
            if rank.communicators is not None:
                rank.communicators.again()
        if self.census is not None:
            self._report_activity(self.census, counters.take(pids))
        self._apart = again_at - first_at
        self._progress.say(f"compared with a second {'copy' if ranks else 'look'} {self._apart:.1f} s later")

    def _check_released(self, rank: LiveRank, since: release_check.Marks, found: RankSnapshot) -> RankSnapshot:
        """The last thing we do for a rank: see that nobody traces it and that it lives as it did before."""
        sign = release_check.sign_of(rank.pid, rank.before, since)
        problems = found.problems
        if sign.trouble and not (sign.word == "traced" and rank.traced):
            self._progress.warn(f"{rank.label}: {sign.trouble}")
            problems = (sign.trouble, *problems)
        return replace(found, after=sign.word, problems=problems)

    def _snapshot(self, taken_at: float, processes: Sequence[RankSnapshot]) -> JobSnapshot:
        ranks = {process.rank for process in processes}
        return JobSnapshot(
            processes=tuple(processes),
            taken_at=taken_at,
            engine=next((process.engine for process in processes if process.engine), self._job.engine),
            world_size=self._job.world_size
            or max((process.world_size or 0 for process in processes), default=0)
            or None,
            absent=tuple(number for number in self._job.absent if number not in ranks),
            problems=tuple(self._problems) + self._job.notes,
            apart=self._apart,
            witnesses=self._witnesses,
        )
