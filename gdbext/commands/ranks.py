"""llm-attach-all, llm-ranks, llm-rank, llm-rank apply, llm-detach-all: the ranks as inferiors of one gdb."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from typing import Sequence

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.selection import SELECTORS, jobs_of, pick, pick_all
from gdbext.commands.session import Session, chosen_by_current
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.listing import choice, describe, started
from gdbext.model.attached import AttachedRank, RankOutputs, RankTable
from gdbext.model.errors import UsageError
from gdbext.model.job import Job
from gdbext.model.text.digits import is_whole
from gdbext.snapshot.core_job import matching, open_cores

HELD = "All attached ranks are stopped until llm-detach-all (or quit) lets them go."


def attach_all(session: Session, args: Namespace) -> RankTable:
    if args.core is not None:
        if any((args.pids, args.name, args.pgid, args.parent, args.engine, args.all)):
            raise UsageError("core files and processes cannot be mixed", "give either --core or a selector")
        return session.open_cores(open_cores(matching(args.core), args.sysroot, args.exe))
    if args.sysroot is not None or args.exe is not None:
        raise UsageError("--sysroot and --exe are for core files", "llm-attach-all --core FILE...")
    return session.attach(jobs_of(args))


def list_ranks(session: Session, args: Namespace) -> RankTable:
    ranks = tuple(session.ranks())
    if ranks:
        held = any(rank.state == "stopped" for rank in ranks)
        return RankTable(ranks, notes=(HELD,) if held else ())
    args.all = True
    jobs = jobs_of(args)
    found = tuple(AttachedRank(process, state="not attached") for job in jobs for process in job.ranks)
    absent = tuple(rank for job in jobs for rank in job.absent)
    notes = tuple(note for job in jobs for note in job.notes)
    if len(jobs) > 1:  # llm-attach-all would ask which
        notes += tuple(_told(job, jobs) for job in jobs)
        here = f"{len(jobs)} jobs are here"
        notes += (f"Nothing is attached: {here}; llm-attach-all PID attaches one, --all all of them.",)
    else:
        notes += ("Nothing is attached: llm-attach-all attaches them.",)
    return RankTable(found, absent, notes)


def _told(job: Job, jobs: Sequence[Job]) -> str:
    others = [one for one in jobs if one is not job]
    return f"{describe(job)}; {started(job, others, ProcFS())}; {choice(job, 'llm-attach-all')}"


def switch(session: Session, args: Namespace) -> RankTable:
    ranks = session.ranks()
    if args.rank is None:
        current = chosen_by_current(ranks)
        if current is None:
            raise UsageError("no rank is selected", "llm-rank N selects one")
        return RankTable((current,))
    wanted = pick(ranks, args.rank)
    assert wanted.number is not None
    session.select(wanted.number)
    return RankTable(tuple(rank for rank in session.ranks() if rank.number == wanted.number))


def apply(session: Session, args: Namespace) -> RankOutputs:
    chosen = pick_all(session.ranks(), args.ranks)
    return session.apply([rank.number for rank in chosen if rank.number is not None], args.command)


def detach_all(session: Session, args: Namespace) -> RankTable:
    return session.detach_all()


def rank_number(text: str) -> int:
    """Type of an argument that names one rank."""
    if not is_whole(text):
        raise ArgumentTypeError(f"{text} is no rank number and no pid")
    return int(text)


COMMANDS = (
    Command(
        "llm-attach-all",
        "Attach to all ranks of a job, each as an inferior of this gdb",
        attach_all,
        "running",
        SELECTORS
        + (
            Argument("--all", "take every job found, when there are several", flag=True),
            Argument("--core", "open core files instead, each as an inferior", "FILE", nargs="+", completes="file"),
            Argument("--sysroot", "folder with the files of the machine of the cores", "DIR", completes="file"),
            Argument("--exe", "program of the cores", "FILE", completes="file"),
        ),
        description=(
            "Without a selector: the one job that runs on this host. Symbols are read before anything is stopped. "
            "The ranks stay stopped until llm-detach-all or quit; `continue` then resumes all of them together. "
            "A rank that cannot be attached is listed with the reason, the others go on. "
            "The program and libraries of core files are found by build-id, never taken from another build."
        ),
        examples=(
            "llm-attach-all",
            "llm-attach-all 4711",
            "llm-attach-all --name 'VLLM::Worker'",
            "llm-attach-all --core core.*",
        ),
    ),
    Command(
        "llm-ranks",
        "List the attached ranks, or those that could be attached",
        list_ranks,
        "status",
        SELECTORS,
        description="Selectors matter only while nothing is attached.",
        repeats=True,
    ),
    Command(
        "llm-rank",
        "Select the rank that following commands are about",
        switch,
        "running",
        (Argument("rank", "rank number, or the pid of a rank", "N", rank_number, nargs="?", completes="rank"),),
        description="Without N: shows the selected rank. `$_llm_rank()` is its number in expressions, -1 when unknown.",
        examples=("llm-rank 3", "llm-rank apply 0-3,7 bt 5"),
        prefix=True,
        repeats=True,
    ),
    Command(
        "llm-rank apply",
        "Run a gdb command on several ranks",
        apply,
        "running",
        (Argument("ranks", "like 0-3,7 or all", "RANKS", completes="ranks"),),
        tail=Argument("command", "the gdb command, up to the end of the line", "COMMAND", completes="command"),
        description="The selection comes back. A rank on which it fails does not stop the others.",
        examples=("llm-rank apply all info threads", "llm-rank apply 0,2 thread apply 1 bt 3"),
    ),
    Command(
        "llm-detach-all",
        "Let all attached ranks go; they run on",
        detach_all,
        "running",
        description="A process that was stopped (state T) before it was attached stays stopped.",
    ),
)
