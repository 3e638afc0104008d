"""Nothing hangs: ranks that wait for work, compute, or went on between two looks."""

from __future__ import annotations

from typing import Optional

from gdbext.analysis.across import may_progress, waiting_for_others
from gdbext.analysis.candidate import Candidate, evidence_of, majority
from gdbext.analysis.view import JobView
from gdbext.analysis.wording import start, verb, where, who


def nothing_to_do(view: JobView) -> Optional[Candidate]:
    """Every rank waits for work, or is busy outside of any collective."""
    idle = view.of("idle")
    others = [party for party in view.parties if party not in idle]
    leaders = [party for party in others if party.kind in ("io", "condvar-idle", "ipc-queue", "python-code")]
    if (
        not idle
        or view.unseen
        or view.gone
        or view.snapshot.absent
        or len(leaders) < len(others)
        or majority(others, view)
    ):
        return None
    alone = len(view.parties) == 1
    members = [party for party in view.parties if party.process.rank is not None] or list(view.parties)
    summary = (
        f"{start(who(list(view.parties)))} {verb(view.parties, 'waits', 'wait')} for work: {where(idle[0])} is "
        f"where an idle worker sits. "
        + ("A single process cannot show whether its peers are idle too." if alone else "Nothing hangs.")
    )
    confidence = "low" if alone else "high" if not others and len(members) > 1 else "medium"
    return Candidate(
        "not-a-hang", confidence, 70 if not alone else 30, summary, (), (), (), evidence_of((), view.parties)
    )


def all_busy(view: JobView) -> Optional[Candidate]:
    """Every rank computes."""
    busy = [party for party in view.parties if may_progress(party)]
    if len(busy) < 2 or len(busy) < len(view.parties) or view.unseen or view.snapshot.absent:
        return None
    summary = f"{start(who(busy))} are running code, for example {where(busy[0])}. No rank waits for another."
    return Candidate("not-a-hang", "medium", 70, summary, (), (), (), evidence_of((), busy))


def goes_on(view: JobView) -> Optional[Candidate]:
    """Between two looks ranks went on: slow, not stuck.

    While some wait for others it is the waiting ones that must have gone on: a culprit may well be busy.
    """
    waiting = [*waiting_for_others(view), *view.of("implicit", "launch", "init", "teardown")]
    went = [party for party in view.parties if party.index in view.moved and party not in view.gone]
    proof = [party for party in went if party in waiting] if waiting else went
    if not proof or view.of("fatal"):
        return None
    all_of_them = len(went) == len(view.parties)
    rest = [party for party in view.parties if party not in went]
    ranks = [
        one.rank for one in {party.index: party.process for party in view.parties}.values() if one.rank is not None
    ]
    if rest and len(set(ranks)) < len(ranks):
        return None  # ranks of several jobs: progress of one says nothing of the other
    summary = f"{start(who(went))} went on between the two looks, so the job is not stuck. " + (
        "It may be slow."
        if all_of_them
        else f"{start(who(rest))} did not move: what {verb(rest, 'it is', 'they are')} in may just take long."
    )
    whole = len(went) > 1 or view.world_size == 1  # one of several ranks speaks for itself only
    confidence = "high" if all_of_them and whole else "medium"
    return Candidate("not-a-hang", confidence, 88, summary, (), (), (), evidence_of((), went))


PATTERNS = (goes_on, nothing_to_do, all_busy)
