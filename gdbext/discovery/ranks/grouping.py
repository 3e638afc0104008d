"""Rank processes that work together: one job each."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Dict, List, Optional, Sequence, Set, Tuple

from gdbext.discovery.proc.devices import device_of
from gdbext.discovery.proc.process_table import INIT, Entry
from gdbext.discovery.ranks.families import HELPER, LAUNCHER, LEFT, TRACKER
from gdbext.discovery.ranks.numbering import Numbered, Sizes, missing_ranks, number
from gdbext.discovery.ranks.rank_processes import Census
from gdbext.discovery.ranks.rank_variables import Claim
from gdbext.discovery.ranks.roles import Member
from gdbext.discovery.ranks.workers import managers
from gdbext.model.job import RANK, Job, RankProcess

_OUTSIDE = ("shell", "tool", "debugger")
"""Roles that belong to no job even when they stand in its tree."""

CLAIMED = "unknown: rank {} is claimed by {} processes"
"""Where the number of a rank would come from, if it had it alone."""

_WORDS = {
    "TORCHELASTIC_RUN_ID": "run id",
    "MASTER_ADDR": "",
    "MASTER_PORT": "port",
    "PMIX_NAMESPACE": "namespace",
    "SLURM_JOB_ID": "job",
    "SLURM_STEP_ID": "step",
    "MS_SCHED_HOST": "scheduler",
    "MS_SCHED_PORT": "port",
}


@dataclass(frozen=True)
class Key:
    """What holds a job together, and how that is said to people."""

    identity: Tuple[str, ...]
    text: str


def form_jobs(census: Census) -> Tuple[Job, ...]:
    """All jobs of this host, the one with the lowest pid first."""
    groups: Dict[Tuple[str, ...], List[Member]] = defaultdict(list)
    texts: Dict[Tuple[str, ...], str] = {}
    for member in census.ranks:
        key = key_of(member, census)
        groups[key.identity].append(member)
        texts.setdefault(key.identity, key.text)
    jobs = [
        form_job(texts[identity] + mark, ranks, census)
        for identity, members in groups.items()
        for ranks, mark in _told_apart_by_start(members)
    ]
    return tuple(sorted(jobs, key=lambda job: min(rank.pid for rank in job.ranks)))


def _told_apart_by_start(members: Sequence[Member]) -> List[Tuple[Sequence[Member], str]]:
    """Jobs that one parent started one after the other, with nothing else to tell them apart: a rank and a world size
    that come again begin the next job. What cannot be split into whole jobs stays together."""
    started = sorted(members, key=lambda member: (member.facts.entry.start_time, member.pid))
    jobs: List[List[Member]] = [[]]
    for member in started:
        claim = member.claim
        if claim is None or claim.job or claim.world_size is None:
            return [(members, "")]
        if any(claim.rank == other.claim.rank for other in jobs[-1] if other.claim):
            jobs.append([])
        jobs[-1].append(member)
    whole = all(len(job) == job[0].claim.world_size for job in jobs if job[0].claim)
    if len(jobs) == 1 or not whole:
        return [(members, "")]
    return [(job, f", job {number} by start time") for number, job in enumerate(jobs, 1)]


def key_of(member: Member, census: Census) -> Key:
    """By the variables that a launcher gives to one job only, else by the tree of processes."""
    if member.mate is not None:
        return key_of(census.members[member.mate], census)
    claim = member.claim
    if claim is not None and claim.job:
        space = census.proc.namespace(member.pid, "pid")
        values = tuple(value for _, value in claim.job)
        return Key((claim.row.launcher, *values, str(space)), _job_text(claim))
    if member.family is not None:
        return Key(("workers", member.family), _family_text(member, census))
    root = _root(member, census)
    if root is None:
        group = census.table.entries[member.pid].group
        return Key(("group", str(group), str(member.engine)), f"process group {group}")
    return Key(("below", str(root.pid), str(member.engine)), f"below pid {root.pid} ({_short(root)})")


def form_job(text: str, ranks: Sequence[Member], census: Census) -> Job:
    """Number the ranks, set doubles aside, and add the processes that belong to the job without being ranks."""
    around = _processes_around(ranks, census)
    commands = [member.facts.entry.arguments for member in (*around, *ranks)]
    numbered, sizes = number(ranks, commands)
    kept, doubles, notes = _without_doubles(numbered)
    engines = Counter(member.engine for member in ranks if member.engine)
    beside_workers = _beside_workers(ranks, around, census)
    outer = beside_workers or _outer_processes(ranks, around, census)
    others = [_describe_other(member, kept, census) for member in around]
    others += [_describe(one, sizes, census, role) for one, role in doubles]
    return Job(
        key=text,
        engine=engines.most_common(1)[0][0] if engines else None,
        ranks=tuple(_describe(one, sizes, census, RANK) for one in kept),
        others=tuple(sorted(outer + others, key=lambda process: process.pid)),
        world_size=sizes.world,
        absent=tuple(sorted({*missing_ranks(kept, sizes), *_ended(ranks, kept, census)})),
        notes=notes + census.notes,
    )


def _ended(ranks: Sequence[Member], kept: Sequence[Numbered], census: Census) -> Set[int]:
    """Numbers of ranks that have left processes behind."""
    left = [one for one in census.members.values() if one.role == LEFT and one.claim is not None]
    own = {key_of(one, census).identity for one in ranks} if left else set()
    numbers = {one.claim.rank for one in left if one.claim is not None and key_of(one, census).identity in own}
    return numbers - {one.rank for one in kept}


def _family_text(member: Member, census: Census) -> str:
    family = census.family_of(member.pid)
    driver = census.table.entries.get(family.driver or 0) if family is not None else None
    return f"workers of pid {driver.pid} ({_short(driver)})" if driver is not None else "connected processes"


def _job_text(claim: Claim) -> str:
    """For people: the launcher and what tells its jobs apart."""
    parts = {value: f"{_WORDS.get(name, name)} {value[:60]}".strip() for name, value in reversed(claim.job)}
    return ", ".join([claim.row.launcher, *reversed(list(parts.values()))])


def _short(entry: Entry) -> str:
    return entry.shown if len(entry.shown) <= 40 else entry.shown[:37].rstrip(". ") + "..."


def _root(member: Member, census: Census) -> Optional[Entry]:
    """The process that stands for the job: the engine's own outermost one, the nearest launcher, or the parent."""
    top: Optional[Member] = None
    launcher: Optional[Entry] = None
    ancestors = list(census.table.ancestors(member.pid))
    for entry in ancestors:
        other = census.members.get(entry.pid)
        if other is None:
            continue
        if other.titled and other.engine == member.engine and other.role != RANK:
            top = other
        elif other.role == LAUNCHER and launcher is None:
            launcher = entry
    if top is not None and "dp" not in top.groups:
        return top.facts.entry
    if launcher is not None:
        return launcher
    start = top.pid if top is not None else member.pid
    parent = next(iter(census.table.ancestors(start)), None)
    if parent is None or parent.pid in (INIT, census.self_pid) or parent.kernel:
        return None
    role = census.members[parent.pid].role if parent.pid in census.members else ""
    return None if role in _OUTSIDE else parent


