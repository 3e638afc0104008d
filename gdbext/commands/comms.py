"""llm-nccl-comms: the NCCL communicators of all ranks, joined by their hash."""

from __future__ import annotations

from argparse import Namespace
from typing import Union

from gdbext.analysis.communicators.joined import communicator_table, why_nothing
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.diagnose import dated
from gdbext.commands.selection import SELECTORS, as_words, pick_all
from gdbext.commands.session import Session
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.origin import FromFile

_SELECTORS = tuple(argument for argument in SELECTORS if argument.option)


def comms(session: Session, args: Namespace) -> Union[CommunicatorTable, FromFile]:
    snapshot = _attached(session, args) if session.ranks() else _running(session, args)
    table = communicator_table(snapshot.processes)
    if args.ranks is not None:
        pids = {rank.process.pid for rank in pick_all(session.ranks(), args.ranks)}
        table = communicator_table([process for process in snapshot.processes if process.pid in pids])
    if not table.groups and not table.unreadable:
        raise NothingFound(why_nothing(table.processes), "" if args.scan else "--scan searches all of their memory")
    return dated(session, snapshot, table)


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


COMMANDS = (
    Command(
        "llm-nccl-comms",
        "List NCCL's communicators, and which rank is behind in what",
        comms,
        "status",
        (
            Argument("ranks", "of these attached ranks: 0-3,7 or all (default)", "RANKS", nargs="?", completes="ranks"),
            Argument("--scan", "search all private memory too (8 GiB and 10 s a rank at most)", flag=True),
            *_SELECTORS,
        ),
        description=(
            "Communicators are read from the memory of the ranks: what frames were called with, what pointers on the "
            "stacks lead to, with --scan whatever carries NCCL's magic words. Where the members lie is known by the "
            "debug information of libnccl (the wheels of PyPI carry it), else by a table of releases. "
            "With nothing attached, running ranks are read without a stop; the selectors choose which. "
            "Counts are launches by the host, not completed work; sends and receives are not counted."
        ),
        examples=("llm-nccl-comms", "llm-nccl-comms 0-3 --scan"),
    ),
)
