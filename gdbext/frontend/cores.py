"""Looks at core files: copies of processes that are gone, on the road of the live look."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.engine import engine_of
from gdbext.analysis.interleave import interleave_all
from gdbext.capture import futexes, locks, surroundings
from gdbext.capture.core_copy import copy_core
from gdbext.capture.core_file import CoreFile
from gdbext.capture.core_objects import CoreObjects
from gdbext.capture.libraries import words_of
from gdbext.capture.nccl_library import layouts_of
from gdbext.capture.nccl_scan import in_core
from gdbext.capture.nccl_search import Search
from gdbext.capture.stop import ProcessCopy
from gdbext.commands.cores import Cores, OpenCore, crash, marked, open_cores, python_of, without_files
from gdbext.frontend import gdbrun
from gdbext.frontend.communicators import SCAN, layout_of
from gdbext.frontend.request import Dump
from gdbext.frontend.terminal import Progress, private_folder
from gdbext.frontend.unwinding import unwind
from gdbext.knowledge.libraries import TELLING
from gdbext.model.errors import NothingFound
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.locks import LockWait
from gdbext.model.python import PythonStacks
from gdbext.model.stack import ThreadStack


@dataclass
class _Rank:
    """One core on the way to a snapshot."""

    source: OpenCore
    copy: ProcessCopy
    problems: List[str] = field(default_factory=list)
    stacks: Tuple[ThreadStack, ...] = ()
    python: Optional[PythonStacks] = None
    locks: Tuple[LockWait, ...] = ()
    communicators: Optional[Search] = None
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
    gdb = gdbrun.find_gdb(limits.gdb)
    cores = open_cores(names, limits.sysroot, limits.exe)
    try:
        return _look(cores, gdb, limits, progress)
    finally:
        cores.close()


def _look(cores: Cores, gdb: str, limits: CoreLimits, progress: Progress) -> JobSnapshot:
    ranks = [_prepared(one) for one in cores.opened]
    readable = [rank for rank in ranks if rank.copy.state != "lost"]
    if not readable:
        reasons = [why for _, why in cores.unread]
        reasons += [f"{rank.source.path}: {'; '.join(rank.problems)}" for rank in ranks]
        raise NothingFound("no core could be read: " + "; ".join(reasons))
    with private_folder() as folder:
        problems = _unwind(readable, gdb, folder, limits, progress)
    for rank in readable:
        _complete(rank)
    processes = [_snapshot(index, rank) for index, rank in enumerate(ranks)]
    processes += [_unread(len(ranks) + index, path, why) for index, (path, why) in enumerate(cores.unread)]
    engines = {process.engine for process in processes if process.engine}
    return JobSnapshot(
        tuple(processes),
        max((os.stat(rank.source.path).st_mtime for rank in ranks), default=None),
        engines.pop() if len(engines) == 1 else cores.job.engine,
        cores.job.world_size,
        (),
        (*problems, *cores.job.notes),
    )


def _prepared(one: OpenCore) -> _Rank:
    """Registers, stacks and Python's frames; what is missing is noted."""
    rank = _Rank(one, copy_core(one.core, one.objects, one.block))
    for problem in rank.copy.problems:
        rank.note(problem, cut=True)
    if rank.copy.state != "lost":
        rank.python, problems = python_of(one, [thread.tid for thread in rank.copy.threads])
        for problem in problems:
            rank.note(problem)
    return rank


def _unwind(ranks: Sequence[_Rank], gdb: str, folder: Path, limits: CoreLimits, progress: Progress) -> Tuple[str, ...]:
    """Let gdb unwind and name the copies; returns what is wrong with all of them."""
    progress.say(f"reading symbols and unwinding {len(ranks)} core files")
    copies, dumps = [rank.copy for rank in ranks], [_dump(rank.source) for rank in ranks]
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


def _dump(one: OpenCore) -> Dump:
    return Dump(one.objects, os.path.abspath(one.path))


def _complete(rank: _Rank) -> None:
    """Python's frames among the native ones, the thread that crashed, the locks."""
    core = rank.source.core
    crashed, text = crash(core.notes)
    if text and crashed is None:
        rank.note(text)
    rank.stacks = marked(interleave_all(rank.stacks, rank.python.threads if rank.python else {}), crashed, text)
    registers = {thread.tid: thread.registers for thread in rank.copy.threads}
    calls: Dict[int, Optional[Sequence[int]]] = {tid: futexes.syscall_of(words) for tid, words in registers.items()}
    ids = futexes.thread_ids(registers, core.read_many)
    rank.communicators = _communicators(rank.copy, core, rank.source.objects, rank.stacks)
    around = surroundings.Surroundings(
        ids.lwps, ids.words, complete=len(ids.lwps) == len(registers), place=surroundings.place_in(rank.copy.maps)
    )
    rank.locks = locks.resolve(futexes.freeze(calls, core.read_many), rank.stacks, around)


def _snapshot(index: int, rank: _Rank) -> RankSnapshot:
    process = rank.source.process
    mapped = dict.fromkeys(mapping.file for mapping in rank.copy.maps if mapping.is_file)
    whole = bool(rank.stacks) and not rank.cut
    return RankSnapshot(
        index,
        rank.stacks,
        process.pid,
        process.rank,
        process.local_rank,
        process.world_size,
        None,  # a core does not say on which host it was
        engine_of(rank.stacks, process.engine),
        process.title,
        process.device,
        # Not "lost" without stacks: that would mean a process that is dead.
        "ok" if whole else "partial",
        None,
        tuple(rank.problems),
        None,
        rank.source.environment,
        tuple(path for path in mapped if TELLING.search(path)),
        rank.python.version if rank.python else None,
        source="core",
        communicators=rank.communicators.found if rank.communicators else (),
        communicator_notes=tuple(rank.communicators.notes) if rank.communicators else (),
        locks=rank.locks,
    )


def _unread(index: int, path: str, why: str) -> RankSnapshot:
    """A file that could not be read is not a process that is dead."""
    return RankSnapshot(index, (), title=path, state="partial", problems=(why,), source="core")


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
