"""Core files as a job: opened, their files found, their ranks told. For the shell and for gdb alike."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
from dataclasses import dataclass, field, replace
from typing import List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.cores.core_file import CoreFile, open_core
from gdbext.capture.cores.core_notes import Notes
from gdbext.capture.cores.core_objects import CoreObjects
from gdbext.capture.cores.core_process import StartBlock, arguments_of, environ_of, start_block
from gdbext.capture.python.python_frames import Frozen, Limits, freeze
from gdbext.capture.python.runtime import find_interpreter
from gdbext.capture.python.thread_facts import resolve_all
from gdbext.capture.symbols.environ import recorded
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.of_cores import Dumped, DumpedProcesses
from gdbext.discovery.ranks.selectors import Selector
from gdbext.knowledge.runtimes.signals import FATAL
from gdbext.model.codes import Code
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.python import PythonStacks
from gdbext.model.stack import ThreadStack
from gdbext.model.text.ranges import ranges_text

NEXT = "--sysroot DIR (files of that machine), --exe FILE (its program), or copies beside the core bring them"
_SECONDS = 20.0  # for Python frames: nobody stands still for it
_MOST_NAMED = 3


@dataclass
class OpenCore:
    """One core file that could be opened."""

    core: CoreFile
    objects: CoreObjects
    block: Optional[StartBlock]
    process: RankProcess
    environment: Mapping[str, str] = field(default_factory=dict)  # known variables only

    @property
    def path(self) -> str:
        return self.core.path


@dataclass
class Cores:
    """All of them, and the files that could not be opened: path and why."""

    opened: List[OpenCore]
    unread: List[Tuple[str, str]]
    job: Job

    def close(self) -> None:
        for one in self.opened:
            one.core.close()


def open_cores(paths: Sequence[str], sysroot: Optional[str] = None, program: Optional[str] = None) -> Cores:
    """Open the files and say which rank each is. A file that cannot be read does not hinder the others."""
    with contextlib.ExitStack() as stack:
        opened: List[OpenCore] = []
        unread: List[Tuple[str, str]] = []
        dumped: List[Dumped] = []
        for path in dict.fromkeys(paths):
            try:
                core = stack.enter_context(open_core(path))
            except GdbextError as error:
                unread.append((path, str(error)))
                continue
            objects = CoreObjects(core, sysroot, program)
            block = start_block(core)
            one = _dumped(core, objects, block)
            dumped.append(one)
            kept = recorded(one.environ)
            opened.append(OpenCore(core, objects, block, RankProcess(pid=one.pid, role="rank"), kept))
        job = _job(opened, dumped)
        stack.pop_all()  # everything worked: they stay open
    return Cores(opened, unread, job)


def matching(patterns: Sequence[str]) -> Tuple[str, ...]:
    """The files that names with `~` and `*` mean, as a shell would; a name that fits nothing stays as it is."""
    found: List[str] = []
    for pattern in map(os.path.expanduser, patterns):
        found += [pattern] if os.path.lexists(pattern) else sorted(glob.glob(pattern)) or [pattern]
    return tuple(found)


def _dumped(core: CoreFile, objects: CoreObjects, block: Optional[StartBlock]) -> Dumped:
    notes = core.notes
    return Dumped(
        pid=notes.pid or 0,
        arguments=arguments_of(core, block),
        command=notes.command,
        parent=notes.parent,
        group=notes.group,
        threads=notes.count,
        environ=environ_of(core, objects, block),
        files=tuple(dict.fromkeys(mapping.file for mapping in notes.files)),
        program=objects.program,
    )


def _job(opened: Sequence[OpenCore], dumped: Sequence[Dumped]) -> Job:
    """The ranks, by title, variables and arguments as for running processes; the order of the cores is kept."""
    proc = DumpedProcesses(dumped)
    jobs = find_jobs(proc, Selector(tuple(proc.keys))) if dumped else ()
    found = {rank.pid: rank for job in jobs for rank in (*job.ranks, *job.others)}
    for key, one in zip(proc.keys, opened):
        if key in found:
            one.process = replace(found[key], pid=one.process.pid, host=None, state=None, start_time=None)
    sizes = {job.world_size for job in jobs if job.world_size}
    world = sizes.pop() if len(sizes) == 1 else None
    engines = {job.engine for job in jobs}
    engine = engines.pop() if len(engines) == 1 else None
    notes = _not_given(opened, world)
    # Of a rank without a core nothing is known: it is not called absent.
    return Job(
        key="core files",
        engine=engine,
        ranks=tuple(one.process for one in opened),
        others=(),
        world_size=world,
        absent=(),
        notes=notes,
    )


def _not_given(opened: Sequence[OpenCore], world: Optional[int]) -> Tuple[str, ...]:
    present = {one.process.rank for one in opened}
    missing = [rank for rank in range(min(world or 0, 1 << 16)) if rank not in present]
    if not missing or len(missing) == world:
        return ()
    return (
        f"no core of rank{'s' if len(missing) > 1 else ''} {ranges_text(missing)} was given: nothing is known of them",
    )


def crash(notes: Notes) -> Tuple[Optional[int], str]:
    """The thread that crashed, and what killed it; (None, what is to be said of the signal, if anything)."""
    if not notes.threads:
        return None, ""
    first = notes.threads[0]  # the kernel and gcore write the one that got the signal first
    number = notes.signal.number if notes.signal is not None and notes.signal.number in FATAL else first.signal
    if number not in FATAL:
        return None, ""
    name = signal.Signals(number).name
    sent = notes.signal if notes.signal is not None and notes.signal.number == number else None
    if sent is not None and sent.sender is not None and sent.sender not in (notes.pid, 0):
        by = f"{name} was sent by process {sent.sender}"
        return None, f"{by}: it was told to dump core; its stacks show where it was then"
    where = f" at address {sent.address:#x}" if sent is not None and sent.address is not None else ""
    return first.tid, f"terminated by {name}, {FATAL[number]}{where}"


def mark_crashed_thread(stacks: Sequence[ThreadStack], crashed: Optional[int], text: str) -> Tuple[ThreadStack, ...]:
    """The stacks with what killed the process at the thread that it happened to."""
    if crashed is None:
        return tuple(stacks)
    line = f"thread {crashed} {text}"
    return tuple(replace(one, problems=(line, *one.problems)) if one.lwp == crashed else one for one in stacks)


def python_of(one: OpenCore, tids: Sequence[int]) -> Tuple[Optional[PythonStacks], Tuple[str, ...]]:
    """What is read of Python's threads, by the memory of the core, and why there is nothing or not all."""
    program = one.objects.opens(one.objects.program) if one.objects.program else None
    found = find_interpreter(one.objects.opened_maps(), one.core.read, program)
    if isinstance(found, Missing):
        return None, () if found.code is Code.NOT_PYTHON else (f"no Python frames: {found.reason}",)
    frozen: Frozen = freeze(found, one.core.read, Limits(seconds=_SECONDS))
    stacks = resolve_all(frozen, one.core.read, tids)
    return stacks, tuple(f"Python: {problem}" for problem in stacks.problems)


def without_files(problems: Sequence[str], unchecked: Sequence[str]) -> Tuple[str, ...]:
    """What is to be said of files on the stacks that are not here or are another build, and of unproven ones."""
    lines = []
    if problems:
        more = f"; and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
        count = f"{len(problems)} files" if len(problems) > 1 else "a file"
        lines.append(f"no names for frames of {count}: {'; '.join(problems[:_MOST_NAMED])}{more}; {NEXT}")
    if unchecked:
        more = f" and {len(unchecked) - _MOST_NAMED} more" if len(unchecked) > _MOST_NAMED else ""
        names = ", ".join(unchecked[:_MOST_NAMED])
        lines.append(
            f"taken by path and size alone, because their build-ids are not in the core: {names}{more}; "
            "`echo 0x33 > /proc/PID/coredump_filter` keeps them in the next dump"
        )
    return tuple(lines)
