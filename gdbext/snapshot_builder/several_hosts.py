"""The looks of several hosts as one look at one job: every rank with its host, numbers of processes made one series."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.model.codes import Given, ReadState
from gdbext.model.host import HostLook
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.witness import Witness

_MOST_RANKS = 1 << 14


def merge_hosts(hosts: Sequence[HostLook], looks: Mapping[str, JobSnapshot]) -> JobSnapshot:
    """`looks`: by the name of the host. Times are moved to the clock of the caller."""
    processes: List[RankSnapshot] = []
    witnesses: List[Witness] = []
    problems: List[str] = []
    said: List[str] = []
    for host in hosts:
        look = looks.get(host.name)
        if look is None:
            problems.append(f"{host.name} was not read: {host.reason}")
            continue
        first = len(processes)
        processes += (replace(one, index=first + one.index, host=host.name) for one in look.processes)
        witnesses += (_of_host(one, host.name, first) for one in look.witnesses)
        problems += (f"{host.name}: {problem}" for problem in look.problems)
        said += look.said
    size = max((one.world_size for one in looks.values() if one.world_size), default=None)
    engines = [one.engine for one in looks.values() if one.engine]
    here = {one.rank for one in processes if one.rank is not None}
    absent: Set[int] = set()
    if len(looks) == len(hosts):
        absent = {rank for one in looks.values() for rank in one.absent} - here
        if size is not None and size <= _MOST_RANKS and all(one.rank is not None for one in processes):
            absent |= set(range(size)) - here
    elif size is not None and here and len(here) < size <= _MOST_RANKS:
        unread = sorted(set(range(size)) - here)
        processes += (_unread(len(processes) + place, rank, size) for place, rank in enumerate(unread))
    return JobSnapshot(
        processes=tuple(processes),
        taken_at=_taken_at(hosts, looks),
        engine=engines[0] if engines else None,
        world_size=size,
        absent=tuple(sorted(absent)),
        problems=tuple(problems),
        said=tuple(said),
        apart=max((one.apart for one in looks.values() if one.apart is not None), default=None),
        earlier=_earlier(hosts, looks),
        witnesses=tuple(witnesses),
        hosts=tuple(hosts),
    )


def _unread(index: int, rank: int, size: int) -> RankSnapshot:
    """A rank of a host that was not read: it may well be there."""
    why = ("it may be on a host that was not read",)
    return RankSnapshot(
        index=index, threads=(), rank=rank, world_size=size, state=ReadState.LOST, problems=why, source=Given.UNASKED
    )


def _of_host(witness: Witness, host: str, first: int) -> Witness:
    statements = tuple(
        one if one.process is None else replace(one, process=first + one.process) for one in witness.statements
    )
    return replace(witness, name=f"{witness.name} on {host}", statements=statements)


def _taken_at(hosts: Sequence[HostLook], looks: Mapping[str, JobSnapshot]) -> Optional[float]:
    times = [
        look.taken_at - (host.offset or 0.0)
        for host in hosts
        for look in (looks.get(host.name),)
        if look is not None and look.taken_at is not None
    ]
    return max(times, default=None)


def _earlier(hosts: Sequence[HostLook], looks: Mapping[str, JobSnapshot]) -> Tuple[JobSnapshot, ...]:
    """Looks before the last, of hosts that all took as many."""
    counts = {len(one.earlier) for one in looks.values()}
    if len(counts) != 1:
        return ()
    return tuple(
        replace(
            merge_hosts(hosts, {name: replace(look.earlier[at], earlier=()) for name, look in looks.items()}), hosts=()
        )
        for at in range(counts.pop())
    )
