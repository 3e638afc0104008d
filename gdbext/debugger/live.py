"""A snapshot of the ranks that gdb holds: native stacks by gdb, Python frames by their memory, the rest from /proc."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import dataclass, replace
from typing import List, Mapping, Optional, Sequence, Tuple

import gdb

from gdbext import __version__
from gdbext.analysis.engine import engine_of
from gdbext.analysis.interleave import interleave
from gdbext.capture import threads
from gdbext.capture.environ import read_environ
from gdbext.capture.memory import ProcessMemory
from gdbext.capture.python_frames import freeze, resolve
from gdbext.capture.python_runtime import interpreter_of
from gdbext.commands.cores import OpenCore
from gdbext.debugger import communicators, compat, cores, settings
from gdbext.debugger.collect import NOT_WALKED, Budget, Captures, Walker, by_number, modules_of
from gdbext.debugger.waits import lock_waits
from gdbext.discovery.peers import waits_for
from gdbext.discovery.procfs import ProcFS
from gdbext.knowledge.environment import RECORDED
from gdbext.knowledge.libraries import TELLING
from gdbext.model.attached import AttachedRank
from gdbext.model.errors import NothingFound
from gdbext.model.job import Job, JobSnapshot, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.python import PythonStacks
from gdbext.model.stack import ThreadStack
from gdbext.opener import files


@dataclass(frozen=True)
class Subject:
    """One inferior to look at, and what was seen of its threads right before it was stopped."""

    inferior: gdb.Inferior
    rank: AttachedRank
    since: float  # CLOCK_MONOTONIC
    times: Mapping[int, threads.ThreadTimes]
    cpu: Mapping[int, float]
    core: Optional[OpenCore] = None  # a core file that we opened


def snapshot(subjects: Sequence[Subject], jobs: Sequence[Job], scan: bool = False) -> JobSnapshot:
    """Walk all of them, each within the budget of `set llm`; with `scan` search their memory for communicators too.

    Raises NothingFound when no stack could be read.
    """
    taken_at = _written(subjects) or time.time()
    captures = Captures()
    processes = tuple(_look(index, subject, captures, scan) for index, subject in enumerate(subjects))
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
    )


def _written(subjects: Sequence[Subject]) -> Optional[float]:
    """When the last of the core files was written; None where a process is among them, or nobody can say."""
    if not subjects or any(subject.rank.state != "core file" for subject in subjects):
        return None
    times = []
    for subject in subjects:
        path = subject.core.path if subject.core is not None else compat.core_path(subject.inferior)
        with contextlib.suppress(OSError):
            times.append(files.status(path or "").st_mtime)
    return max(times, default=None)


def _look(index: int, subject: Subject, captures: Captures, scan: bool) -> RankSnapshot:
    process = subject.rank.process
    is_core = subject.rank.state == "core file"
    budget = Budget(settings.value("max-pause"), settings.value("frames"), settings.value("threads"))
    modules = modules_of(subject.inferior, is_core)
    walk = Walker(modules, budget, captures, by_number).walk(subject.inferior)
    problems = list(walk.problems)
    stacks = walk.threads
    python: Optional[PythonStacks] = None
    if subject.core is not None:
        python = cores.python(subject.core, stacks, problems)
        stacks = cores.with_crash([_complete(stack, subject, python) for stack in stacks], subject.core)
        problems += cores.told_to_dump(subject.core)
    elif not is_core:
        python = _python(process.pid, [stack.lwp for stack in stacks if stack.lwp], problems)
        stacks = tuple(_complete(stack, subject, python) for stack in stacks)
    found = communicators.find(subject.inferior, stacks, is_core, scan)
    complete = all(stack.frames for stack in stacks) and not walk.problems
    return RankSnapshot(
        index=index,
        threads=stacks,
        pid=process.pid,
        rank=process.rank,
        local_rank=process.local_rank,
        world_size=process.world_size,
        host=process.host or (None if is_core else socket.gethostname()),
        engine=engine_of(stacks, process.engine),
        title=process.title,
        device=process.device,
        state="lost" if not any(stack.frames for stack in stacks) else "ok" if complete else "partial",
        alive=None if is_core else os.path.exists(f"/proc/{process.pid}"),
        problems=tuple(problems),
        pause_ms=None if is_core else (time.monotonic() - subject.since) * 1000,
        environment=subject.core.environment if subject.core else {} if is_core else _environment(process.pid),
        libraries=tuple(path for path in modules.paths if TELLING.search(path)),
        python=python.version if python else None,
        source="core" if is_core else "held",
        communicators=found.found if found else (),
        communicator_notes=tuple(found.notes) if found else (),
        locks=lock_waits(subject.inferior, stacks, is_core),
        handlers=None if is_core else ProcFS().handlers(process.pid),
        peers=() if is_core else waits_for(ProcFS(), process.pid, {one.lwp: one.syscall for one in stacks if one.lwp}),
    )


@dataclass(frozen=True)
class ThreadLook:
    """One thread alone: `stack` with the Python frames in it, `native` without."""

    stack: ThreadStack
    native: ThreadStack
    problems: Tuple[str, ...]


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
        python = cores.python(core, natives, problems)
    elif not is_core:
        # All of them: which Python thread is which is told by what is left over as well.
        python = _python(inferior.pid, [thread.ptid[1] for thread in inferior.threads()], problems)
    looks = []
    for native in natives:
        found = python.threads.get(native.lwp or 0) if python else None
        whole = interleave(native, found) if found else native
        looks.append(ThreadLook(whole, native, (*native.problems, *problems)))
    return tuple(looks)


def _environment(pid: int) -> Mapping[str, str]:
    environ = read_environ(pid)
    return {} if isinstance(environ, Missing) else {name: environ[name] for name in sorted(RECORDED) if name in environ}


def _python(pid: int, tids: List[int], problems: List[str]) -> Optional[PythonStacks]:
    """gdb holds the process; reading its memory needs permission only."""
    read = ProcessMemory(pid).read
    found = interpreter_of(pid)
    if isinstance(found, Missing):
        if found.reason != "not a Python process":
            problems.append(f"no Python frames: {found.reason}")
        return None
    stacks = resolve(freeze(found, read), read, tids)
    problems += [f"Python: {problem}" for problem in stacks.problems]
    return stacks


def _complete(stack: ThreadStack, subject: Subject, python: Optional[PythonStacks]) -> ThreadStack:
    """Add what /proc said before the stop, and the Python frames."""
    times = subject.times.get(stack.lwp or 0)
    if times is not None:
        stack = replace(
            stack,
            name=times.name or stack.name,
            state=times.state,
            cpu=subject.cpu.get(times.tid),
            wchan=times.wchan,
            syscall=times.syscall,
        )
    found = python.threads.get(stack.lwp or 0) if python else None
    walked = not (stack.truncated or "").startswith(NOT_WALKED)
    return interleave(stack, found) if found and walked else stack
