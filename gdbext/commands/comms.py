"""llm-nccl-comms: the NCCL communicators of all ranks, joined by their hash."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from gdbext.analysis.communicators.joined_communicators import communicator_table, why_nothing
from gdbext.commands.chosen_ranks import as_words, pick_all
from gdbext.commands.diagnose import with_date
from gdbext.commands.page import page_of_communicators
from gdbext.commands.session_port import Session
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.page import WithPage


def comms(session: Session, args: Namespace) -> object:
    snapshot = _attached(session, args) if session.ranks() else _running(session, args)
    table = communicator_table(snapshot.processes)
    if args.ranks is not None:
        pids = {rank.process.pid for rank in pick_all(session.ranks(), args.ranks)}
        table = communicator_table([process for process in snapshot.processes if process.pid in pids])
    if not table.groups and not table.unreadable:
        raise NothingFound(why_nothing(table.processes), "" if args.scan else "--scan searches all of their memory")
    answer = with_date(session, snapshot, table)
    if args.html is None:
        return answer
    return WithPage(answer, page_of_communicators(replace(snapshot, processes=table.processes)))


def _attached(session: Session, args: Namespace) -> JobSnapshot:
    if args.ranks is not None:
        pick_all(session.ranks(), args.ranks)  # an error before the work
    return session.snapshot(scan=args.scan)


def _running(session: Session, args: Namespace) -> JobSnapshot:
    if args.ranks is not None:
        raise UsageError("no rank is attached", "llm-attach-all attaches them; without RANKS running ranks are read")
    args.pids = []
    words = ("--asked-as=shell gdbext comms", *as_words(args))
    return session.snapshot_from_outside((*words, "--scan") if args.scan else words, "comms")
