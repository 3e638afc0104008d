"""The engine's processes beside the ranks that gdb holds: front ends, engine cores, ... A server can hang in them while
its ranks wait for work."""

from __future__ import annotations

from dataclasses import replace
from typing import AbstractSet, Callable, List, Sequence

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.inside_gdb.stacks import other_ranks
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import RankState
from gdbext.model.errors import GdbextError
from gdbext.model.job import JobSnapshot, RankProcess, RankSnapshot


def with_engine_processes(
    snapshot: JobSnapshot, ranks: Sequence[AttachedRank], say: Callable[[str], None]
) -> JobSnapshot:
    """The snapshot of the held ranks, with what the other processes do: `gdbext stacks` stops each of them for
    a moment. Where it cannot read them, the snapshot says why."""
    held = {rank.process.pid for rank in ranks if rank.state is RankState.STOPPED}
    beside = _processes_beside(held)
    if not beside:
        return snapshot
    names = ", ".join(f"{one.role} (pid {one.pid})" for one in beside)
    say(f"reading the engine's other processes too: {names}; each is stopped for a moment only")
    words = ("--not-ranks", "--quiet", *(str(one.pid) for one in beside))
    try:
        read = other_ranks.look(words, say, "stacks")
    except GdbextError as error:
        text = f"the engine's other processes were not read: {error}"
        say(text)
        return replace(snapshot, problems=(*snapshot.problems, text))
    held_for = max((rank.held_ms or 0.0 for rank in ranks), default=0.0) / 1000
    found = [_as_before_the_stop(one, held_for) for one in read.processes if one.pid not in held]
    first = len(snapshot.processes)
    processes = tuple(replace(one, index=first + at) for at, one in enumerate(found))
    return replace(
        snapshot,
        processes=(*snapshot.processes, *processes),
        problems=(*snapshot.problems, *read.problems),
    )


def _processes_beside(held: AbstractSet[int]) -> List[RankProcess]:
    if not held:
        return []
    jobs = find_jobs(ProcFS(), Selector(tuple(sorted(held))))
    return [one for job in jobs for one in job.serving if one.pid not in held]


def _as_before_the_stop(process: RankSnapshot, held_for: float) -> RankSnapshot:
    """While gdb holds the ranks no client gets an answer: that time says nothing."""
    clients = (replace(one, seconds=one.seconds - held_for) for one in process.clients)
    return replace(process, clients=tuple(one for one in clients if one.seconds > 0))
