"""Several jobs where one is meant: how each is told from the others, and the line that chooses it."""

from __future__ import annotations

import os
import pwd
from typing import List, Optional, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.job import Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.text.ranges import ranges_text, ranks

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def describe(job: Job) -> str:
    """One line: engine, what holds the job together, ranks and pids."""
    numbers = [rank.rank for rank in job.ranks if rank.rank is not None]
    said = ranks(numbers) if numbers else "ranks unknown"
    pids = ranges_text(rank.pid for rank in job.ranks)
    return f"{job.engine or 'unknown engine'}, {job.key}: {said}, {'pid' if len(job.ranks) == 1 else 'pids'} {pids}"


def listing(jobs: Sequence[Job], proc: ProcFS, command: str) -> List[str]:
    """Three lines a job: what it is, who started it when by which command, and what to type for it."""
    lines: List[str] = []
    for job in jobs:
        others = [one for one in jobs if one is not job]
        lines += [f"  {describe(job)}", f"    {job_summary(job, others, proc)}", f"    {choice(job, command)}"]
    return lines


def job_summary(job: Job, others: Sequence[Job], proc: ProcFS) -> str:
    """`started 3 h ago by alice: python serve.py --tp 4`."""
    first = job.ranks[0]
    age, user = _age(job, proc), _user(first.pid, proc)
    when = f"started {age} ago" if age else "started"
    return f"{when}{f' by {user}' if user else ''}: {_command(job, others)}"


def choice(job: Job, command: str) -> str:
    """What to type for this job alone."""
    return f"{command} {job.ranks[0].pid}"


def _age(job: Job, proc: ProcFS) -> str:
    """Since its oldest rank began; "" where /proc does not tell."""
    ticks = [rank.start_time for rank in job.ranks if rank.start_time is not None]
    uptime = proc.text("uptime")
    if not ticks or isinstance(uptime, Missing):
        return ""
    try:
        seconds = int(float(uptime.split()[0]) - min(ticks) / os.sysconf("SC_CLK_TCK"))
    except (ValueError, IndexError):
        return ""
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{max(seconds, 0) // size} {unit}"


def _user(pid: int, proc: ProcFS) -> Optional[str]:
    owner = proc.owner(pid)
    if isinstance(owner, Missing):
        return None
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return f"user {owner}"


def _command(job: Job, others: Sequence[Job]) -> str:
    """The launcher's or front end's where it is of this job alone; else the rank's."""
    shared = {one.pid for other in others for one in other.others}
    own: List[RankProcess] = [one for one in job.others if one.pid not in shared and one.pid < job.ranks[0].pid]
    return (own[0] if own else job.ranks[0]).title
