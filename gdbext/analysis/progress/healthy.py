"""Nothing hangs: ranks that wait for work, compute, or moved between two samples."""

from __future__ import annotations

from typing import Collection, List, Optional, Sequence

from gdbext.analysis.progress.begun import asks, begun, is_owed_answer
from gdbext.analysis.progress.between_looks import has_run, marks_differ
from gdbext.analysis.progress.named_waits import mains_in_collective
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_hangs.loop_tasks import answers_client, blocks_loop, own_futures, place_of_naps
from gdbext.analysis.progress.own_hangs.results_elsewhere import waits_for_task
from gdbext.analysis.progress.own_work import checks_beside_failed_child, is_serving, looked_long, waits_for_child
from gdbext.analysis.progress.pool_tasks import unfinished_tasks, waits_for_result
from gdbext.analysis.progress.running import in_own_code
from gdbext.analysis.progress.slow import pace_of
from gdbext.analysis.progress.waits_for_ranks import may_progress, waiting_for_others
from gdbext.analysis.stacks.decisive import exits, is_main
from gdbext.analysis.view.candidate import Candidate, evidence_of, is_majority
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, other_ends, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.frames.networks.gloo import GLOO_WORKER
from gdbext.knowledge.labels import OF_ITS_OWN
from gdbext.model.codes import Given
from gdbext.model.job import RANK
from gdbext.model.stack import ThreadStack

_AWAY = ("lock", "elsewhere", "idle")
"""Groups of waits outside of any communication."""


def nothing_to_do(view: JobView) -> Optional[Candidate]:
    """Every rank waits for work, or is busy outside of any collective."""
    idle = view.of("idle")
    others = parties_without(view.parties, idle)
    leaders = [party for party in others if party.kind in ("io", "condvar-idle", "ipc-queue", "python-code")]
    if any(party.process.role != RANK for party in view.parties):  # it is they who wait for requests
        leaders = [party for party in leaders if party.process.role != RANK]
    if (
        not idle
        or view.unseen
        or view.gone
        or view.snapshot.absent
        or len(leaders) < len(others)
        or is_majority(others, view)
        or any(asks(one) or is_owed_answer(view, one) or _blocks_loop_of_server(one) for one in others)
        or any(map(waits_for_task, others))
        or any(_waits_for_loop(view, party) or waits_for_child(view, party) or _lacks_main(party) for party in idle)
        or any(begun(view, party) for party in idle)
        or _may_follow_a_stuck_one(view, idle)
    ):
        return None
    napping = [party for party in idle if place_of_naps(party)]
    if napping:
        summary = (
            f"It is not clear yet whether anything hangs: {who(napping)} {verb(napping, 'naps', 'nap')} again and "
            f"again in {place_of_naps(napping[0])}, and {verb(napping, 'waits', 'wait')} for no request."
        )
        return not_clear(view, summary, evidence_of((), view.parties))
    alone = len(view.parties) == 1
    members = [party for party in view.parties if party.process.rank is not None] or list(view.parties)
    # Of a text one does not know whether it has all processes: who feeds the workers may be what hangs.
    whole = not others and len(members) > 1 and view.given is Given.LIVE
    whole = whole and len(view.parties) == len(view.snapshot.processes)
    found = "Nothing hangs." if whole else "There is no sign of a hang."
    if whole and _lacks_front_end(view):
        whole, found = False, "There is no sign of a hang, but the engine's other processes were not read."
    if whole and any(map(answers_client, view.parties)):
        whole, found = False, "There is no sign of a hang, but a web server has not answered a client yet."
    if whole and any(own_futures(party) for party in view.parties if party.process.engine is None):
        whole, found = False, "There is no sign of a hang, but a task awaits a future of the program's own."
    rest = "One process alone does not tell whether its peers are idle too." if alone else found
    summary = (
        f"{start(who(list(view.parties)))} {verb(view.parties, 'waits', 'wait')} for work: {closed(where(idle[0]))} is "
        f"where idle workers wait. {rest}"
    )
    unread = any(not task.frames for party in idle for task in party.process.tasks)
    confidence = "low" if alone or unread else "high" if whole else "medium"
    return Candidate(cause="not-a-hang", confidence=confidence, summary=summary, evidence=evidence_of((), view.parties))


