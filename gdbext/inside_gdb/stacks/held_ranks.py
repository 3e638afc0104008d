"""A snapshot of the ranks that gdb holds: native stacks by gdb, Python frames by their memory, the rest from /proc."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass, replace
from typing import FrozenSet, Iterable, List, Mapping, Optional, Sequence, Tuple

import gdb

from gdbext import __version__
from gdbext.analysis.stacks.interleave import interleave
from gdbext.capture.memory.process_memory import ProcessMemory
from gdbext.capture.nccl.pointer_search import search_result
from gdbext.capture.python.python_frames import freeze
from gdbext.capture.python.runtime import interpreter_of
from gdbext.capture.python.thread_facts import resolve_all
from gdbext.capture.symbols.environ import read_environ, recorded
from gdbext.capture.without_stop.before_stop import BeforeStop
from gdbext.capture.without_stop.polled_file import calls_for_files
from gdbext.capture.without_stop.resumed_calls import as_begun
from gdbext.capture.without_stop.sleep_times import sleep_left
from gdbext.discovery.locks_pipes_sockets.locks_tried_again import tried_locks
from gdbext.discovery.locks_pipes_sockets.peers import waits_for
from gdbext.discovery.proc.loops_in_text import loops_in_text
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat, settings
from gdbext.inside_gdb.stacks import communicators, opened_cores
from gdbext.inside_gdb.stacks.lock_waits import lock_waits
from gdbext.inside_gdb.stacks.stack_walk import Budget, Captures, Walker, by_number, modules_of
from gdbext.model.activity import Activity
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import Code, Given, RankState, ReadState, StackEnd
from gdbext.model.communicator import Searched
from gdbext.model.errors import NothingFound
from gdbext.model.job import Job, JobSnapshot
from gdbext.model.locks import LockWait, Peer
from gdbext.model.missing import Missing
from gdbext.model.python import PythonStacks, PythonThread
from gdbext.model.stack import LoopInText, ThreadStack
from gdbext.safe_open import files
from gdbext.snapshot_builder.builder import ProcessReading, Stacks, rank_snapshot
from gdbext.snapshot_builder.core_job import OpenCore


@dataclass(frozen=True)
class Subject:
    """One inferior to look at, and what was seen of its threads right before it was stopped."""

    inferior: gdb.Inferior
    rank: AttachedRank
    since: float  # CLOCK_MONOTONIC
    before: BeforeStop
    core: Optional[OpenCore] = None  # a core file that we opened


def snapshot(subjects: Sequence[Subject], jobs: Sequence[Job], scan: bool = False) -> JobSnapshot:
    """Walk all of them, each within the budget of `set llm`; with `scan` search their memory for communicators too.

    Raises NothingFound when no stack could be read.
    """
    taken_at = _written(subjects) or time.time()
    captures = Captures()
    readings = (_HeldReading(subject, captures, scan) for subject in subjects)
    processes = tuple(rank_snapshot(index, reading) for index, reading in enumerate(readings))
    if not any(thread.frames for process in processes for thread in process.threads):
        raise NothingFound("no stack could be read", "; ".join(text for one in processes for text in one.problems))
    present = {process.rank for process in processes}
    engines = {process.engine for process in processes}
    return JobSnapshot(
        processes=processes,
        taken_at=taken_at,
        engine=engines.pop() if len(engines) == 1 else None,
        world_size=max((process.world_size or 0 for process in processes), default=0) or None,
        absent=tuple(rank for job in jobs for rank in job.absent if rank not in present),
        problems=tuple(note for job in jobs for note in job.notes),
        tool=f"gdbext {__version__}",
        apart=_watched_for(subjects),
    )


def _watched_for(subjects: Sequence[Subject]) -> Optional[float]:
    """For how many seconds all of them were watched before the stop; None where one was not."""
    found = [subject.before.seconds for subject in subjects]
    known = [seconds for seconds in found if seconds is not None]
    return min(known) if known and len(known) == len(found) else None


def _written(subjects: Sequence[Subject]) -> Optional[float]:
    """When the last of the core files was written; None where a process is among them, or nobody can say."""
    if not subjects or any(subject.rank.state != RankState.CORE for subject in subjects):
        return None
    times = []
    for subject in subjects:
        path = subject.core.path if subject.core is not None else compat.core_path(subject.inferior)
        with contextlib.suppress(OSError):
            times.append(files.status(path or "").st_mtime)
    return max(times, default=None)


class _HeldReading(ProcessReading):
    """What gdb tells of one inferior, within the budget of `set llm`."""

    def __init__(self, subject: Subject, captures: Captures, scan: bool) -> None:
        super().__init__(subject.rank.process)
        self._subject, self._captures, self._scan = subject, captures, scan
        self._is_core = subject.rank.state == RankState.CORE
        self.source = Given.CORE if self._is_core else Given.HELD
        self._modules = modules_of(subject.inferior, self._is_core)
        self._problems: List[str] = []
        self._complete = False

    def native_stacks(self) -> Stacks:
        budget = Budget(settings.value("max-pause"), settings.value("frames"), settings.value("threads"))
        walk = Walker(self._modules, budget, self._captures, by_number).walk(self._subject.inferior)
        self._problems += walk.problems
        self._complete = not walk.problems
        return tuple(_with_times(stack, self._subject) for stack in walk.threads)

    def python_stacks(self, stacks: Stacks) -> Optional[PythonStacks]:
        if self._subject.core is not None:
            return opened_cores.python(self._subject.core, stacks, self._problems)
        if self._is_core:
            return None
        return _python(self.process.pid, [stack.lwp for stack in stacks if stack.lwp], self._problems)

    def joined(self, stacks: Stacks, python: Optional[PythonStacks]) -> Stacks:
        """Threads that were not walked stay so: their Python frames alone would look like a whole stack."""
        threads = python.threads if python else {}
        whole = tuple(_with_python(stack, threads.get(stack.lwp or 0)) for stack in stacks)
        if self._subject.core is None:
            return whole
        self._problems += opened_cores.told_to_dump(self._subject.core)
        return opened_cores.with_crash(whole, self._subject.core)

    def communicators(self, stacks: Stacks) -> Searched:
        return search_result(communicators.find(self._subject.inferior, stacks, self._is_core, self._scan))

    def locks(self, stacks: Stacks) -> Tuple[LockWait, ...]:
        waits = lock_waits(self._subject.inferior, stacks, self._is_core)
        stood = frozenset(tid for tid, switches in self._subject.before.switches.items() if switches == 0)
        return tuple(replace(wait, still=True) if _has_lasted(wait, stood) else wait for wait in waits)

    def peers(self, stacks: Stacks) -> Tuple[Peer, ...]:
        if self._is_core:
            return ()
        proc, pid = ProcFS(), self.process.pid
        read = ProcessMemory(pid).read
        calls = {one.lwp: one.syscall for one in stacks if one.lwp and one.syscall}
        return (*waits_for(proc, pid, calls_for_files(calls, stacks, read)), *tried_locks(proc, pid, stacks))

    def handlers(self) -> Optional[Tuple[int, ...]]:
        return None if self._is_core else ProcFS().handlers(self.process.pid)

    def held_back(self) -> Tuple[int, ...]:
        return () if self._is_core else ProcFS().held_back(self.process.pid)

    def loops_in_text(self, stacks: Stacks, peers: Sequence[Peer]) -> Tuple[LoopInText, ...]:
        return () if self._is_core else loops_in_text(ProcFS(), self.process.pid, stacks, peers)

    def host(self) -> Optional[str]:
        return self.process.host or (None if self._is_core else socket.gethostname())

    def environment(self) -> Mapping[str, str]:
        if self._subject.core is not None:
            return self._subject.core.environment
        return {} if self._is_core else recorded(read_environ(self.process.pid))

    def mapped_files(self) -> Iterable[str]:
        return self._modules.paths

    def activity(self) -> Optional[Activity]:
        return self._subject.before.activity

    def pause_ms(self) -> Optional[float]:
        return None if self._is_core else (time.monotonic() - self._subject.since) * 1000

    def alive(self) -> Optional[bool]:
        return None if self._is_core else os.path.exists(f"/proc/{self.process.pid}")

    def state(self, stacks: Stacks) -> ReadState:
        if not any(stack.frames for stack in stacks):
            return ReadState.LOST
        return ReadState.OK if self._complete and all(stack.frames for stack in stacks) else ReadState.PARTIAL

    def problems(self) -> Tuple[str, ...]:
        return tuple(self._problems)


@dataclass(frozen=True)
class ThreadLook:
    """One thread alone: `stack` with the Python frames in it, `native` without."""

    stack: ThreadStack
    native: ThreadStack
    problems: Tuple[str, ...]
    python: Optional[PythonThread] = None


def one_thread(inferior: gdb.Inferior, thread: gdb.InferiorThread, is_core: bool) -> ThreadLook:
    """The stack of one thread, within the budget of `set llm`."""
    return some_threads(inferior, [thread], is_core)[0]


def some_threads(
    inferior: gdb.Inferior, chosen: Sequence[gdb.InferiorThread], is_core: bool, core: Optional[OpenCore] = None
) -> Tuple[ThreadLook, ...]:
    """The stacks of these threads of one inferior, together within the budget of `set llm`; in their order."""
    budget = Budget(settings.value("max-pause"), settings.value("frames"))
    walker = Walker(modules_of(inferior, is_core), budget, Captures(), by_number)
    natives = [walker.one(thread) for thread in chosen]
    python: Optional[PythonStacks] = None
    problems: List[str] = []
    if core is not None:
        python = opened_cores.python(core, natives, problems)
    elif not is_core:
        # All of them: which Python thread is which is told by what is left over as well.
        python = _python(inferior.pid, [thread.ptid[1] for thread in inferior.threads()], problems)
    looks = []
    for native in natives:
        found = python.threads.get(native.lwp or 0) if python else None
        whole = interleave(native, found) if found else native
        looks.append(ThreadLook(whole, native, (*native.problems, *problems), found))
    return tuple(looks)


def _python(pid: int, tids: List[int], problems: List[str]) -> Optional[PythonStacks]:
    """gdb holds the process; reading its memory needs permission only."""
    read = ProcessMemory(pid).read
    found = interpreter_of(pid)
    if isinstance(found, Missing):
        if found.code is not Code.NOT_PYTHON:
            problems.append(f"no Python frames: {found.reason}")
        return None
    stacks = resolve_all(freeze(found, read), read, tids)
    problems += [f"Python: {problem}" for problem in stacks.problems]
    return stacks


def _has_lasted(wait: LockWait, stood: FrozenSet[int]) -> bool:
    """Whether it was the same wait, with the same owner, for as long as the process was watched."""
    owner = wait.owner
    owned = isinstance(owner, Missing) or (wait.owner_process is None and owner in stood)
    return wait.thread in stood and owned


def _with_times(stack: ThreadStack, subject: Subject) -> ThreadStack:
    """Add what /proc said before the stop. Who got no processor while it was watched has stood where it is."""
    before, tid = subject.before, stack.lwp or 0
    times, switches = before.times.get(tid), before.switches.get(tid)
    if times is None:
        return stack
    syscall = as_begun(times.syscall, stack)
    return replace(
        stack,
        name=times.name or stack.name,
        state=times.state,
        cpu=before.cpu.get(tid),
        switches=switches,
        still=0 if switches == 0 else None,
        wchan=times.wchan,
        syscall=syscall,
        sleeps=sleep_left(syscall, ProcessMemory(subject.rank.process.pid).read),
    )


def _with_python(stack: ThreadStack, found: Optional[PythonThread]) -> ThreadStack:
    return interleave(stack, found) if found and stack.end is not StackEnd.NOT_WALKED else stack
