"""Servers with requests that no process works on: an engine core or a rank stands still, an answer was lost, or the
event loop sent a request to its own server."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.progress.begun import HANDLERS, begun
from gdbext.analysis.progress.named_waits import is_loop
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.overdue_answers import overdue_clients, overdue_text, waiting_clients
from gdbext.analysis.progress.own_hangs.loop_tasks import (
    is_on_the_way,
    requests_of,
    runs_loop,
    waiting_requests,
    waits_elsewhere,
)
from gdbext.analysis.progress.own_work import (
    listens_to_network,
    looked_long,
    may_be_fed,
    seconds_looked,
    waits_for_own_process,
    works_within,
)
from gdbext.analysis.progress.pool_tasks import FED_KINDS, stands
from gdbext.analysis.progress.running import lasting_call, own_locks
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import (
    COMMUNICATION,
    JobView,
    Party,
    calls_of,
    is_unaccepted,
    matches_any,
    other_ends,
    parties_of,
    parties_without,
    threads_of,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.causes.slow import CHILD_CPU
from gdbext.knowledge.engines.waits_between_parts import ANSWERS_OF_RANKS, EMPTY_TURNS
from gdbext.knowledge.frames.networks.fabrics import RAY_GET
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.model.codes import Given
from gdbext.model.job import RANK, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.tasks import PythonTask
from gdbext.model.text.patterns import regex

_EMPTY_TURNS = [(regex(function), regex(file)) for function, file in EMPTY_TURNS]
_OF_RANKS = (*COMMUNICATION, "implicit", "launch", "init", "teardown", "fatal")
"""Waits that the other rules judge."""


def nobody_answers(view: JobView) -> Optional[Candidate]:
    """Requests wait in a front end for the engine, whose cores and ranks all rest or stand; by its coroutines, or by
    what its clients were sent. While gdb holds the ranks no request can make progress, so that is not clear."""
    seen_enough = view.given is Given.LIVE and (view.has_two_looks or view.is_held)
    if not seen_enough or view.gone or view.unseen or view.of(*_OF_RANKS):
        return None
    asked = _by_coroutines(view) or _by_clients(view)
    others = parties_without(view.parties, asked.answered_by) if asked is not None else []
    if asked is None or any(_works(view, party) for party in others):
        return None
    if any(works_within(view, party) for party in view.parties):
        return None
    front = asked.fronts[0]
    standing = [party for party in others if not _rests(party) and not _asks_ranks(party)]
    busy = standing or [party for party in others if _asks_ranks(party)]
    fed = any(may_be_fed(view, party) for party in standing)
    if not asked.lasting or view.is_held or not looked_long(view) or any(map(_is_served_away, standing)) or fed:
        idle = who(others or asked.fronts)
        text = f"It is not clear yet whether anything hangs: {asked.lead}, and {idle} did not work on it."
        return not_clear(view, text, evidence_of(busy, [front]))
    hinted = [party for party in others if begun(view, party)]
    blamed = busy or hinted[:1] or [front]
    rest = parties_without(others, blamed)
    summary = f"{start(asked.lead)}, and nobody works on it."
    if standing:
        summary += f" {start(who(standing))} {verb(standing, 'waits', 'wait')} in {where(standing[0])}"
        summary += f"; {who(rest)} {verb(rest, 'waits', 'wait')} for work." if rest else "."
    elif busy:
        summary += (
            f" {start(who(busy))} {verb(busy, 'waits', 'wait')} in {where(busy[0])} for what the ranks answer, and "
            f"{who(rest)} {verb(rest, 'waits', 'wait')} for work: an answer was lost, or never sent."
        )
    elif hinted:
        summary += f" {start(begun(view, hinted[0])).rstrip(',')}."
    else:
        lost = "the request or its answer was lost, or the engine is paused"
        lost = "the engine has not got it" if asked.on_the_way else lost
        resting = rest or [front]
        summary += f" {start(who(resting))} {verb(resting, 'waits', 'wait')} for work: {lost}."
    sure = standing and all(stands(party) and not waits_for_own_process(party) for party in standing)
    return Candidate(
        cause="other",
        confidence="medium" if sure else "low",
        summary=summary,
        culprits=tuple(blamed),
        victims=tuple(parties_without(asked.fronts, blamed)),
        evidence=evidence_of(blamed, [front]),
    )


def call_without_end(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, a thread of a process beside the ranks has computed in one
    call of Python, while requests waited."""
    found = _long_call(view) if looked_long(view) else None
    if found is None:
        return None
    culprits = parties_of(view, [found])
    seconds = seconds_looked(view) or 0.0
    summary = (
        f"{start(who([found]))} has been in one call for {seconds:.0f} s, in {closed(where(found))} and "
        "requests wait. That is most likely an endless loop; a long computation looks the same."
    )
    return blame("other", "low", summary, culprits, parties_without(view.parties, culprits))


