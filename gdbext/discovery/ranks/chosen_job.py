"""From a selector to the one job that is meant."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Callable, List, Mapping, Optional, Sequence, Set, Tuple

from gdbext.discovery.locks_pipes_sockets.sockets import connected_groups
from gdbext.discovery.preflight_checks.attach_permission import check_kill_filter
from gdbext.discovery.proc.devices import device_of
from gdbext.discovery.proc.process_table import Entry
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.grouping import CLAIMED, form_job, form_jobs
from gdbext.discovery.ranks.listing import listing
from gdbext.discovery.ranks.rank_processes import Census
from gdbext.discovery.ranks.rank_variables import claims_of
from gdbext.discovery.ranks.roles import ReadEnviron, chosen, numbers_its_titles
from gdbext.discovery.ranks.selectors import Selector
from gdbext.discovery.ranks.workers import is_forkserver
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.launch.launchers import SERVICES
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.job import RANK, Job, RankProcess
from gdbext.model.missing import Missing
from gdbext.model.text.nearest import unknown_word_error
from gdbext.model.text.ranges import ranges_text

_ENDED = ("Z", "X")
_MOST_STARTED = 16


class FoundJobs(Tuple[Job, ...]):
    """The jobs, and in `notes` what could not be seen: it matters most when there is no job to carry it."""

    notes: Tuple[str, ...] = ()


def find_jobs(proc: ProcFS, selector: Selector, read_environ: Optional[ReadEnviron] = None) -> FoundJobs:
    """The jobs that the selector means. Raises UsageError for a selector that cannot mean anything.

    Without a selector a process counts as a rank only on real evidence (its title, or rank variables together with
    Python or a library of torch, CUDA, NCCL, MPI). Processes that the user names count by the user's word. Workers
    that one program has started count where they number themselves (`read_environ` tells the variables of now), where
    they have connections with each other, and where nothing else was found.
    """
    engine = _engine_name(selector.engine)
    name = _pattern(selector.name)
    census = Census(proc, read_environ)
    wanted = _tests(selector, name, census)
    jobs = form_jobs(census)
    if engine is not None or not jobs:
        census.find_gpu_ranks()
        jobs = form_jobs(census)
    if (not jobs or _belongs_to_no_job(selector.pids, jobs, census)) and census.add_unreadable_ranks():
        jobs = form_jobs(census)
    if (
        not jobs or _belongs_to_no_job(selector.pids, jobs, census) or _none_passes(wanted, jobs, census)
    ) and census.take_workers(selector.pids or ()):
        jobs = form_jobs(census)
    notes: List[str] = []
    if selector.pids:
        jobs, missing = _by_pids(selector.pids, jobs, census)
        notes += missing
    if engine is not None:
        jobs = tuple(job for job in jobs if job.engine == engine)
    if wanted:
        jobs = _by_tests(wanted, jobs, census, "" if engine is not None else str(selector))
    found = FoundJobs(replace(job, notes=(*notes, *job.notes)) for job in jobs)
    found.notes = (*notes, *census.notes)
    return found


def choose_job(
    jobs: Sequence[Job], selector: Selector, command: str = "gdbext diagnose", proc: Optional[ProcFS] = None
) -> Job:
    """The only job, to be looked into. Raises UsageError with a list of several, and the `command` for each of them;
    NothingFound when there is none, GdbextError where a look would be our end."""
    if len(jobs) == 1:
        check_kill_filter(ProcFS())
        return jobs[0]
    if not jobs:
        notes = "".join(f"; {note}" for note in getattr(jobs, "notes", ()))
        if selector.empty:
            raise NothingFound(f"no rank process was found on this host{notes}", "choose processes by pid or --name")
        what = f"no process matches {selector}{notes}"
        if notes and selector == Selector(selector.pids):
            what = notes[2:]  # they say of each pid why
        raise NothingFound(what, "`gdbext ranks` lists the ranks of this host")
    where = "are on this host" if selector.empty else f"match {selector}"
    head = f"{len(jobs)} jobs {where}: choose one by a pid, --parent, --pgid or --engine"
    raise UsageError("\n".join([head, *listing(jobs, proc or ProcFS(), command)]))


def rank_from_environ(process: RankProcess, environ: Mapping[str, str]) -> RankProcess:
    """Complete a rank with the environment that was read from its memory, where /proc had lost it.

    A rank that a title states is kept; one that was only guessed from a local rank is corrected. Engines that number
    their ranks in titles are not numbered by what a pod or a batch script hands down to all processes. A front end is
    never numbered.
    """
    if process.role != RANK:
        return process
    profile = next((profile for profile in PROFILES if profile.name == process.engine), None)
    own = claims_of(environ, profile.variables) if profile is not None else ()
    claim = next(iter(own or claims_of(environ)), None)
    if claim is None or claim.role != RANK or (process.rank is not None and not own):
        return process
    if profile is not None and not own and not claim.marked and numbers_its_titles(profile):
        return process
    local = process.local_rank if process.local_rank is not None else claim.local_rank
    if local is None and claim.local_size:
        local = claim.rank % claim.local_size
    return replace(
        process,
        rank=claim.rank,
        local_rank=local,
        world_size=claim.world_size or process.world_size,
        rank_source=f"memory {claim.row.rank}",
        device=process.device or device_of(local, environ, ()),
    )


def told_apart(processes: Sequence[RankProcess]) -> Tuple[RankProcess, ...]:
    """The same processes; a number that several of them claim is nobody's, so that they are named by their pids."""
    claims = Counter(process.rank for process in processes)
    return tuple(
        replace(process, rank=None, rank_source=CLAIMED.format(process.rank, claims[process.rank]))
        if process.rank is not None and claims[process.rank] > 1
        else process
        for process in processes
    )