def _blocks_loop_of_server(party: Party) -> bool:
    """Whether a call blocks the event loop of a front end. A program's own loop may wait for work in a call."""
    return party.process.role != RANK and blocks_loop(party)


def _lacks_front_end(view: JobView) -> bool:
    """Whether only ranks were read, of an engine that has other processes as well: one of those may hang."""
    if any(process.role != RANK for process in view.snapshot.processes):
        return False
    engines = {process.engine for process in view.snapshot.processes}
    return any(profile.name in engines and any(row.role != RANK for row in profile.titles) for profile in PROFILES)


def _may_follow_a_stuck_one(view: JobView, idle: Sequence[Party]) -> bool:
    """Whether all there is is one text of a rank that waits in a broadcast for what the first one tells it to do: so it
    does while that one is stuck as well."""
    return view.given is Given.TEXT and len(view.parties) == 1 and any(one.takes_orders for one in idle)


def _waits_for_loop(view: JobView, party: Party) -> bool:
    """Whether another thread waits for the result of what the idle one should do."""
    own = threads_of(view, party.index, lambda one: one.helper is None)
    return any(map(waits_for_result, own)) or bool(unfinished_tasks(view, party.index))


def _lacks_main(party: Party) -> bool:
    """Whether a text lists threads of a process by gdb's numbers, and not the main one, which has the first of them."""
    process = party.process
    if process.source != "text:gdb" or len(process.threads) < 2:
        return False
    return not any(is_main(process, thread) for thread in process.threads)


def all_busy(view: JobView) -> Optional[Candidate]:
    """Every rank computes, or sleeps in code of its own and wakes up."""
    parties = view.parties
    if len(parties) < 2 or view.unseen or view.snapshot.absent or view.threads_as_ranks:
        return None
    if view.of(*COMMUNICATION, "implicit", "init", "teardown"):
        return None  # who spins in there waits for others
    place = where(parties[0])
    checking = [party for party in parties if checks_beside_failed_child(party)]
    if all(map(may_progress, parties)) and not checking:
        if all(_may_only_spin(view, party) for party in parties):
            summary = (
                f"It is not clear yet whether anything hangs: {who(parties)} run Python code, for example {place}, and "
                "nothing shows that their calls return. A loop that waits for a change of memory looks the same."
            )
            return not_clear(view, summary, evidence_of((), parties))
        summary = f"{start(who(parties))} are running code, for example {place}. No rank waits for another."
        return Candidate(cause="not-a-hang", confidence="medium", summary=summary, evidence=evidence_of((), parties))
    if not all(may_progress(party) or in_own_code(party) for party in parties):
        return None
    exiting = [party for party in parties if party.thread is not None and exits(party.thread)]
    if exiting or checking:  # what it checks again and again there may never come
        ends = verb(exiting, "is exiting", "are exiting") if exiting else "started a child that has failed"
        some = exiting or checking
        summary = (
            f"It is not clear yet whether anything hangs: {who(some)} {ends}, and {verb(some, 'runs', 'run')} or "
            f"{verb(some, 'naps', 'nap')} in {where(some[0])}."
        )
        return not_clear(view, summary, evidence_of((), parties))
    asleep = [party for party in parties if not (may_progress(party) or _has_run(party))]
    working = any(may_progress(party) or _exchanged(view, party) or party.index in view.moved for party in parties)
    if not asleep and working and not all(_exchanged_nothing(view, party) for party in parties):
        summary = (
            f"{start(who(parties))} run and sleep in code of their own, for example {place}: they ran between two "
            "copies, and no rank waits for another."
        )
        return Candidate(cause="not-a-hang", confidence="low", summary=summary, evidence=evidence_of((), parties))
    if any(party.thread is None or party.thread.switches is None for party in asleep):
        return None  # nobody counted
    lead = "It is not clear yet whether anything hangs: no rank waits for another, "
    if asleep:
        summary = f"{lead}and {who(asleep)} {verb(asleep, 'sleeps', 'sleep')} in {where(asleep[0])}."
    elif not working:
        summary = f"{lead}and none is working: {who(parties)} sleep in {place} and wake up repeatedly."
    else:
        summary = f"{lead}and they exchanged nothing while gdbext watched. {start(who(parties))} wake up in {place}."
    return not_clear(view, summary, evidence_of((), parties))


