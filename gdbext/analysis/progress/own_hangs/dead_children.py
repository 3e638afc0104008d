"""Processes that act as if another one, which has ended, were there: they look at memory again and again for what a
child was to write, read its output to the end, or rest; pools whose workers end as soon as they are started; and
condition variables whose waiter ended inside of its wait."""

from __future__ import annotations

import signal
from typing import Iterator, Optional, Sequence, Tuple

from gdbext.analysis.progress.begun import asks, ended_child
from gdbext.analysis.progress.named_waits import runs_until_done
from gdbext.analysis.progress.own_work import is_independent_job, is_working, is_yielding, looked_long
from gdbext.analysis.progress.pool_tasks import stands, waits_for_result
from gdbext.analysis.progress.running import has_acted, own_locks, seconds_in_place
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    matches_any,
    parties_of,
    parties_without,
    threads,
    threads_of,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.glibc_locks import CONDITION_LEFT
from gdbext.knowledge.runtimes.signals import FATAL
from gdbext.knowledge.runtimes.untimed_calls import TAKES_RESULTS
from gdbext.model.activity import Ended
from gdbext.model.codes import Given
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Evidence

_MOST_NAMED = 3
_READS = ("io", "ipc-queue")
_TAKES_RESULTS = tuple(map(regex, TAKES_RESULTS))
_LEAVES_CONDITION = regex(CONDITION_LEFT)
_CRASHES = (signal.SIGKILL, *FATAL)


def spins_for_dead_child(view: JobView) -> Optional[Candidate]:
    """They have been at one place for as long as an endless loop takes to be called one; nobody else acts."""
    if not is_independent_job(view) or not looked_long(view):
        return None
    spinning = [party for party in view.parties if _spins(view, party)]
    others = parties_without(view.parties, spinning)
    if not spinning or any(_works(one) for party in others for one in threads_of(view, party.index)):
        return None
    own = [one for party in spinning for one in threads_of(view, party.index) if one.lwp != party.lwp]
    if any(has_acted(one) for one in own if one.judged.helper is None):
        return None
    gone = [(child, party.index) for party in spinning for child in _failed(party)][:_MOST_NAMED]
    failed = [ended_child(child) for child, _ in gone]
    seconds = min(seconds_in_place(view, one, ()) for one in spinning)
    summary = (
        f"{start(who(spinning))} {verb(spinning, 'has', 'have')} been checking memory in {where(spinning[0])} for "
        f"{seconds:.0f} s. {'A child' if len(failed) == 1 else 'Children'} ended with an error: {', '.join(failed)}. "
        "Most likely the loop waits for what would have been written there."
    )
    return Candidate(
        cause="other",
        confidence="low",
        summary=summary,
        culprits=tuple(spinning),
        victims=tuple(others),
        evidence=(*evidence_of(spinning, others), *_ended(gone)),
    )


def rests_without_child(view: JobView) -> Optional[Candidate]:
    """No process acted for as long as an endless loop takes to be called one, and the parent has not reaped the child.
    A parent that waits for its children to empty a queue is named at once: none of them is left."""
    if not is_independent_job(view) or any(is_working(view, party) for party in view.parties):
        return None
    resting = [party for party in view.parties if _crashed(party) or _is_left_alone(party)]
    others = parties_without(view.parties, resting)
    if not resting or not all(map(_rests, resting)) or not all(map(_rests, others)):
        return None
    if not (looked_long(view) or all(map(asks, resting))):
        return None
    gone = [(child, party.index) for party in resting for child in _failed(party)][:_MOST_NAMED]
    failed = ", ".join(ended_child(child) for child, _ in gone)
    for_what = "work" if all(party.judged.idle for party in resting) else "messages"
    summary = (
        f"{start(who(resting))} {verb(resting, 'waits', 'wait')} for {for_what} in {where(resting[0])}, although "
        f"{'a child has' if len(gone) == 1 else 'children have'} ended with an error: {failed}. Nobody has asked for "
        "the exit status since, and no answer of the child will come."
    )
    return Candidate(
        cause="other",
        confidence="low",
        summary=summary,
        culprits=tuple(resting),
        victims=tuple(others),
        evidence=(*evidence_of(resting, others), *_ended(gone)),
    )


def waits_for_output_of_dead_child(view: JobView) -> Optional[Candidate]:
    """It reads its child's output to the end. The child has ended, and a process outside the job has the pipe open."""
    found = ((party, _outsider(view, party)) for party in view.parties)
    reader, outsider = next(((one, other) for one, other in found if other), (None, ""))
    if reader is None or reader.process.activity is None:
        return None
    child = reader.process.activity.ended[0]
    summary = (
        f"{start(who([reader]))} waits in {closed(where(reader))} for the end of what its child writes. That "
        f"child, {ended_child(child)}, has ended, but {outsider} still has the pipe open: most likely the child "
        "started that process."
    )
    return Candidate(
        cause="other",
        confidence="low",
        summary=summary,
        culprits=(reader,),
        victims=tuple(parties_without(view.parties, [reader])),
        evidence=(*evidence_of([reader], ()), *_ended([(child, reader.index)])),
    )