def _processes_around(ranks: Sequence[Member], census: Census) -> List[Member]:
    """Known processes of the job that are no ranks: above the ranks, below the same root, or children of a rank."""
    pids = {member.pid for member in ranks}
    roots = {other.pid for member in ranks for other in _above(member, census)}
    found = roots | {other.pid for other in census.members.values() if other.child_of in pids}
    engine = next((member.engine for member in ranks if member.engine), None)
    below = {entry.pid for root in roots for entry in census.table.descendants(root)}
    groups = {member.facts.entry.group for member in ranks}
    for other in census.members.values():
        mate = other.titled and other.engine == engine and other.facts.entry.group in groups and not roots
        if (mate or other.pid in below) and other.role not in (RANK, "child", *_OUTSIDE):
            found.add(other.pid)
    return [census.members[pid] for pid in sorted(found - pids)]


def _above(rank: Member, census: Census) -> List[Member]:
    """The nearest launcher and the parts of the same engine above a rank. Outer launchers serve other jobs too."""
    found: List[Member] = []
    launched = False
    for entry in census.table.ancestors(rank.pid):
        other = census.members.get(entry.pid)
        if other is None or other.role in (RANK, *_OUTSIDE):
            continue
        if (other.titled and other.engine == rank.engine) or (other.role == LAUNCHER and not launched):
            found.append(other)
            launched = launched or other.role == LAUNCHER
    return found