def _may_only_spin(view: JobView, party: Party) -> bool:
    """Whether it runs in Python's own code, and all local variables of its functions are as they were in the look
    before this one, or there was none."""
    now = party.thread
    if now is None or not now.marks or not (party.kind == "python-code" or (party.kind in OF_ITS_OWN and now.gil)):
        return False
    if pace_of(view, party) is not None:
        return False
    then = view.before[-1].same_party(party) if view.before else None
    return then is None or then.thread is None or not marks_differ(then.thread.marks, now.marks)


def _exchanged(view: JobView, party: Party) -> bool:
    """Whether a thread that does the work of its collectives ran between the copies."""
    return any(thread.switches for thread in _workers(view, party))


def _exchanged_nothing(view: JobView, party: Party) -> bool:
    """Whether the threads that do the work of its collectives did not run between the copies."""
    workers = _workers(view, party)
    return bool(workers) and all(thread.switches == 0 for thread in workers)


def _workers(view: JobView, party: Party) -> List[ThreadStack]:
    pairs = zip(party.process.threads, view.processes[party.index].threads)
    return [thread for thread, one in pairs if one.helper == GLOO_WORKER]


def _has_run(party: Party) -> bool:
    return party.thread is not None and has_run(party.thread)


def goes_on(view: JobView) -> Optional[Candidate]:
    """Between two looks ranks went on: slow, not stuck.

    While some wait for others it is the waiting ones that must have gone on: a culprit may well be busy.
    """
    waiting = [*waiting_for_others(view), *view.of("implicit", "launch", "init", "teardown"), *_wait_for_answers(view)]
    moved = frozenset(view.moved)
    went = [party for party in parties_without(view.parties, view.gone) if party.index in moved]
    proof = frozenset(went).intersection(waiting) if waiting else went
    if not proof or view.of("fatal") or all(_may_only_spin(view, party) for party in view.parties):
        return None
    if mains_in_collective(view) or _only_look_for_work(view, proof):
        return None
    all_of_them = len(went) == len(view.parties)
    rest = parties_without(view.parties, went)
    ranks = [
        one.rank for one in {party.index: party.process for party in view.parties}.values() if one.rank is not None
    ]
    if rest and len(set(ranks)) < len(ranks):
        return None  # ranks of several jobs: progress of one says nothing of the other
    if _on_their_own(view, rest):
        return None
    standing = all(_standing_main(view, party) for party in went)
    if rest and standing and all(one.index in view.still and one.kind == "condvar-idle" for one in rest):
        summary = (
            f"It is not clear yet whether anything hangs: {who(went)} moved in a thread beside the main one, which "
            f"waits for another thread, as {who(rest)} {verb(rest, 'does', 'do')} in {where(rest[0])}."
        )
        return not_clear(view, summary, evidence_of((), [*rest, *went]))
    summary = f"{start(who(went))} moved between the two samples, so the job is not stuck. " + (
        "It may be slow." if all_of_them else _the_rest(rest)
    )
    whole = len(went) > 1 or view.world_size == 1  # one of several ranks speaks for itself only
    confidence = "high" if all_of_them and whole else "medium"
    return Candidate(cause="not-a-hang", confidence=confidence, summary=summary, evidence=evidence_of((), went))


