"""Looks at core files: copies of processes that are gone, on the road of the live look."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import ProcessCopy
from gdbext.capture.cores.core_copy import copy_core
from gdbext.capture.cores.core_file import CoreFile
from gdbext.capture.cores.core_objects import CoreObjects
from gdbext.capture.locks_in_memory import futexes, lock_context, mutex_owners
from gdbext.capture.nccl.library import layouts_of
from gdbext.capture.nccl.memory_scan import in_core
from gdbext.capture.nccl.pointer_search import Search, search_result
from gdbext.capture.symbols.mapped_libraries import words_of
from gdbext.collect.cleanup_on_signals import private_folder
from gdbext.collect.communicators import SCAN, layout_of
from gdbext.collect.gdb_runs import batch_runs
from gdbext.collect.gdb_runs.request import Dump
from gdbext.collect.gdb_runs.unwinding import unwind
from gdbext.collect.progress import Progress
from gdbext.model.codes import Given, ReadState
from gdbext.model.communicator import Searched
from gdbext.model.errors import NothingFound
from gdbext.model.job import JobSnapshot, RankProcess
from gdbext.model.locks import LockWait
from gdbext.model.python import PythonStacks
from gdbext.model.stack import ThreadStack
from gdbext.model.text.ranges import counted
from gdbext.snapshot_builder.builder import ProcessReading, Stacks, rank_snapshot
from gdbext.snapshot_builder.core_job import (
    Cores,
    OpenCore,
    crash,
    mark_crashed_thread,
    open_cores,
    python_of,
    without_files,
)


@dataclass
class _Rank:
    """One core on the way to a snapshot."""

    source: OpenCore
    copy: ProcessCopy
    problems: List[str] = field(default_factory=list)
    stacks: Tuple[ThreadStack, ...] = ()
    python: Optional[PythonStacks] = None
    cut: bool = False  # something that should be there could not be read

    def note(self, text: str, cut: bool = False) -> None:
        if text not in self.problems:
            self.problems.append(text)
        self.cut = self.cut or cut


@dataclass(frozen=True)
class CoreLimits:
    """Where the files are, and what the look may cost."""

    sysroot: Optional[str] = None
    exe: Optional[str] = None
    frames: int = 256  # per thread
    deadline: float = 120.0  # seconds gdb may take
    gdb: Optional[str] = None
    jobs: int = 0  # gdbs side by side; 0: as many as pay


def look(names: Sequence[str], limits: CoreLimits, progress: Progress) -> JobSnapshot:
    """The snapshot of the cores. Raises `NothingFound` when none of them could be read."""
    gdb = batch_runs.find_gdb(limits.gdb)
    cores = open_cores(names, limits.sysroot, limits.exe)
    try:
        return _look(cores, gdb, limits, progress)
    finally:
        cores.close()


def _look(cores: Cores, gdb: str, limits: CoreLimits, progress: Progress) -> JobSnapshot:
    ranks = [_prepared(one) for one in cores.opened]
    readable = [rank for rank in ranks if rank.copy.state != ReadState.LOST]
    if not readable:
        reasons = [why for _, why in cores.unread]
        reasons += [f"{rank.source.path}: {'; '.join(rank.problems)}" for rank in ranks]
        raise NothingFound("no core could be read: " + "; ".join(reasons))
    with private_folder() as folder:
        problems = _unwind(readable, gdb, folder, limits, progress)
    readings = [*map(_CoreReading, ranks), *(_Unread(path, why) for path, why in cores.unread)]
    processes = [rank_snapshot(index, reading) for index, reading in enumerate(readings)]
    engines = {process.engine for process in processes if process.engine}
    return JobSnapshot(
        processes=tuple(processes),
        taken_at=max((os.stat(rank.source.path).st_mtime for rank in ranks), default=None),
        engine=engines.pop() if len(engines) == 1 else cores.job.engine,
        world_size=cores.job.world_size,
        absent=(),
        problems=(*problems, *cores.job.notes),
    )


def _prepared(one: OpenCore) -> _Rank:
    """Registers, stacks and Python's frames; what is missing is noted."""
    rank = _Rank(source=one, copy=copy_core(one.core, one.objects, one.block))
    for problem in rank.copy.problems:
        rank.note(problem, cut=True)
    if rank.copy.state != ReadState.LOST:
        rank.python, problems = python_of(one, [thread.tid for thread in rank.copy.threads])
        for problem in problems:
            rank.note(problem)
    return rank


