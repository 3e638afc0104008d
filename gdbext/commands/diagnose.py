"""llm-nccl-diagnose and llm-stacks: look at all ranks once, judge, say who hangs and why."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import TypeVar, Union

from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.commands.chosen_ranks import as_words
from gdbext.commands.page import with_page
from gdbext.commands.scrubbed_answer import for_others
from gdbext.commands.session_port import Session
from gdbext.commands.user_files import write_private
from gdbext.model.codes import Given, RankState
from gdbext.model.errors import UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.look_origin import FromFile, Origin
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.verdict import Diagnosis

Answer = TypeVar("Answer")


def look(session: Session, args: Namespace, command: str, let_run: bool = False) -> JobSnapshot:
    """One look at all ranks, saved when that was asked for; `command` is what chooses one of several jobs, when a pid
    stands behind it. `let_run`: attached ranks run for the look. Raises GdbextError."""
    words = (f"--asked-as={command}", *(("--no-stop",) if args.no_stop else ()))
    if not session.ranks():
        snapshot = session.snapshot_from_outside((*words, *as_words(args)))
    elif let_run:
        pids = [str(rank.process.pid) for rank in session.ranks() if rank.state is RankState.STOPPED]
        if not pids:
            raise UsageError("no attached process can run on", "--let-run is not for core files and running processes")
        snapshot = session.while_they_run(lambda: session.snapshot_from_outside((*words, *pids)))
    elif args.no_stop:
        raise UsageError(
            "this gdb has the ranks attached and stopped already", "add --let-run, or run llm-detach-all first"
        )
    else:
        snapshot = session.with_engine_processes(session.snapshot())
    if args.save is not None:
        write_private(args.save, dump_snapshot(snapshot) + "\n", args.force)
    return snapshot


def with_date(session: Session, snapshot: JobSnapshot, answer: Answer) -> Union[Answer, FromFile]:
    """With the date, where it is about core files alone: nobody should take them for the present."""
    if not snapshot.processes or any(one.given is not Given.CORE for one in snapshot.processes):
        return answer
    return FromFile(answer, Origin.of(snapshot, tuple(session.core_files())))


def diagnose(session: Session, args: Namespace) -> object:
    diagnosis = replace(_judged(look(session, args, "llm-nccl-diagnose", args.let_run)), explains=args.explain_verdict)
    return _in_form(session, args, diagnosis, diagnosis, "diagnose")


def stacks(session: Session, args: Namespace) -> object:
    diagnosis = _judged(look(session, args, "llm-stacks"))
    return _in_form(session, args, diagnosis.tree, diagnosis, "stacks")


def _judged(snapshot: JobSnapshot) -> Diagnosis:
    """With its tree, in which helper threads are folded."""
    diagnosis = judge(snapshot)
    return replace(diagnosis, tree=merge(snapshot, diagnosis.processes))


def _in_form(session: Session, args: Namespace, answer: object, diagnosis: Diagnosis, subject: str) -> object:
    """As it was asked for: for others, with its page, dated."""
    if args.format is not None:
        shown: object = for_others(args.format, diagnosis)
    else:
        shown = with_date(session, diagnosis.snapshot, answer)
    return with_page(session, args, shown, diagnosis, subject)