def _only_look_for_work(view: JobView, went: Collection[Party]) -> bool:
    """Whether those that moved only polled for work, while a process of the engine is not idle, or has begun something.
    Polling is not progress."""
    if all(party.process.role == RANK for party in view.parties) or any(party.group != "idle" for party in went):
        return False
    return any(party.group != "idle" or (party not in went and begun(view, party)) for party in view.parties)


def _standing_main(view: JobView, party: Party) -> bool:
    """Whether a side thread decides, and the main one did nothing but wait for another: a thread that talks to other
    ranks in turns does so whether or not there is anything to do."""
    for one in threads_of(view, party.index):
        if one.thread is not None and is_main(party.process, one.thread):
            waits = one.kind == "condvar-idle" and one.thread.sleeps is None
            return one.thread is not party.thread and waits and one.thread.switches == 0
    return False


def _wait_for_answers(view: JobView) -> List[Party]:
    """Those that did nothing while they waited by a pipe or socket for other processes of the job alone."""
    pids = {process.pid for process in view.snapshot.processes}
    still = [party for party in view.parties if party.index in view.still]
    return [party for party in still if other_ends(party) and all(set(ends) <= pids for ends in other_ends(party))]


def some_stand(view: JobView) -> Optional[Candidate]:
    """Ranks went on, and others, who exchange nothing with them, are all in one collective: it may just take long."""
    moved = [party for party in view.parties if party.index in view.moved]
    stand = _on_their_own(view, parties_without(view.parties, moved))
    if not moved or not stand or looked_long(view) or len({(one.group, one.judged.collective) for one in stand}) > 1:
        return None
    summary = (
        f"It is not clear yet whether anything hangs: {who(moved)} moved between the two samples, but {who(stand)} "
        f"{verb(stand, 'stands', 'stand')} in {closed(where(stand[0]))} and wait for none of them."
    )
    return not_clear(view, summary, evidence_of((), [*stand, *moved]))


def _on_their_own(view: JobView, rest: Sequence[Party]) -> List[Party]:
    """Those that did not run, in collectives whose members are all among them, and such members that have not come: for
    other ranks they wait in no way that shows. So stand the ranks of one replica while another one works."""
    some = [party for party in rest if party.index in view.still and party.group in (*COMMUNICATION, *_AWAY)]
    if len({party.process.rank for party in view.parties}) < len(view.parties):
        return []
    while some:
        ranks, pids = {party.process.rank for party in some}, {party.process.pid for party in some}
        left = [party for party in some if _waits_among(party, ranks, pids)]
        if len(left) == len(some):
            break
        some = left
    inside = [party for party in some if party.group in COMMUNICATION]
    return some if inside and not _idle_replica(view, inside, parties_without(some, inside)) else []


def _idle_replica(view: JobView, followers: Sequence[Party], leaders: Sequence[Party]) -> bool:
    """Whether those who are in no collective wait for requests, and the others for what they tell them to do."""
    orders = all(party.takes_orders for party in followers)
    return orders and bool(leaders) and all(is_serving(view, party) for party in leaders)


def _waits_among(party: Party, ranks: Collection[Optional[int]], pids: Collection[Optional[int]]) -> bool:
    if party.group in _AWAY:
        return all(set(ends) <= set(pids) for ends in other_ends(party))
    return party.process.rank in party.ranks and set(party.ranks) <= set(ranks)


def _the_rest(parties: Sequence[Party]) -> str:
    """What is known of ranks that were not seen to go on."""
    some = [party for party in parties if _has_run(party)]
    others = parties_without(parties, some)
    sentences = [f"{start(who(some))} ran in between as well."] if some else []
    if others:
        sentences.append(
            f"{start(who(others))} did not move: {verb(others, 'its call', 'their calls')} may just take long."
        )
    return " ".join(sentences)