def _engine_name(text: Optional[str]) -> Optional[str]:
    """The name of a profile, however it was written (`RTP-LLM`, `llama.cpp`)."""
    if text is None:
        return None
    wanted = _letters(text)
    for profile in PROFILES:
        if _letters(profile.name) == wanted:
            return profile.name
    names = [profile.name for profile in PROFILES]
    raise unknown_word_error("engine", text, names, f"known engines are {', '.join(names)}")


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _pattern(text: Optional[str]) -> Optional[re.Pattern[str]]:
    if text is None:
        return None
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--name {text} is not a valid regular expression: {error}") from None


def _by_pids(pids: Sequence[int], jobs: Sequence[Job], census: Census) -> Tuple[Tuple[Job, ...], Tuple[str, ...]]:
    """The whole job of every pid, or the processes themselves where they belong to none. Also what was not found.

    Pids of several jobs make them one, as the user says; one pid that several jobs stand below says nothing such.
    Beside other processes services are left out, which wait for work and which nobody waits for. One pid alone that
    belongs to no job stands for what it has started as well, which it may wait for.
    """
    hit: List[Job] = []
    plain: List[int] = []
    missing: List[str] = []
    several = False
    for pid in pids:
        main = _process_of(pid, census)
        if main is None:
            missing.append(f"no process {pid} is running")
            continue
        own = [job for job in jobs if _is_member(main, job)]
        own = own or [job for job in jobs if _stands_for(main, job, census)]
        own = own or [job for job in jobs if _is_connected(main, job, census)]
        several = several or len(own) > 1
        hit += [job for job in own if job not in hit]
        if not own and main not in plain:
            plain.append(main)
    several = several and not all(any(rank.pid in pids for rank in job.ranks) for job in hit)
    services = {pid: _service(pid, census) for pid in plain}
    if hit or not all(services.values()):
        plain = [pid for pid in plain if not services[pid]]
        left_out = [(pid, role) for pid, role in services.items() if role]
        missing += [f"pid {pid} is left out: it is a {role}; give it alone to read it" for pid, role in left_out]
    below = _started_by(plain[0], census) if plain and len(pids) == 1 else []
    if below:
        missing.append(
            f"{_pids_text(below)}, started by pid {plain[0]}, {'is' if len(below) == 1 else 'are'} read as well"
        )
    named = (_job_of([*plain, *below], census, _pids_text(plain)),) if plain else ()
    found = (*hit, *named)
    if len(found) > 1 and not several:
        found = (_merged(found),)
    return found, tuple(missing)


def _pids_text(pids: Sequence[int]) -> str:
    return f"{'pid' if len(pids) == 1 else 'pids'} {ranges_text(pids)}"


def _started_by(pid: int, census: Census) -> List[int]:
    """The processes below it that can be read, of its session and without services; none of many, as a supervisor or
    the user's shell has."""
    session = census.table.entries[pid].session
    below = [one for one in census.table.descendants(pid) if one.session == session and one.state not in _ENDED]
    if len(below) > _MOST_STARTED or census.self_pid in [one.pid for one in below]:
        return []
    return [one.pid for one in below if not _service(one.pid, census) and not census.facts(one.pid).denied]


def _service(pid: int, census: Census) -> str:
    """Its role, if no process of a program waits for it; "" for any other process."""
    if is_forkserver(census.table.entries[pid], census.table):  # what it forks has its title
        return "fork server"
    member = census.members.get(pid)
    return member.role if member is not None and member.role in SERVICES else ""


def _belongs_to_no_job(pids: Sequence[int], jobs: Sequence[Job], census: Census) -> bool:
    """Whether some of these belong to none of the jobs: to one, perhaps, that we may not look into."""
    named = [main for main in (_process_of(pid, census) for pid in pids) if main is not None]
    return any(not any(_stands_for(main, job, census) for job in jobs) for main in named)


