"""Threads that look again and again at memory, while no thread of their program is left that could change it."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.analysis.progress.own_work import is_independent_job, is_yielding, looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import handler_of, stays_in_place
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import start, verb, who
from gdbext.knowledge.runtimes.system_calls import FUTEX


def nobody_changes_it(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, some threads of the only process gave their processor away
    again and again in the same functions, and all the others waited for a thread of this process without a limit. A
    process that was not read may still change memory that it shares with this one."""
    if not is_independent_job(view) or len(view.snapshot.processes) != 1 or not view.before or not looked_long(view):
        return None
    threads = threads_of(view, 0)
    spinning = [one for one in threads if is_yielding(one) and one.judged.helper is None]
    others = [one for one in threads if one not in spinning]
    if not spinning or not all(stays_in_place(view, one) for one in spinning) or _may_be_changed(view, others):
        return None
    left = "all its other threads wait for threads of this process" if others else "it has no other thread"
    summary = (
        f"{start(who(spinning))} {verb(spinning, 'looks', 'look')} again and again at memory in {where(spinning[0])}, "
        f"and only another thread could change what {verb(spinning, 'it sees', 'they see')} there: {left}."
    )
    return Candidate(
        cause="other",
        confidence="low",
        summary=summary,
        culprits=tuple(view.parties),
        evidence=evidence_of(spinning, others),
    )


def _may_be_changed(view: JobView, others: Sequence[Party]) -> bool:
    """Whether a signal's handler, a child, or a thread that something outside may wake can change it."""
    process = view.snapshot.processes[0]
    if process.handlers is None or handler_of(process) is not None:
        return True
    activity = process.activity
    if activity is None or activity.children or activity.napping or activity.resting:
        return True
    return not all(_waits_for_own(one) for one in others)


def _waits_for_own(one: Party) -> bool:
    return stands(one) and one.syscall is not None and one.syscall[0] == FUTEX


LOST = (nobody_changes_it,)