def call_takes_long(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    found = None if looked_long(view) else _long_call(view)
    if found is None:
        return None
    text = f"{who([found])} computes in {closed(where(found))} and requests wait."
    return not_clear(view, f"It is not clear yet whether anything hangs: {text}", evidence_of((), [found]))


def _long_call(view: JobView) -> Optional[Party]:
    if view.given is not Given.LIVE or not view.has_two_looks or not (_by_coroutines(view) or _by_clients(view)):
        return None
    beside = [party for party in view.parties if party.process.role != RANK]
    threads = (one for party in beside for one in threads_of(view, party.index, lambda one: one.helper is None))
    return next((one for one in threads if _computes(one) and _is_in_one_call(view, one)), None)


def turns_without_batch(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, requests waited, and the engine core slept in turns in
    which it ran no batch."""
    core = _without_batch(view) if looked_long(view) else None
    if core is None:
        return None
    seconds = seconds_looked(view) or 0.0
    summary = (
        f"{start(who([core]))} has found nothing to run for {seconds:.0f} s, in turn after turn, in "
        f"{closed(where(core))} and requests wait. What they need (blocks of the KV cache, a transfer, a grammar) is "
        "most likely held by requests that do not end."
    )
    return blame("other", "low", summary, [core], parties_without(view.parties, [core]))


def turn_without_batch(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    core = None if looked_long(view) else _without_batch(view)
    if core is None:
        return None
    text = f"{who([core])} ran no batch in its last turn, in {closed(where(core))} and requests wait."
    return not_clear(view, f"It is not clear yet whether anything hangs: {text}", evidence_of((), [core]))


def _without_batch(view: JobView) -> Optional[Party]:
    """Who slept so in this look and at least half of those before it."""
    if view.given is not Given.LIVE or not (_by_coroutines(view) or _by_clients(view)):
        return None
    for party in view.parties if view.has_two_looks else ():
        then = [look.same_party(party) for look in view.before]
        if _ran_no_batch(party) and 2 * sum(one is not None and _ran_no_batch(one) for one in then) >= len(then):
            return party
    return None


def _ran_no_batch(party: Party) -> bool:
    inner = next(party.python_calls(), None) if party.judged.rule in OWN_SLEEPS else None
    return inner is not None and any(inner.is_in(function, file) for function, file in _EMPTY_TURNS)


def _is_in_one_call(view: JobView, one: Party) -> bool:
    """Not that of the loop in which it takes requests, and ends with none of them."""
    call = lasting_call(view, one)
    return call is not None and not is_loop(call)


def _computes(one: Party) -> bool:
    return one.thread is not None and one.thread.state == "R" and (one.thread.cpu or 0.0) >= CHILD_CPU


class _Asked(NamedTuple):
    """Requests that wait."""

    fronts: List[Party]  # in whom they wait, the one that shows it best first
    lead: str  # which request waits where
    lasting: bool  # the same ones wait since the first look
    answered_by: Sequence[Party]  # those of the front ends that only hand them on
    on_the_way: bool = False  # the engine has not got one


def _by_coroutines(view: JobView) -> Optional[_Asked]:
    asking = [(party, tasks) for party, tasks in ((one, requests_of(one)) for one in view.parties) if tasks]
    if not asking or len(asking) == len(view.parties):
        return None
    lasting = [(party, _since_first_look(view, party, tasks)) for party, tasks in asking]
    lasting = sorted(lasting, key=lambda one: not one[1])  # first those that have waited all the time
    (front, tasks), fronts = lasting[0], [party for party, _ in lasting]
    lead = waiting_requests(tasks or requests_of(front), who([front]))
    stays = bool(tasks) and not all(map(waits_elsewhere, tasks))
    return _Asked(fronts, lead, stays, fronts, any(map(is_on_the_way, tasks)))


def _by_clients(view: JobView) -> Optional[_Asked]:
    """Of engines, which answer each request: other programs may have clients that only listen. The whole engine may be
    one process."""
    fronts = [party for party in view.parties if party.process.engine and waiting_clients(view, party)]
    if not fronts:
        return None
    fronts.sort(key=lambda party: not overdue_clients(view, party))
    late = overdue_clients(view, fronts[0])
    lead = overdue_text(late or waiting_clients(view, fronts[0]), who(fronts[:1]))
    return _Asked(fronts, lead, bool(late), [party for party in fronts if party.judged.idle])


def asks_itself(view: JobView) -> Optional[Candidate]:
    """The thread of an event loop, or the only thread of a process, waits for its own server, which accepts no
    connection before this call returns. Another thread may be the one that accepts it: where one is busy, this one just
    waits for its turn."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for index in range(len(view.processes)):
        own = threads_of(view, index)
        one = next((one for one in own if stands(one) and _asks_own(view, one)), None)
        loop = one is not None and runs_loop(one)
        if one is None or works_within(view, one) or not (loop or len(own) == 1):
            continue
        others = [party for party in view.parties if party.index != index]
        rivals = [other for other in own if other.lwp != one.lwp and not _leaves_clients(other, one)]
        would = "This event loop" if loop else "This thread"
        blocked = f"{would} would have to accept that connection, but it is blocked until the call returns."
        if rivals:
            blocked = (
                f"If this event loop has to accept that connection, it never will; {who(rivals)}, in "
                f"{closed(where(rivals[0]))} may have to accept it instead."
            )
        return Candidate(
            cause="other",
            confidence="low" if rivals else "high" if loop else "medium",
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
    if party.polls:
        return False
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


def _asks_own(view: JobView, one: Party) -> bool:
    """Whether it waits on a connection to its own process that has not been accepted. The process that started a server
    may hold its listening socket too, but accepts no connection."""
    ends = other_ends(one)
    if not ends or not is_unaccepted(one) or not all(one.process.pid in pids for pids in ends):
        return False
    others = {pid for pids in ends for pid in pids if pid != one.process.pid}
    known = {process.pid: process for process in view.snapshot.processes if process.threads}
    return all(pid in known and not _accepts(known[pid]) for pid in others)


def _accepts(process: RankSnapshot) -> bool:
    """Whether a thread of it waits for clients over TCP, or may do so when it has ended what it is at."""
    if listens_to_network(process):
        return True
    return any(matches_any(HANDLERS, (frame.function or "" for frame in thread.calls)) for thread in process.threads)


LOST = (nobody_answers, asks_itself, call_without_end, turns_without_batch)
PATTERNS = (call_takes_long, turn_without_batch)
