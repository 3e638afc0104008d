"""Servers with requests that no process works on: an engine core or a rank stands still, an answer was lost, or the
event loop sent a request to its own server."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from gdbext.analysis.progress.begun import HANDLERS
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_hangs.loop_tasks import (
    is_on_the_way,
    requests_of,
    runs_loop,
    waiting_requests,
    waits_elsewhere,
)
from gdbext.analysis.progress.own_work import looked_long, may_be_fed, waits_for_own_process, works_within
from gdbext.analysis.progress.pool_tasks import FED_KINDS, stands
from gdbext.analysis.progress.running import own_locks
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import (
    COMMUNICATION,
    JobView,
    Party,
    calls_of,
    matches_any,
    other_ends,
    parties_without,
    threads_of,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.causes.slow import CHILD_CPU
from gdbext.knowledge.engines.waits_between_parts import ANSWERS_OF_RANKS
from gdbext.knowledge.frames.networks.fabrics import RAY_GET
from gdbext.model.codes import Given
from gdbext.model.locks import NOT_ACCEPTED
from gdbext.model.missing import Missing
from gdbext.model.tasks import PythonTask

_OF_RANKS = (*COMMUNICATION, "implicit", "launch", "init", "teardown", "fatal")
"""Waits that the other rules judge."""


def nobody_answers(view: JobView) -> Optional[Candidate]:
    """Requests wait in a front end for the engine, whose cores and ranks all rest or stand."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.gone or view.unseen or view.of(*_OF_RANKS):
        return None
    asking = [(party, tasks) for party, tasks in ((one, requests_of(one)) for one in view.parties) if tasks]
    others = parties_without(view.parties, [party for party, _ in asking])
    if not asking or not others or any(_works(view, party) for party in others):
        return None
    if any(works_within(view, party) for party in view.parties):
        return None
    asking = [(party, _since_first_look(view, party, tasks)) for party, tasks in asking]
    asking = sorted(asking, key=lambda one: not one[1])  # first those that have waited all the time
    front, tasks = asking[0]
    standing = [party for party in others if not _rests(party) and not _asks_ranks(party)]
    busy = standing or [party for party in others if _asks_ranks(party)]
    waited = tasks or requests_of(front)
    fed = any(may_be_fed(view, party) for party in standing)
    lead = waiting_requests(waited, who([front]))
    if (
        not tasks
        or not looked_long(view)
        or all(map(waits_elsewhere, tasks))
        or any(map(_is_served_away, standing))
        or fed
    ):
        text = f"It is not clear yet whether anything hangs: {lead}, and {who(others)} did not work on it."
        return not_clear(view, text, evidence_of(busy, [front]))
    blamed = busy or [front]
    rest = parties_without(others, blamed)
    summary = f"{lead}, and nobody works on it."
    if standing:
        summary += f" {start(who(standing))} {verb(standing, 'waits', 'wait')} in {where(standing[0])}"
        summary += f"; {who(rest)} {verb(rest, 'waits', 'wait')} for work." if rest else "."
    elif busy:
        summary += (
            f" {start(who(busy))} {verb(busy, 'waits', 'wait')} in {where(busy[0])} for what the ranks answer, and "
            f"{who(rest)} {verb(rest, 'waits', 'wait')} for work: an answer was lost, or never sent."
        )
    else:
        lost = "the request or its answer was lost, or the engine is paused"
        lost = "the engine has not got it" if any(map(is_on_the_way, tasks)) else lost
        summary += f" {start(who(rest))} {verb(rest, 'waits', 'wait')} for work: {lost}."
    sure = standing and all(stands(party) and not waits_for_own_process(party) for party in standing)
    return Candidate(
        cause="other",
        confidence="medium" if sure else "low",
        summary=summary,
        culprits=tuple(blamed),
        victims=tuple(parties_without([party for party, _ in asking], blamed)),
        evidence=evidence_of(blamed, [front]),
    )


def asks_itself(view: JobView) -> Optional[Candidate]:
    """The thread of an event loop waits for its own server, which accepts no connection before this call returns.
    Another thread may be the one that accepts it: where one is busy, this one just waits for its turn."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for index in range(len(view.processes)):
        own = threads_of(view, index)
        one = next((one for one in own if stands(one) and _asks_own(one) and runs_loop(one)), None)
        if one is None or works_within(view, one):
            continue
        others = [party for party in view.parties if party.index != index]
        rivals = [other for other in own if other.lwp != one.lwp and not _leaves_clients(other, one)]
        blocked = "This event loop would have to accept that connection, but it is blocked until the call returns."
        if rivals:
            blocked = (
                f"If this event loop has to accept that connection, it never will; {who(rivals)}, in "
                f"{closed(where(rivals[0]))} may have to accept it instead."
            )
        return Candidate(
            cause="other",
            confidence="low" if rivals else "high",
            summary=f"{start(who([one]))} waits in {closed(where(one))} for its own process to answer. {blocked}",
            culprits=(one,),
            victims=tuple(others),
            evidence=evidence_of([one], others),
        )
    return None


def _leaves_clients(other: Party, loop: Party) -> bool:
    """Whether a thread beside that of the loop accepts no client: it belongs to a library, waits for the loop's thread,
    for work or for other threads in no function of a server."""
    if other.judged.helper is not None or other.judged.idle or {wait.owner for wait in own_locks(other)} == {loop.lwp}:
        return True
    return other.kind in FED_KINDS and not (runs_loop(other) or matches_any(HANDLERS, calls_of(other)))


def _works(view: JobView, party: Party) -> bool:
    """Whether it may be at work on a request."""
    thread = party.thread
    if thread is None or thread.state == "R" or (thread.cpu or 0.0) >= CHILD_CPU:
        return True
    waits = _rests(party) or _asks_ranks(party)
    return not waits and (party.index in view.moved or not stands(party))


def _since_first_look(view: JobView, party: Party, tasks: Sequence[PythonTask]) -> List[PythonTask]:
    """Those that stood at the same place in every look: a server that works has other requests after a while."""
    for look in view.before:
        then = look.same_process(party.process)
        known = {_standing_at(task) for task in then.tasks} if then is not None else set()
        tasks = [task for task in tasks if _standing_at(task) in known]
    return list(tasks)


def _standing_at(task: PythonTask) -> Tuple[object, ...]:
    return task.thread, task.name, tuple((frame.function, frame.line) for frame in task.frames)


def _is_served_away(party: Party) -> bool:
    """Whether others than the processes that were read may work on what it waits for: on another host, or a service."""
    peers = [peer.processes for peer in party.process.peers if peer.thread == party.lwp]
    return party.judged.rule == RAY_GET or any(isinstance(one, Missing) for one in peers)


def _rests(party: Party) -> bool:
    return party.judged.idle and not _asks_ranks(party)


def _asks_ranks(party: Party) -> bool:
    return party.judged.rule in ANSWERS_OF_RANKS


def _asks_own(one: Party) -> bool:
    """Whether it waits on a connection to its own process that has not been accepted."""
    files = (peer.file for peer in one.process.peers if peer.thread == one.lwp)
    ends = other_ends(one)
    itself = bool(ends) and all(set(pids) == {one.process.pid} for pids in ends)
    return itself and any(NOT_ACCEPTED in file for file in files)


LOST = (nobody_answers, asks_itself)
