"""Threads that wait for a lock of Python which a call further out on their own stack has taken."""

from __future__ import annotations

from typing import List, Optional, Tuple

from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import has_acted
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, calls_of, matches_any, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, who
from gdbext.knowledge.frames.python.interpreter import REENTRANT, TAKES_LOCK
from gdbext.model.codes import Given
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex

_REENTRANT = regex(REENTRANT)


def taken_further_out(view: JobView) -> Optional[Candidate]:
    """A signal handler, a callback or a finaliser called the function again after it had taken the lock; no other
    thread of the process runs."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for party in view.parties:
        again = _again(party)
        others = [one for one in threads_of(view, party.index) if one.thread is not party.thread]
        if again is None or any(map(has_acted, others)):
            continue
        inner, outer = again
        summary = (
            f"Self-deadlock: {who([party])} waits in {closed(where(party))} for a lock that it most likely has taken "
            f"before: further out on the same stack {inner.function} is at line {outer.line}, past line {inner.line}, "
            "where it takes the lock. A signal handler, a callback or a finaliser has called it again."
        )
        victims = parties_without(view.parties, [party])
        return Candidate(
            cause="lock-order-deadlock",
            confidence="low" if any(one.judged.helper is None for one in others) else "medium",
            summary=summary,
            culprits=(party,),
            victims=tuple(victims),
            evidence=evidence_of([party], victims),
            itself=True,
        )
    return None


def _again(party: Party) -> Optional[Tuple[Frame, Frame]]:
    """The Python function that asks for the lock, and its earlier call further out."""
    if party.judged.rule != TAKES_LOCK or not stands(party) or matches_any(_REENTRANT, calls_of(party)):
        return None
    calls = party.thread.calls if party.thread is not None else ()
    python: List[Frame] = [frame for frame in calls if frame.language == "python"]
    if not python or python[0].line is None:
        return None
    inner = python[0]
    same = (one for one in python[2:] if (one.function, one.file) == (inner.function, inner.file))
    outer = next((one for one in same if one.line is not None and one.line > (inner.line or 0)), None)
    return (inner, outer) if outer is not None else None


LOST = (taken_further_out,)