def replaces_its_workers(view: JobView) -> Optional[Candidate]:
    """It waits for what its pool computes. All workers that the pool had have ended, others were started in their
    place, and the thread that takes results was not woken meanwhile: no worker has finished a task."""
    waiting = [party for party in view.parties if waits_for_result(party) and _replaced(party)]
    others = parties_without(view.parties, waiting)
    takers = [one for party in waiting for one in threads_of(view, party.index) if one.is_inside(*_TAKES_RESULTS)]
    if not takers or not all(map(stands, takers)) or any(one.process.alive is not False for one in others):
        return None
    first = waiting[0]
    activity = first.process.activity
    seconds = activity.seconds if activity is not None else 0.0
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {closed(where(first))} for what the workers of a "
        f"pool compute. All workers ended within {seconds:.1f} s, and others took their places, but no result came. "
        "Most likely each ends with an error before it has done a task: its initializer or its imports fail."
    )
    return Candidate(
        cause="other",
        confidence="medium",
        summary=summary,
        culprits=tuple(waiting),
        evidence=evidence_of(waiting, takers),
    )


def waiter_has_ended(view: JobView) -> Optional[Candidate]:
    """Who signals a condition variable, or destroys it, waits until those that were woken before have left it. For as
    long as an endless loop takes to be called one, one of them has not, and the variable lies in shared memory."""
    if view.given is not Given.LIVE or not looked_long(view):
        return None
    waiting = [one for one in threads(view) if stands(one) and matches_any(_LEAVES_CONDITION, calls_of(one))]
    waiting = [one for one in waiting if any(lock.shared and lock.still for lock in own_locks(one))]
    if not waiting:
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} in {closed(where(waiting[0]))} until threads that "
        "were woken from a condition variable in shared memory have left it. One of them has not for long: most likely "
        "its process was killed in pthread_cond_wait, or is stopped. The variable cannot be used any more."
    )
    culprits = parties_of(view, waiting)
    return blame("other", "medium", summary, culprits, parties_without(view.parties, culprits), shown=waiting)


def _replaced(party: Party) -> int:
    activity = party.process.activity
    return activity.replaced if activity is not None else 0


def _outsider(view: JobView, party: Party) -> str:
    """The sleeping process outside the job that holds the other end of the pipe; "" if there is none, or if a child of
    the reader still lives."""
    activity = party.process.activity
    if activity is None or not activity.ended or activity.child_lives:
        return ""
    ours = {process.pid for process in view.snapshot.processes}
    for peer in party.process.peers:
        pids = () if isinstance(peer.processes, Missing) else peer.processes
        reads = peer.thread == party.lwp and peer.file.startswith("pipe:") and party.kind in _READS
        if reads and pids and ours.isdisjoint(pids) and set(peer.states) == {"S"}:
            return f"pid {pids[0]} ({peer.names[0]})"
    return ""


def _crashed(party: Party) -> bool:
    """Whether it is idle, and a child of it was killed or crashed."""
    return party.judged.idle and any(one.signal in _CRASHES for one in _died(party))


def _is_left_alone(party: Party) -> bool:
    """Whether it waits for messages, and all children that it had have ended, some with an error."""
    activity = party.process.activity
    alone = activity is not None and not activity.child_lives and not activity.napping
    return alone and party.kind == "ipc-queue" and bool(_failed(party))


def _failed(party: Party) -> Sequence[Ended]:
    activity = party.process.activity
    return activity.failed if activity is not None else ()


def _rests(party: Party) -> bool:
    return party.judged.idle or party.kind in ("ipc-queue", "condvar-idle")


def _ended(gone: Sequence[Tuple[Ended, int]]) -> Iterator[Evidence]:
    for child, index in gone:
        yield Evidence(f"{ended_child(child)}: its parent has not asked for its exit status", index)


def _died(party: Party) -> Sequence[Ended]:
    activity = party.process.activity
    return activity.killed if activity is not None else ()


def _spins(view: JobView, party: Party) -> bool:
    """Whether it has run at one place, and for what a child of it that has failed was to write: one of the looks saw it
    give its processor away there, so it computes nothing, or its function's name says that it waits."""
    if not _failed(party) or seconds_in_place(view, party, ()) < view.spinning_after:
        return False
    same = filter(None, (look.same_party(party) for look in (*view.before, view)))
    return (bool(_died(party)) and any(map(is_yielding, same))) or runs_until_done(party)


def _works(one: Party) -> bool:
    """Whether it acted, and did more than to sleep again and again."""
    return has_acted(one) and one.judged.rule not in OWN_SLEEPS


LOST = (
    spins_for_dead_child,
    rests_without_child,
    waits_for_output_of_dead_child,
    replaces_its_workers,
    waiter_has_ended,
)
