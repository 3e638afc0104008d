"""Threads that wait for a lock of Python which a call further out on their own stack has taken.

A function that is on the stack twice may as well take the locks of two objects. Where Python itself has called code in
the midst of the outer call, it is most likely one lock.
"""

from __future__ import annotations

from typing import Optional, Tuple

from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import has_acted, own_locks
from gdbext.analysis.progress.slow import busy_child
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, calls_of, matches_any, parties_without, threads, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, who
from gdbext.knowledge.frames.python.interpreter import BETWEEN_INSTRUCTIONS, NOT_REENTRANT, TAKES_LOCK
from gdbext.model.codes import Given
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex

_NOT_REENTRANT, _BETWEEN_INSTRUCTIONS = map(regex, (NOT_REENTRANT, BETWEEN_INSTRUCTIONS))


def taken_further_out(view: JobView) -> Optional[Candidate]:
    """A signal handler, a callback or a finaliser called the function again after it had taken the lock; no other
    thread of the process runs."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for party in view.parties:
        again = _again(party)
        if again is None:
            continue
        inner, outer, reentered = again
        others = [one for one in threads_of(view, party.index) if one.thread is not party.thread]
        holders = [one for one in others if not _want_the_same(one, party)]
        if any(map(has_acted, others)) or (not reentered and (holders or _others_work(view, party))):
            continue
        place = f"further out on the same stack {inner.function} is at line {outer.line}, past line {inner.line}"
        summary = (
            f"Self-deadlock: {who([party])} waits in {closed(where(party))} for a lock that it most likely has taken "
            f"before: {place}, where it takes the lock. A signal handler, callback or finaliser has called it again."
            if reentered
            else f"{start(who([party]))} waits in {closed(where(party))} for a lock, and has passed a lock of the same "
            f"code: {place}, where it takes one. If that is the same lock, it waits for itself."
        )
        victims = parties_without(view.parties, [party])
        return Candidate(
            cause="lock-order-deadlock",
            confidence="medium" if reentered and all(one.judged.idle for one in holders) else "low",
            summary=summary,
            culprits=(party,),
            victims=tuple(victims),
            evidence=evidence_of([party], victims),
            itself=True,
        )
    return None


def _want_the_same(one: Party, party: Party) -> bool:
    """Whether two threads wait for one lock: neither has it."""
    wanted = {wait.address for wait in own_locks(party)}
    return any(wait.address in wanted for wait in own_locks(one))


def _others_work(view: JobView, party: Party) -> bool:
    """Whether other processes or a child do anything that a thread may have the lock for."""
    return busy_child(party) is not None or any(has_acted(one) for one in threads(view) if one.index != party.index)


def _again(party: Party) -> Optional[Tuple[Frame, Frame, bool]]:
    """The Python function that asks for the lock, its earlier call further out, and whether Python itself has run code
    in the midst of that one."""
    if party.judged.rule != TAKES_LOCK or not stands(party) or not matches_any(_NOT_REENTRANT, calls_of(party)):
        return None
    if any(isinstance(wait.owner, int) and wait.owner != party.lwp for wait in own_locks(party)):
        return None
    calls = party.calls
    first, *rest = [at for at, frame in enumerate(calls) if frame.language == "python"] or [0]
    inner = calls[first]
    if inner.line is None:
        return None
    for at in rest[1:]:
        frame = calls[at]
        same = (frame.function, frame.file) == (inner.function, inner.file)
        if same and frame.line is not None and frame.line > inner.line:
            return (
                inner,
                frame,
                matches_any(_BETWEEN_INSTRUCTIONS, (one.function or "" for one in calls[first + 1 : at])),
            )
    return None


LOST = (taken_further_out,)
