"""Calls that stop something and wait for the end of a thread, which itself waits for its next request: nobody has told
it to end, or it cannot be told while it waits there."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from gdbext.analysis.progress.named_waits import stops_something
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import is_at_rest, is_independent_job, is_working, looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import own_locks
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, who


def end_not_told(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, nobody worked, and the thread was at rest."""
    found = _stopping(view) if view.before and looked_long(view) else None
    if found is None:
        return None
    culprits = [party for party in view.parties if party.index == found[0].index]
    others = parties_without(view.parties, culprits)
    return Candidate(
        cause="other",
        confidence="low",
        summary=f"{start(_said(*found))}. None comes, and nothing has told that thread to end: close what it waits "
        "for, or wake it up, before you join it.",
        culprits=tuple(culprits),
        victims=tuple(others),
        evidence=evidence_of(found, others),
    )


def may_be_told_to_end(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    found = None if view.before and looked_long(view) else _stopping(view)
    if found is None:
        return None
    text = f"It is not clear yet whether anything hangs: {_said(*found)}."
    return not_clear(view, text, evidence_of((), found))


def _said(stopping: Party, ended: Party) -> str:
    return (
        f"{who([stopping])} stops something in {closed(where(stopping))} and waits there for the end of "
        f"{who([ended])}, which waits for its next request in {where(ended)}"
    )


def _stopping(view: JobView) -> Optional[Tuple[Party, Party]]:
    """A thread that joins another one in a call that stops something, and that other one, which is at rest."""
    if not is_independent_job(view) or any(is_working(view, party) for party in view.parties):
        return None
    return next(_pairs(view), None)


def _pairs(view: JobView) -> Iterator[Tuple[Party, Party]]:
    for process in view.snapshot.processes:
        threads = threads_of(view, process.index)
        for one in threads:
            ends = {wait.owner for wait in own_locks(one)} if stops_something(one) and stands(one) else ()
            for other in threads:
                if other.lwp in ends and stands(other) and _waits_for_request(view, other):
                    yield one, other


def _waits_for_request(view: JobView, one: Party) -> bool:
    peers = [peer for peer in one.process.peers if peer.thread == one.lwp]
    return one.judged.idle or any(is_at_rest(view, peer) for peer in peers)


LOST = (end_not_told,)
PATTERNS = (may_be_told_to_end,)