def _outer_processes(ranks: Sequence[Member], around: Sequence[Member], census: Census) -> List[RankProcess]:
    """The common parent of ranks that nothing else holds together: unknown, but it stands for them."""
    if around:
        return []
    parents = {census.table.entries[member.pid].parent for member in ranks} - {0, INIT}
    if len(parents) != 1:
        return []
    entry = census.table.entries.get(next(iter(parents)))
    if entry is None or entry.kernel or entry.pid in census.members or entry.pid == census.self_pid:
        return []
    return [_plain(entry, "parent", census)]


def _beside_workers(ranks: Sequence[Member], around: Sequence[Member], census: Census) -> List[RankProcess]:
    """What stands beside the workers of one program: the program itself, what manages their objects, its helpers."""
    known = {member.pid for member in (*ranks, *around)}
    found: Dict[int, str] = {}
    for family in {census.family_of(member.pid) for member in ranks} - {None}:
        if family is None or family.driver is None:
            continue
        for pid in managers(family, census.proc, census.facts):
            found[pid] = "manager"
        for entry in census.table.descendants(family.driver):
            other = census.members.get(entry.pid)
            if other is not None and other.role in (HELPER, TRACKER):
                found[entry.pid] = other.role
        found[family.driver] = "parent"
    return [_plain(census.table.entries[pid], role, census) for pid, role in found.items() if pid not in known]


def _without_doubles(
    numbered: Sequence[Numbered],
) -> Tuple[List[Numbered], List[Tuple[Numbered, str]], Tuple[str, ...]]:
    """One process per rank: the one that works on a device, else the one that could. A tie has a note and no number."""
    by_rank: Dict[Optional[int], List[Numbered]] = defaultdict(list)
    for one in numbered:
        by_rank[one.rank].append(one)
    kept: List[Numbered] = list(by_rank.pop(None, ()))
    doubles: List[Tuple[Numbered, str]] = []
    notes: List[str] = []
    for rank, several in by_rank.items():
        if len(several) > 1:
            best = max(_strength(one) for one in several)
            doubles += [(one, f"same variables as rank {rank}") for one in several if _strength(one) < best]
            several = [one for one in several if _strength(one) == best]
        if len(several) > 1:
            pids = ", ".join(str(one.member.pid) for one in several)
            notes.append(f"rank {rank} is claimed by several processes: pids {pids}")
            several = [replace(one, rank=None, source=CLAIMED.format(rank, len(several))) for one in several]
        kept += several
    kept.sort(key=lambda one: (one.rank is None, one.rank or 0, one.member.pid))
    return kept, doubles, tuple(notes)


def _strength(one: Numbered) -> Tuple[bool, bool, bool]:
    facts = one.member.facts
    return one.member.titled, facts.accelerator, facts.evidence


def _describe(one: Numbered, sizes: Sizes, census: Census, role: str) -> RankProcess:
    entry, facts = one.member.facts.entry, one.member.facts
    return RankProcess(
        pid=entry.pid,
        role=role,
        engine=one.member.engine,
        title=entry.shown,
        rank=one.rank,
        local_rank=one.local_rank,
        world_size=sizes.world,
        rank_source=one.source,
        device=device_of(one.local_rank, facts.variables, facts.open_files),
        host=census.host,
        start_time=entry.start_time,
        threads=entry.threads,
        state=entry.state,
        labels=one.labels,
    )


def _describe_other(member: Member, kept: Sequence[Numbered], census: Census) -> RankProcess:
    role = member.role
    if member.child_of is not None:
        rank = next((one.rank for one in kept if one.member.pid == member.child_of), None)
        role = f"child of pid {member.child_of}" if rank is None else f"child of rank {rank}"
        return _plain(member.facts.entry, role, census, member.engine)
    return replace(_plain(member.facts.entry, role, census, member.engine), serves=member.titled)


def _plain(entry: Entry, role: str, census: Census, engine: Optional[str] = None) -> RankProcess:
    return RankProcess(
        pid=entry.pid,
        role=role,
        engine=engine,
        title=entry.shown,
        rank_source="not a rank",
        host=census.host,
        start_time=entry.start_time,
        threads=entry.threads,
        state=entry.state,
    )
