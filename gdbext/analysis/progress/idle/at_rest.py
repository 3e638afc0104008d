"""Programs of which no process works: at rest until a request comes, or held up by something outside.

At rest one process waits for whoever connects, and all the others for messages that come of it. Who waits for a lock, a
child or a result, or for room to write, has begun something.
"""

from __future__ import annotations

from typing import Collection, FrozenSet, NamedTuple, Optional, Sequence

from gdbext.analysis.progress.begun import HANDLERS, asks, is_owed_answer
from gdbext.analysis.progress.named_waits import is_stopping, waits_once
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import (
    goes_on_alone,
    has_code,
    is_independent_job,
    is_serving,
    is_working,
    listens_to_network,
    looked_long,
    waits_inside,
)
from gdbext.analysis.progress.pool_tasks import inside_task, waits_for_result
from gdbext.analysis.progress.running import for_ever, own_locks
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    matches_any,
    other_ends,
    parties_without,
    threads,
    threads_of,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.frames.helper_threads import BLOCKS_ON
from gdbext.knowledge.frames.system.libc import GO_PARK, JOINS
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.system_calls import MQ_TIMEDRECEIVE, READ, READV, RECVFROM, RECVMSG, WAIT4
from gdbext.knowledge.runtimes.untimed_calls import CHILD_WAITS
from gdbext.model.codes import Code, Given
from gdbext.model.locks import LISTENING
from gdbext.model.text.patterns import regex

_BLOCKS_ON = regex(BLOCKS_ON)
_RECEIVES = (READ, READV, RECVFROM, RECVMSG, MQ_TIMEDRECEIVE)


class _Resting(NamedTuple):
    """The processes of a program whose messages all come, directly or not, from servers that wait for clients."""

    servers: Sequence[Party]
    others: Sequence[Party]  # who waits for messages, or looks for them again and again
    starters: Sequence[Party]  # who waits for the end of a server


def at_rest(view: JobView) -> Optional[Candidate]:
    """All processes wait for requests, and those that wait for messages were not there before the servers."""
    found = _resting(view)
    if found is None or _asked_first(view, found):
        return None
    servers, others, starters = found
    summary = f"{start(who(servers))} {verb(servers, 'waits', 'wait')} for requests in {where(servers[0])}"
    if others:
        summary += (
            f"; {who(others)} {verb(others, 'waits', 'wait')} for messages of the same program, for example in "
            f"{where(others[0])}"
        )
    if starters:
        summary += f"; {who(starters)} {verb(starters, 'waits', 'wait')} until a server ends"
    summary += ". That is normal for a server without requests."
    shown = [*servers, *others, *starters]
    return Candidate(cause="not-a-hang", confidence="low", summary=summary, evidence=evidence_of((), shown))


def message_lost(view: JobView) -> Optional[Candidate]:
    """The oldest process waits for a message, and no client on the network can cause one."""
    found = _resting(view)
    first = _asked_first(view, found) if found is not None else None
    if found is None or first is None:
        return None
    said = (
        f"{who([first])} waits for a message in {closed(where(first))} and {who(found.servers)}, started after it, "
        f"{verb(found.servers, 'waits', 'wait')} for requests in {where(found.servers[0])}"
    )
    evidence = evidence_of((), [first, *found.servers])
    if not looked_long(view):
        return not_clear(view, f"It is not clear yet whether anything hangs: {said}.", evidence)
    summary = (
        f"{start(said)}. No process of this program can be reached over the network, so most likely a request or its "
        "answer was lost."
    )
    return Candidate(cause="other", confidence="low", summary=summary, evidence=evidence)