def _unwind(ranks: Sequence[_Rank], gdb: str, folder: Path, limits: CoreLimits, progress: Progress) -> Tuple[str, ...]:
    """Let gdb unwind and name the copies; returns what is wrong with all of them."""
    progress.say(f"reading symbols and unwinding {counted(len(ranks), 'core file')}")
    copies = [rank.copy for rank in ranks]
    dumps = [Dump(rank.source.objects, os.path.abspath(rank.source.path)) for rank in ranks]
    result = unwind(copies, gdb, folder, limits.frames, limits.deadline, progress.say, dumps, limits.jobs)
    if result.failure is not None:
        raise result.failure
    for rank, one in zip(ranks, result.ranks):
        rank.stacks = one.stacks
        for text in without_files(one.files, rank.source.objects.unchecked):
            rank.note(text, cut=True)
        for problem in one.problems:
            rank.note(problem, cut=not one.stacks)
    return result.problems


class _CoreReading(ProcessReading):
    """What a core file tells of its process. The host that it was on is not in it."""

    source = Given.CORE

    def __init__(self, rank: _Rank) -> None:
        super().__init__(rank.source.process)
        self._rank, self._core = rank, rank.source.core
        self._read = rank.copy.state != ReadState.LOST

    def native_stacks(self) -> Stacks:
        return self._rank.stacks

    def python_stacks(self, stacks: Stacks) -> Optional[PythonStacks]:
        return self._rank.python

    def joined(self, stacks: Stacks, python: Optional[PythonStacks]) -> Stacks:
        """With what killed the process at the thread that it happened to."""
        crashed, text = crash(self._core.notes)
        if text and crashed is None:
            self._rank.note(text)
        return mark_crashed_thread(super().joined(stacks, python), crashed, text)

    def communicators(self, stacks: Stacks) -> Searched:
        if not self._read:
            return Searched()
        return search_result(_communicators(self._rank.copy, self._core, self._rank.source.objects, stacks))

    def locks(self, stacks: Stacks) -> Tuple[LockWait, ...]:
        if not self._read:
            return ()
        registers = {thread.tid: thread.registers for thread in self._rank.copy.threads}
        calls: Dict[int, Optional[Sequence[int]]] = {tid: futexes.syscall_of(words) for tid, words in registers.items()}
        ids = futexes.thread_ids(registers, self._core.read_many)
        place = lock_context.place_in(self._rank.copy.maps)
        around = lock_context.Surroundings(ids.lwps, ids.words, len(ids.lwps) == len(registers), place)
        return mutex_owners.resolve(futexes.freeze(calls, self._core.read_many), stacks, around)

    def host(self) -> None:
        return None

    def environment(self) -> Mapping[str, str]:
        return self._rank.source.environment

    def mapped_files(self) -> Iterable[str]:
        return [mapping.file for mapping in self._rank.copy.maps if mapping.is_file]

    def state(self, stacks: Stacks) -> ReadState:
        # Not "lost" without stacks: that would mean a process that is dead.
        return ReadState.OK if stacks and not self._rank.cut else ReadState.PARTIAL

    def problems(self) -> Tuple[str, ...]:
        return tuple(self._rank.problems)


class _Unread(ProcessReading):
    """A file that could not be read is not a process that is dead."""

    source = Given.CORE

    def __init__(self, path: str, why: str) -> None:
        super().__init__(RankProcess(pid=0, role="rank", title=path))
        self._why = why

    def state(self, stacks: Stacks) -> ReadState:
        return ReadState.PARTIAL

    def problems(self) -> Tuple[str, ...]:
        return (self._why,)


def _communicators(copy: ProcessCopy, core: CoreFile, objects: CoreObjects, stacks: Sequence[ThreadStack]) -> Search:
    """By what the stacks lead to, else by a scan of the whole core."""
    memory = objects.maps
    search = Search(memory, layouts_of(memory, objects.opens, layout_of), core.read, core.read_many, in_core)
    if search.possible:
        search.from_frames(stacks)
        search.from_words(words_of(copy))
        if not search.hashes:
            search.by_scan(SCAN)
    return search


__all__ = ["CoreLimits", "look"]
