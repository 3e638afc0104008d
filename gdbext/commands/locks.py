"""llm-locks: which lock each thread waits for, who holds it, and where that leads."""

from __future__ import annotations

from argparse import Namespace
from typing import Optional, Set

from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.verdict.judge import judge
from gdbext.commands.chosen_ranks import parse_ranks
from gdbext.commands.diagnose import look
from gdbext.commands.page import with_page
from gdbext.commands.session_port import Session
from gdbext.model.errors import UsageError
from gdbext.model.job import JobSnapshot
from gdbext.model.text.ranges import ranges_text


def locks(session: Session, args: Namespace) -> object:
    args.pids = ()  # ranks are named by number here; the look is at all of them
    snapshot = look(session, args, "shell gdbext locks")
    diagnosis = judge(snapshot)
    answer = report(diagnosis, _chosen(snapshot, args.ranks))
    return with_page(session, args, answer, diagnosis, "locks")


def _chosen(snapshot: JobSnapshot, text: Optional[str]) -> Optional[Set[int]]:
    """Indexes of the processes with these ranks, None for all of them. Raises UsageError."""
    if text is None or text.strip() == "all":
        return None
    found: Set[int] = set()
    for wanted in parse_ranks(text):
        named = [one.index for one in snapshot.processes if one.rank == wanted]
        found.update(named or [one.index for one in snapshot.processes if one.pid == wanted])
    if not found:
        known = ranges_text(process.rank for process in snapshot.processes if process.rank is not None)
        raise UsageError(f"no rank {text} was read", f"ranks that were read: {known or 'none has a number'}")
    return found
