"""What this host says about a look at its ranks: which jobs run, whether they can be attached to, room for copies."""

from __future__ import annotations

import os
import shutil
from typing import Callable, Collection, Iterator, Sequence

from gdbext.discovery.preflight_checks.attach_permission import attach_problems, of_several
from gdbext.discovery.preflight_checks.pod_lacks import pod_points
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.listing import describe
from gdbext.model.checkup import Point
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job
from gdbext.model.text.ranges import ranks

_ROOM = 1 << 30
"""Bytes. Stacks of 8 ranks of 100 threads take 20 to 60 MiB as copies; with many threads ten times that."""


def host_points(
    proc: ProcFS, jobs: Sequence[Job], place: Callable[[], str], held: Collection[int] = ()
) -> Iterator[Point]:
    """Nothing is stopped or changed. `place()` is the folder that copies go to; it raises `GdbextError`. `held`: pids
    that this debugger is attached to."""
    if not jobs:
        yield Point("job", "warning", "no rank process of a known engine runs here", "name one: gdbext diagnose PID")
        for note in getattr(jobs, "notes", ()):
            yield Point("job", "warning", note)
    for job in jobs:
        yield Point("job", "ok", describe(job))
        for note in job.notes:
            yield Point("job", "warning", note)
        if job.absent:
            verb = "has" if len(job.absent) == 1 else "have"
            yield Point("job", "warning", f"{ranks(job.absent)} {verb} no process on this host")
        yield from _attaching(proc, job, held)
    yield from pod_points(proc, bool(jobs))
    yield _room(place)


def _attaching(proc: ProcFS, job: Job, held: Collection[int]) -> Iterator[Point]:
    free = [rank.pid for rank in job.ranks if rank.pid not in held]
    found = attach_problems(proc, free)
    if len(free) < len(job.ranks):
        yield Point("attach", "ok", f"this gdb is attached to {len(job.ranks) - len(free)} of {len(job.ranks)} ranks")
    if free and not any(problem.blocking for problem, _ in found):
        others = "of them" if len(free) == len(job.ranks) else "others"
        yield Point("attach", "ok", f"the kernel lets us attach to all {len(free)} {others}")
    for problem, pids in found:
        state = "hindrance" if problem.blocking else "warning"
        yield Point("attach", state, problem.text + of_several(pids), problem.remedy)


def _room(place: Callable[[], str]) -> Point:
    try:
        folder = place()
        free = shutil.disk_usage(folder).free
    except GdbextError as error:
        return Point("copies", "hindrance", str(error.args[0]), error.hint)
    except OSError as error:
        return Point("copies", "hindrance", f"no room for copies: {error.strerror}", "set TMPDIR to a folder with room")
    room = f"{free / (1 << 30):,.1f} GiB" if free >= _ROOM else f"{free >> 20} MiB"
    text = f"{room} free in {folder}, where stacks are copied to"
    if not os.access(folder, os.W_OK):
        return Point("copies", "hindrance", f"{folder} is not writable", "set TMPDIR to a folder with room")
    return Point("copies", "ok", text) if free >= _ROOM else Point("copies", "warning", text, "TMPDIR names another")