def _process_of(pid: int, census: Census) -> Optional[int]:
    """The process of a pid; a thread id stands for the process it belongs to."""
    if pid in census.table.entries:
        return pid
    status = census.proc.status(pid)
    group = "" if isinstance(status, Missing) else status.get("Tgid", "")
    return int(group) if group.isdigit() and int(group) in census.table.entries else None


def _is_member(pid: int, job: Job) -> bool:
    return any(process.pid == pid for process in (*job.ranks, *job.others))


def _stands_for(pid: int, job: Job, census: Census) -> bool:
    """A member of the job, or a process (a shell, a script) that has started some of its ranks."""
    if _is_member(pid, job):
        return True
    return any(entry.pid == pid for rank in job.ranks for entry in census.table.ancestors(rank.pid))


def _is_connected(pid: int, job: Job, census: Census) -> bool:
    """A program that talks to its workers while somebody else has started them, as Ray does."""
    return any(pid in group for group in connected_groups(census.proc, (pid, *(rank.pid for rank in job.ranks))))


def _job_of(pids: Sequence[int], census: Census, text: str) -> Job:
    """Processes that nothing but the user's word makes ranks."""
    return form_job(text, [chosen(census.facts(pid)) for pid in pids], census)


def _merged(jobs: Sequence[Job]) -> Job:
    """One job of several, as the user's word says."""
    engines = {job.engine for job in jobs}
    sizes = {job.world_size for job in jobs}
    ranks = [rank for job in jobs for rank in job.ranks]
    pids = {rank.pid for rank in ranks}
    others = {process.pid: process for job in jobs for process in job.others if process.pid not in pids}
    return Job(
        key="; ".join(job.key for job in jobs),
        engine=engines.pop() if len(engines) == 1 else None,
        ranks=tuple(sorted(ranks, key=lambda rank: (rank.rank is None, rank.rank or 0, rank.pid))),
        others=tuple(others[pid] for pid in sorted(others)),
        world_size=sizes.pop() if len(sizes) == 1 else None,
        notes=(f"the pids belong to {len(jobs)} groups, taken together as asked", *jobs[0].notes),
    )


Test = Callable[[Entry], bool]


def _tests(selector: Selector, name: Optional[re.Pattern[str]], census: Census) -> List[Test]:
    """What --name, --pgid and --parent ask of a process."""
    tests: List[Test] = []
    if name is not None:
        pattern = name
        tests.append(lambda entry: bool(pattern.search(entry.title)))
    if selector.pgid is not None:
        tests.append(lambda entry: entry.group == selector.pgid)
    if selector.parent is not None:
        tree = {entry.pid for entry in census.table.descendants(selector.parent)} | {selector.parent}
        tests.append(lambda entry: entry.pid in tree)
    return tests


def _none_passes(tests: Sequence[Test], jobs: Sequence[Job], census: Census) -> bool:
    """Whether the tests mean no process of these jobs."""
    entries = (census.table.entries[process.pid] for job in jobs for process in (*job.ranks, *job.others))
    return bool(tests) and not any(all(test(entry) for test in tests) for entry in entries)


def _by_tests(tests: Sequence[Test], jobs: Sequence[Job], census: Census, text: str) -> Tuple[Job, ...]:
    """The ranks that pass; the whole job when only its front end or launcher passes; else, under the name `text`, plain
    processes (none with an empty `text`)."""
    passing = {pid for pid, entry in census.table.entries.items() if all(test(entry) for test in tests)}
    found = [_narrowed(job, passing) for job in jobs if any(rank.pid in passing for rank in job.ranks)]
    if not found:
        found = [job for job in jobs if any(other.pid in passing for other in job.others)]
    if found or not passing or not text:
        return tuple(found)
    plain = [pid for pid in sorted(passing) if _may_be_meant(pid, passing, census)]
    return (_job_of(plain, census, text),) if plain else ()


def _narrowed(job: Job, passing: Set[int]) -> Job:
    """The job without the ranks, engine cores and front ends that were not asked for."""
    ranks = tuple(rank for rank in job.ranks if rank.pid in passing)
    others = tuple(one for one in job.others if one.pid in passing or not one.serves)
    left = len(job.ranks) - len(ranks)
    notes = (f"{left} further ranks were not selected",) if left else ()
    left_out = tuple(one for one in (*job.ranks, *job.others) if one not in (*ranks, *others))
    return replace(job, ranks=ranks, others=others, left_out=left_out, notes=(*job.notes, *notes))


def _may_be_meant(pid: int, passing: Set[int], census: Census) -> bool:
    """A process without a role of its own that is neither we, nor one of our ancestors, nor the kernel's."""
    entry = census.table.entries[pid]
    ours = census.self_pid
    above_us = {ours} | ({up.pid for up in census.table.ancestors(ours)} if ours is not None else set())
    return not entry.kernel and pid not in census.members and pid not in above_us
