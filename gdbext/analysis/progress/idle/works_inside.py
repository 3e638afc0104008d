"""Programs that wait for nobody but themselves and go on, or may do so: somebody works, wakes up again and again, or
has begun something that a request may end."""

from __future__ import annotations

from typing import Collection, Optional, Sequence

from gdbext.analysis.progress.begun import begun, is_owed_answer, wants_lock
from gdbext.analysis.progress.named_waits import (
    kind_of_loop,
    mains_in_collective,
    naps_for_lock,
    naps_for_others,
    sets_up,
)
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import (
    is_active,
    is_at_rest,
    is_fed,
    is_independent_job,
    is_serving,
    is_working,
    is_yielding,
    joined_threads,
    listens,
    looked_long,
    only_naps,
    side_threads,
    sleeps_for_a_moment,
    waits_for_own_process,
    waits_inside,
)
from gdbext.analysis.progress.pool_tasks import FED_KINDS, stands
from gdbext.analysis.progress.running import in_own_code, is_alive
from gdbext.analysis.progress.waits_for_ranks import waits_for_absent_pool
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, other_ends, parties_without, threads
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.causes.slow import WRITTEN_PER_SECOND
from gdbext.model.codes import Given, LoopKind
from gdbext.model.missing import Missing


def works_inside(view: JobView) -> Optional[Candidate]:
    """No rank waits for another one, and of those that were read some work, or are woken again and again."""
    if not is_independent_job(view) or mains_in_collective(view):
        return None
    active = [party for party in view.parties if is_working(view, party)]
    others = parties_without(view.parties, active)
    if active and all(map(only_naps, active)):
        text = (
            f"It is not clear yet whether anything hangs: {who(active)} {verb(active, 'naps', 'nap')} again and again "
            f"in {closed(where(active[0]))}, and {verb(active, 'does', 'do')} nothing else that could be seen."
        )
        return not_clear(view, text, evidence_of((), active))
    if not active and _rest_on_each_other(view):
        return not_clear(
            view, f"It is not clear yet whether anything hangs: {_alone(others)}.", evidence_of((), others)
        )
    if not active and all(is_serving(view, party) for party in others):
        summary = (
            f"{start(who(others))} {verb(others, 'waits', 'wait')} for requests, for example in {where(others[0])}."
        )
    elif not active or not all(waits_inside(view, party) for party in others):
        return None
    else:
        does = f"{verb(active, 'works', 'work')}, for example in"
        if all(map(waits_for_own_process, active)):
            does = f"{verb(active, 'waits', 'wait')} for a child that works, in"
        summary = f"{start(who(active))} {does} {where(active[0])}."
        if others:
            summary += f" {start(who(others))} {verb(others, 'waits', 'wait')} for other threads or processes."
    return Candidate(
        cause="not-a-hang",
        confidence="low",
        summary=f"{summary} Nothing shows a hang.",
        evidence=evidence_of((), [*active, *others]),
    )


