"""Servers with requests that no process works on: an engine core or a rank stands still, an answer was lost, or the
event loop sent a request to its own server."""

from __future__ import annotations

from typing import List, Optional

from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.overdue_answers import overdue_clients, overdue_text
from gdbext.analysis.progress.own_hangs.loop_tasks import is_on_the_way, requests_of, waiting_requests
from gdbext.analysis.progress.own_work import is_working, looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, other_ends, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.causes.asyncio_waits import RUNS_LOOP
from gdbext.knowledge.causes.slow import CHILD_CPU
from gdbext.knowledge.engines.waits_between_parts import ANSWERS_OF_RANKS
from gdbext.model.codes import Given
from gdbext.model.locks import NOT_ACCEPTED
from gdbext.model.text.patterns import regex

_OF_RANKS = (*COMMUNICATION, "implicit", "launch", "init", "teardown", "fatal")
"""Waits that the other rules judge."""
_LOOP, _LOOP_FILES = regex(RUNS_LOOP), regex(r"(^|/)(asyncio|uvloop)/")


def nobody_answers(view: JobView) -> Optional[Candidate]:
    """Requests wait in a front end for the engine, whose cores and ranks all rest or stand; by its coroutines, or by
    what its clients were sent."""
    if view.given is not Given.LIVE or not view.has_two_looks or view.gone or view.unseen or view.of(*_OF_RANKS):
        return None
    asking = [(party, tasks) for party, tasks in ((one, requests_of(one)) for one in view.parties) if tasks]
    fronts = [party for party, _ in asking] or _with_overdue_clients(view)
    resting = fronts if asking else [party for party in fronts if party.judged.idle]
    others = parties_without(view.parties, resting)
    if not fronts or not (others or not asking) or any(_works(view, party) for party in others):
        return None
    front, tasks = fronts[0], asking[0][1] if asking else []
    lead = (
        waiting_requests(tasks, who([front]))
        if tasks
        else start(overdue_text(overdue_clients(view, front), who([front])))
    )
    standing = [party for party in others if not _rests(party) and not _asks_ranks(party)]
    busy = standing or [party for party in others if _asks_ranks(party)]
    if not looked_long(view):
        text = f"It is not clear yet whether anything hangs: {lead}, and {who(others or fronts)} did not work on it."
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
        idle = rest or [front]
        summary += f" {start(who(idle))} {verb(idle, 'waits', 'wait')} for work: {lost}."
    return Candidate(
        cause="other",
        confidence="medium" if standing and all(map(stands, standing)) else "low",
        summary=summary,
        culprits=tuple(blamed),
        victims=tuple(parties_without(fronts, blamed)),
        evidence=evidence_of(blamed, [front]),
    )


def asks_itself(view: JobView) -> Optional[Candidate]:
    """The thread of an event loop waits for its own server, which accepts no connection before this call returns."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for index in range(len(view.processes)):
        for one in threads_of(view, index):
            if not (stands(one) and _asks_own(one) and _runs_loop(one)):
                continue
            summary = (
                f"{start(who([one]))} waits in {closed(where(one))} for its own process to answer. This event loop "
                "would have to accept that connection, but it is blocked until the call returns."
            )
            others = [party for party in view.parties if party.index != index]
            return Candidate(
                cause="other",
                confidence="high",
                summary=summary,
                culprits=(one,),
                victims=tuple(others),
                evidence=evidence_of([one], others),
            )
    return None


def _with_overdue_clients(view: JobView) -> List[Party]:
    """Of engines, which answer each request: other programs may have clients that only listen. Its own threads must
    rest as well."""
    fronts = [party for party in view.parties if party.process.engine and overdue_clients(view, party)]
    return fronts if not any(is_working(view, party) for party in fronts) else []


def _works(view: JobView, party: Party) -> bool:
    """Whether it may be at work on a request."""
    thread = party.thread
    if thread is None or thread.state == "R" or (thread.cpu or 0.0) >= CHILD_CPU:
        return True
    waits = _rests(party) or _asks_ranks(party)
    return not waits and (party.index in view.moved or not stands(party))


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


def _runs_loop(one: Party) -> bool:
    calls = one.thread.calls if one.thread is not None else ()
    return any(_LOOP.search(frame.function or "") and _LOOP_FILES.search(frame.file or "") for frame in calls)


LOST = (nobody_answers, asks_itself)
