"""llm-attach-all, llm-ranks, llm-rank, llm-rank apply, llm-detach-all: the ranks as inferiors of one gdb."""

from __future__ import annotations

from argparse import Namespace
from typing import Sequence

from gdbext.commands.chosen_ranks import jobs_of, pick_all, pick_rank
from gdbext.commands.session_port import Session, chosen_by_current
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.listing import choice, describe, job_summary
from gdbext.model.attached_ranks import AttachedRank, RankOutputs, RankTable
from gdbext.model.codes import RankState
from gdbext.model.errors import UsageError
from gdbext.model.job import Job
from gdbext.snapshot_builder.core_job import matching, open_cores

HELD = "All attached ranks are stopped until llm-detach-all or quit."


def attach_all(session: Session, args: Namespace) -> RankTable:
    if args.core is not None:
        if any((args.pids, args.name, args.pgid, args.parent, args.engine, args.all)):
            raise UsageError("core files and processes cannot be mixed", "give --core FILE..., or processes")
        return session.open_cores(open_cores(matching(args.core), args.sysroot, args.exe))
    if args.sysroot is not None or args.exe is not None:
        raise UsageError("--sysroot and --exe are for core files", "llm-attach-all --core FILE...")
    return session.attach(jobs_of(args))


def list_ranks(session: Session, args: Namespace) -> RankTable:
    ranks = tuple(session.ranks())
    if ranks:
        held = any(rank.state == RankState.STOPPED for rank in ranks)
        return RankTable(ranks, notes=(HELD,) if held else ())
    args.all = True
    jobs = jobs_of(args)
    found = tuple(AttachedRank(process=process, state=RankState.NOT_ATTACHED) for job in jobs for process in job.ranks)
    absent = tuple(rank for job in jobs for rank in job.absent)
    notes = tuple(note for job in jobs for note in job.notes)
    if len(jobs) > 1:  # llm-attach-all would ask which
        notes += tuple(_other_job_line(job, jobs) for job in jobs)
        here = f"{len(jobs)} jobs are here"
        notes += (f"Nothing is attached: {here}; llm-attach-all PID attaches one, --all all of them.",)
    else:
        notes += ("Nothing is attached: llm-attach-all attaches them.",)
    return RankTable(found, absent, notes)


def _other_job_line(job: Job, jobs: Sequence[Job]) -> str:
    others = [one for one in jobs if one is not job]
    return f"{describe(job)}; {job_summary(job, others, ProcFS())}; {choice(job, 'llm-attach-all')}"


def switch(session: Session, args: Namespace) -> RankTable:
    ranks = session.ranks()
    if args.rank is None:
        current = chosen_by_current(ranks)
        if current is None:
            raise UsageError("no rank is selected", "llm-rank N selects one")
        return RankTable((current,))
    wanted = pick_rank(ranks, args.rank)
    assert wanted.number is not None
    session.select(wanted.number)
    return RankTable(tuple(rank for rank in session.ranks() if rank.number == wanted.number))


def apply(session: Session, args: Namespace) -> RankOutputs:
    chosen = pick_all(session.ranks(), args.ranks)
    return session.apply([rank.number for rank in chosen if rank.number is not None], args.command)


def detach_all(session: Session, args: Namespace) -> RankTable:
    return session.detach_all()