def nobody_can_act(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, all have waited for each other's next message, and a main
    thread did so outside of any loop: for this message alone, or for what another thread gets by it."""
    if not is_independent_job(view) or not looked_long(view) or not _rest_on_each_other(view):
        return None
    once = [party for party in view.parties if kind_of_loop(party) is LoopKind.NONE]
    if not once:
        return None
    summary = (
        f"{start(_alone(view.parties))}. {start(who(once))} {verb(once, 'does', 'do')} so outside of any loop, in "
        f"{closed(where(once[0]))}: most likely a message was lost, or never sent."
    )
    return blame("other", "low", summary, once, parties_without(view.parties, once))


def _alone(parties: Sequence[Party]) -> str:
    return (
        f"{who(parties)} wait for messages of each other alone, for example in {closed(where(parties[0]))} and no "
        "process of this program can be reached from outside"
    )


def _rest_on_each_other(view: JobView) -> bool:
    """Whether each process has a thread that waits for the next message on a connection to another one of them, and
    its other threads do so as well or wait for each other."""
    pids = {process.pid for process in view.snapshot.processes}
    every = [one for one in threads(view) if one.judged.helper is None]
    reading = [one for one in every if _rests_on_one_of(view, one, pids)]
    others = parties_without(every, reading)
    whole = {one.index for one in reading} == {one.index for one in every}
    return len(view.parties) > 1 and whole and all(one.kind in FED_KINDS and stands(one) for one in others)


def _rests_on_one_of(view: JobView, one: Party, pids: Collection[Optional[int]]) -> bool:
    own = [peer for peer in one.process.peers if peer.thread == one.lwp]
    ends = [pid for pids in other_ends(one) for pid in pids]
    inside = bool(ends) and set(ends) <= set(pids)
    return not one.judged.idle and stands(one) and inside and all(is_at_rest(view, peer) for peer in own)


def cannot_tell(view: JobView) -> Optional[Candidate]:
    """All that moves are threads that sleep for a moment again and again, that write, or that work beside one which
    waits for a lock that nobody is known to have: they may feed the others, or only watch."""
    if not is_independent_job(view):
        return None
    polls = [party for party in view.parties if _beside_lock(view, party) or _beside_writer(view, party)]
    if not looked_long(view):
        polls += [party for party in parties_without(view.parties, polls) if _polls(view, party)]
    others = [party for party in parties_without(view.parties, polls) if not is_working(view, party)]
    if not polls or not all(waits_inside(view, party) for party in others):
        return None
    summary = (
        f"It is not clear yet whether anything hangs: {who(polls)} {verb(polls, 'is', 'are')} in {where(polls[0])}, "
        f"and {verb(polls, 'has', 'have')} threads that wake up repeatedly."
    )
    return not_clear(view, summary, evidence_of((), polls))


def amid_something(view: JobView) -> Optional[Candidate]:
    """Nobody works, and some that wait like idle ones have begun something: it may end when a request comes."""
    if not is_independent_job(view) or any(is_working(view, party) for party in view.parties):
        return None
    may_rest = (one for one in view.parties if _waits_for_requests(view, one) or is_owed_answer(view, one))
    amid = {party: begun(view, party) for party in may_rest}
    amid = {party: sign for party, sign in amid.items() if sign}
    others = parties_without(view.parties, list(amid))
    if not amid or not all(waits_inside(view, party) for party in others):
        return None
    resting = [one for one in view.parties if _waits_for_requests(view, one) and not is_owed_answer(view, one)]
    summary = f"It is not clear yet whether anything hangs: {next(iter(amid.values())).rstrip(',')}."
    if resting:
        summary += f" Apart from that, {who(resting)} {verb(resting, 'waits', 'wait')} for requests."
    return not_clear(view, summary, evidence_of((), list(amid)))


def followers_wait(view: JobView) -> Optional[Candidate]:
    """One rank waits for requests, all the others in a broadcast for what it tells them to do."""
    following = [party for party in view.of(*COMMUNICATION) if party.takes_orders]
    leaders = parties_without(view.parties, following)
    if (
        not following
        or len(leaders) != 1
        or view.unseen
        or view.gone
        or view.snapshot.absent
        or view.given is not Given.LIVE
    ):
        return None
    if sets_up(leaders[0]) or not (is_serving(view, leaders[0]) or _asks_another(leaders[0])):
        return None
    text = (
        f"{start(who(leaders))} waits for requests in {where(leaders[0])}; {who(following)} "
        f"{verb(following, 'waits', 'wait')} in {following[0].judged.collective} for its instructions. "
        "That is normal for an idle job."
    )
    return Candidate(
        cause="not-a-hang", confidence="medium", summary=text, evidence=evidence_of((), [*leaders, *following])
    )


def _waits_for_requests(view: JobView, party: Party) -> bool:
    return party.judged.idle or listens(view, party) or is_fed(view, party)


def _asks_another(party: Party) -> bool:
    """Waits for a message of another process of its program, which is there and does not wait for it in turn."""
    back = (one for peer in party.process.peers if peer.thread == party.lwp for one in peer.then)
    if any(not isinstance(one.processes, Missing) and party.process.pid in one.processes for one in back):
        return False
    return party.kind == "ipc-queue" and any(set(pids) - {party.process.pid} for pids in other_ends(party))


def _beside_lock(view: JobView, party: Party) -> bool:
    """Whether it waits for a lock, beside threads that work: one of them may have it."""
    return wants_lock(party) and any(map(is_active, side_threads(view, party)))


def _beside_writer(view: JobView, party: Party) -> bool:
    """Whether it waits for a thread of its own, and its process has written without a pause for as long as an endless
    loop takes to be called one: what it waits for, or a log of those that wait."""
    if party.kind not in FED_KINDS or wants_lock(party) or not looked_long(view):
        return False
    looks = filter(None, (look.same_process(party.process) for look in (*view.before, view)))
    activities = filter(None, (one.activity for one in looks))
    rates = [(one.written_bytes or 0) / one.seconds for one in activities if one.seconds > 0]
    return len(rates) > len(view.before) and min(rates) >= WRITTEN_PER_SECOND


def _polls(view: JobView, party: Party) -> bool:
    if sleeps_for_a_moment(party) or naps_for_others(party) or naps_for_lock(party) or waits_for_absent_pool(party):
        return True
    return party.kind in FED_KINDS and (
        any(map(is_yielding, joined_threads(view, party)))
        or any(in_own_code(one) and is_alive(one) and one.judged.helper is None for one in side_threads(view, party))
    )


LOST = (nobody_can_act,)
PATTERNS = (works_inside, followers_wait, cannot_tell, amid_something)