def single_message_lost(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, some have waited for one message alone, and all the other
    processes of the program for requests, or for such a message too."""
    if not is_independent_job(view) or not looked_long(view) or any(is_working(view, party) for party in view.parties):
        return None
    once = [
        party for party in view.parties if waits_once(party) and party.thread is not None and for_ever(party.thread)
    ]
    others = parties_without(view.parties, once)
    if len(view.parties) < 2 or not once or not all(is_serving(view, party) for party in others):
        return None
    summary = (
        f"{start(who(once))} {verb(once, 'waits', 'wait')} in {closed(where(once[0]))}, outside of any loop, for one "
        "message, and no process of this program works on it. Most likely it was lost, or sent before anybody listened."
    )
    return blame("other", "low", summary, once, others)


def _asked_first(view: JobView, found: _Resting) -> Optional[Party]:
    """Who waits for a message and was there before the servers, none of which the network can reach: only it can have
    asked for anything."""
    started = [one.process.started for one in found.servers]
    if None in started or any(listens_to_network(party.process) for party in view.parties):
        return None
    earliest = min(one for one in started if one is not None)
    waiting = (one for one in found.others if one.kind in ("io", "ipc-queue"))
    return next((one for one in waiting if (one.process.started or earliest) < earliest), None)


def _resting(view: JobView) -> Optional[_Resting]:
    if not is_independent_job(view) or any(is_working(view, party) for party in view.parties):
        return None
    servers = [party for party in view.parties if is_serving(view, party)]
    starters = [party for party in view.parties if _waits_for_any_of(party, servers)]
    others = parties_without(view.parties, [*servers, *starters])
    waiting = {id(party.thread) for party in starters}
    own = [one for one in threads(view) if one.judged.helper is None and id(one.thread) not in waiting]
    polling = [party for party in others if not _receives(party) and not _all_stand(view, party)]
    if polling and not (looked_long(view) and all(_polls_for_orders(view, party) for party in polling)):
        return None
    others = parties_without(others, polling)
    if not servers or not all(map(_takes_orders, others)) or any(map(asks, own)):
        return None
    if any(is_owed_answer(view, party) for party in view.parties):
        return None
    if not (others or polling or starters):
        return None
    pids = frozenset(party.process.pid or 0 for party in view.parties)
    server_pids = {party.process.pid for party in servers}
    left = others
    while left:
        following = [party for party in left if _senders(party, pids).isdisjoint(server_pids)]
        if len(following) == len(left):
            return None
        server_pids.update(party.process.pid for party in parties_without(left, following))
        left = following
    return _Resting(servers, [*others, *polling], starters)


def _waits_for_any_of(party: Party, servers: Sequence[Party]) -> bool:
    """Whether it waits, as supervisors do, for the end of one of these processes that is its child."""
    call = party.syscall
    others = (one for one in servers if one.process is not party.process)
    named = {one.process.pid for one in others if not is_stopping(party) or goes_on_alone(party, one)}
    return party.judged.rule in CHILD_WAITS and call is not None and call[0] == WAIT4 and call[1] in named


def waits_for_clients(view: JobView) -> Optional[Candidate]:
    """Event loops wait for clients, and no other thread does anything; the main thread waits for those that run the
    loops. Servers of asio, tokio, Go and libuv, whose tasks cannot be read, are idle like this."""
    known = is_independent_job(view) if view.parties else all(process.threads for process in view.snapshot.processes)
    if not known or view.given is not Given.LIVE or any(is_working(view, party) for party in view.parties):
        return None
    every = list(threads(view))
    loops = [one for one in every if _takes_clients(one)]
    if not loops or any(process.clients for process in view.snapshot.processes):
        return None
    helpers = {one.lwp for one in every if one.judged.helper is not None}
    if not all(one in loops or _rests_beside_loops(one, helpers) for one in every):
        return None
    summary = (
        f"{start(who(loops))} {verb(loops, 'waits', 'wait')} for clients in {where(loops[0])}, and no other thread has "
        "anything to do. That is normal for a server without requests."
    )
    return Candidate(
        cause="not-a-hang", confidence="low", summary=summary, evidence=evidence_of((), [*loops, *view.parties])
    )


def _takes_clients(one: Party) -> bool:
    """Whether it is a thread of an event loop that waits for clients, or for changes of files, among others."""
    listens = (LISTENING in peer.file for peer in one.process.peers if peer.thread == one.lwp)
    return one.judged.helper is not None and _stands(one) and (any(listens) or has_code(one, Code.CHANGES))


def _rests_beside_loops(one: Party, helpers: Collection[Optional[int]]) -> bool:
    """Whether it is a helper, or waits without a limit for one of them to end, or for a run-time's tasks."""
    if one.judged.helper is not None or one.judged.idle:
        return True
    joins = one.judged.rule in JOINS and any(wait.owner in helpers for wait in own_locks(one))
    parked = one.judged.rule == GO_PARK or matches_any(_BLOCKS_ON, calls_of(one))
    return _stands(one) and (joins or parked)


def _polls_for_orders(view: JobView, party: Party) -> bool:
    """Whether its threads have begun nothing: the main one waits for another one of them, and these look again and
    again, in no task of a pool or server, whether there is something to do."""
    if not _takes_orders(party):
        return False
    looking = [one for one in threads_of(view, party.index, lambda one: one.helper is None) if not _stands(one)]
    napping = (one.judged.rule in OWN_SLEEPS and not matches_any(HANDLERS, calls_of(one)) for one in looking)
    return all(napping) and not any(map(inside_task, looking))


def _all_stand(view: JobView, party: Party) -> bool:
    return all(_stands(one) for one in threads_of(view, party.index, lambda one: one.helper is None))


def _stands(one: Party) -> bool:
    return one.judged.idle or (one.thread is not None and not one.thread.switches and for_ever(one.thread))


def _takes_orders(party: Party) -> bool:
    """Whether it waits for a message, or in memory that is shared for something to do."""
    waits = party.kind in ("ipc-queue", "condvar-idle") and party.thread is not None and for_ever(party.thread)
    return _receives(party) or (waits and not other_ends(party))


def _receives(party: Party) -> bool:
    call = party.syscall
    return party.kind in ("io", "ipc-queue") and call is not None and call[0] in _RECEIVES


def _senders(party: Party, pids: FrozenSet[int]) -> FrozenSet[int]:
    """Who of the program may send what it waits for."""
    anybody = has_code(party, Code.SENDERS) or not _receives(party)
    named = pids if anybody else pids.intersection({pid for ends in other_ends(party) for pid in ends})
    return named - {party.process.pid or 0}


def held_up(view: JobView) -> Optional[Candidate]:
    """Nobody works: some wait for something outside of the program, and all the others for each other."""
    if (
        not is_independent_job(view)
        or len(view.parties) < 2
        or any(is_working(view, party) for party in view.parties)
        or _resting(view)
    ):
        return None
    asked = any(map(waits_for_result, view.parties))  # else who waits for a message may just have nothing to do
    away = [
        party
        for party in view.parties
        if not (party.group == "lock" or waits_inside(view, party)) or (asked and _asks_away(view, party))
    ]
    others = [party for party in parties_without(view.parties, away) if not is_serving(view, party)]
    if not away or not others or any(party.kind not in ("io", "ipc-queue") for party in away):
        return None
    if not asked and any(is_serving(view, party) for party in view.parties) and all(map(_receives, [*away, *others])):
        return None
    if any(thread.switches for process in view.snapshot.processes for thread in process.threads if thread.frames):
        return None
    away_in = f"{who(away)} {verb(away, 'waits', 'wait')} in {closed(where(away[0]))} for something outside the program"
    if not looked_long(view):  # a service may answer slowly
        return not_clear(
            view, f"It is not clear yet whether anything hangs: {away_in}.", evidence_of(away, others), others
        )
    summary = (
        f"No process of this program is working: {away_in}, and {who(others)} {verb(others, 'waits', 'wait')} for "
        f"other processes of the program, for example in {where(others[0])}."
    )
    return blame("other", "low", summary, away, others)


def _asks_away(view: JobView, party: Party) -> bool:
    """Whether it waits for a message, and the only ones who could send it are no processes that were read."""
    ours = {process.pid for process in view.snapshot.processes}
    ends = other_ends(party)
    return party.kind == "ipc-queue" and bool(ends) and all(pids and ours.isdisjoint(pids) for pids in ends)


LOST = (held_up, message_lost, single_message_lost)
PATTERNS = (at_rest, waits_for_clients)
