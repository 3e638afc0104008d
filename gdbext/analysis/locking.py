"""Patterns that the wait-for graph proves: circles of locks, locks whose owner is no more."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence, Set, Tuple

from gdbext.analysis.candidate import Candidate
from gdbext.analysis.locks import LockGraph, Step, graph_of, lowered, shown, story, taken_in
from gdbext.analysis.view import COMMUNICATION, JobView, Party
from gdbext.analysis.wording import start, verb, where, who
from gdbext.knowledge.locks import MOVING
from gdbext.model.locks import LockWait
from gdbext.model.verdict import Evidence

_MOST_NAMES, _MOST_CHAINS = 4, 2
_OWN = ("lock-order-deadlock", "gil-deadlock", "fork-after-cuda")
# Waits for locks that have an owner; the others tell nothing against a circle either.
_OWNED = ("mutex", "rwlock", "loader", "driver", "gil", "join")


def circle(view: JobView) -> Optional[Candidate]:
    """Threads that wait for one another, each proven by the lock's memory: none of them ever goes on."""
    graph = graph_of(view)
    found = [_circle(view, graph, cycle) for cycle in graph.cycles]
    return max(found, key=lambda candidate: candidate.strength, default=None)


def _circle(view: JobView, graph: LockGraph, cycle: Sequence[Step]) -> Candidate:
    kinds = {step.wait.kind for step in cycle if step.wait is not None}
    indexes = {step.party.index for step in cycle}
    timed = any(step.wait is not None and step.wait.timed for step in cycle)
    matters = any(_matters(party, graph, indexes) for party in view.parties)
    victims = _waiting_for(view, indexes)
    confidence = "high" if matters and not timed and _one_moment(cycle) else "medium"
    summary = f"{_heading(cycle, kinds)}: {lowered(story(cycle, cycle[0]))}. {_ending(cycle, victims)}"
    return Candidate(
        "gil-deadlock" if "gil" in kinds else "lock-order-deadlock",
        confidence,
        (94 if matters else 45) - 10 * timed,
        summary,
        tuple(step.party for step in cycle),
        victims,
        (),
        shown(cycle, cycle[0]),
    )


def _one_moment(cycle: Sequence[Step]) -> bool:
    """Whether all waits of a circle were there at once: within one stop they were; across processes that a look stopped
    one after the other a second look must have found them again."""
    if len({step.party.index for step in cycle}) == 1 or cycle[0].party.process.source != "live":
        return True
    return all(step.wait is not None and step.wait.still for step in cycle)


def _matters(party: Party, graph: LockGraph, indexes: Set[int]) -> bool:
    """Whether the decisive thread of one of these processes is held up by the circle, or has nothing better to do."""
    if party.index not in indexes:
        return False
    return party.group not in (*COMMUNICATION, "implicit", "init", "teardown", "fatal") or graph.ends_in_cycle(party)


def _heading(cycle: Sequence[Step], kinds: Set[str]) -> str:
    processes = list(dict.fromkeys(step.party.process.label for step in cycle))
    place = " and ".join(processes[:_MOST_NAMES])
    if len(cycle) == 1:
        return f"A thread of {place} waits for itself"
    count = {2: "Two"}.get(len(cycle), str(len(cycle)))
    words = "wait for each other" if len(cycle) == 2 else "wait for one another in a circle"
    loader = ", the dynamic loader's lock among them" if "loader" in kinds and len(cycle) > 2 else ""
    return f"{count} threads of {place} {words}{loader}"


def _ending(cycle: Sequence[Step], victims: Sequence[Party]) -> str:
    if not victims:
        return f"None of them goes on; the first is in {taken_in(cycle[0].party)}."
    blamed = cycle[0].party.process.label
    return (
        f"{start(who(victims))} {verb(victims, 'waits', 'wait')} in {where(victims[0])}, and {blamed} never gets there."
    )


def _waiting_for(view: JobView, indexes: Set[int]) -> Tuple[Party, ...]:
    return tuple(party for party in view.of(*COMMUNICATION, "init", "teardown") if party.index not in indexes)


# --- a lock that nobody will ever release ---


def owner_gone(view: JobView) -> Optional[Candidate]:
    """A thread waits for a lock whose owner is no thread of its process: ended with it, or left behind by a fork."""
    graph = graph_of(view)
    orphans = [step for step, _ in graph.waits if step.wait and step.wait.gone and step.wait.still is not False]
    if not orphans:
        return None
    forked = [step for step in orphans if step.wait is not None and step.wait.owner_process is not None]
    step = (forked or orphans)[0]
    assert step.wait is not None
    indexes = {one.party.index for one in orphans}
    victims = _waiting_for(view, indexes)
    culprits = tuple({one.party.index: one.party for one in (forked or orphans)}.values())
    cause, sure, told = _orphan(step, step.wait, graph.held_up_by(step.party))
    summary = f"{told} {_stuck(step, victims)}"
    return Candidate(cause, "high" if sure else "medium", 93, summary, culprits, victims, (), shown([step]))


def _orphan(step: Step, wait: LockWait, waiter: Sequence[Step]) -> Tuple[str, bool, str]:
    """(cause, whether it is proven, the story)."""
    if not isinstance(wait.owner, int):
        told = f"{start(step.name)} of {step.party.process.label} will never run again: {wait.owner.reason}."
        circle = [one.wait for one in waiter if one.wait is not None and one.wait.kind == "mutex"]
        if circle:
            return "lock-order-deadlock", True, f"{told} {start(story(waiter[:1], waiter[1]))}."
        return "other", True, told
    if wait.owner_process is not None:
        return "fork-after-cuda", True, _forked(step, wait)
    return "other", len(step.party.process.threads) > 1, _ended(step, wait)


def _forked(step: Step, wait: LockWait) -> str:
    return (
        f"{start(step.party.process.label)} is a forked child: {step.name} waits for a lock that thread {wait.owner} "
        f"of its parent (pid {wait.owner_process}) held at the fork. "
        "The child has the lock and not the thread that would release it."
    )


def _ended(step: Step, wait: LockWait) -> str:
    return (
        f"{start(step.name)} of {step.party.process.label} waits for a lock of thread {wait.owner}, which its process "
        "does not have: that thread has ended without releasing it, or was left in the parent by a fork."
    )


def _stuck(step: Step, victims: Sequence[Party]) -> str:
    if not victims:
        return f"It waits in {taken_in(step.party)}."
    return f"{start(who(victims))} {verb(victims, 'waits', 'wait')} in {where(victims[0])} for it."


# --- locks that change hands ---


def changing_hands(view: JobView) -> Optional[Candidate]:
    """Every rank that does not idle waits for a lock or has one, and these locks were seen to move: contended only."""
    graph = graph_of(view)
    working = [party for party in view.parties if party.group != "idle"]
    moving = [(step, owner) for step, owner in graph.waits if step.wait is not None and _moves(step.wait)]
    taking_part = {graph.node(one) for pair in moving for one in pair if one is not None}
    outside = [party for party in working if party.group not in ("lock", "elsewhere", "unknown")]
    if not working or outside or not all(_node(party) in taking_part for party in working):
        return None
    step = moving[0][0]
    summary = (
        f"{start(who(working))} {verb(working, 'takes', 'take')} part in a lock that changes hands: {step.name} waited "
        f"for it in {taken_in(step.party)}, and a second look found another owner or no wait. "
        "It is contended, nobody is stuck."
    )
    return Candidate("not-a-hang", "medium", 74, summary, (), (), (), shown([step], moving[0][1]))


def _moves(wait: LockWait) -> bool:
    """A wait without a time-out ends only when the lock is let go."""
    return wait.still is False and wait.kind in _OWNED and not (wait.gone or wait.timed)


def _node(party: Party) -> Tuple[int, int]:
    lwp = party.thread.lwp if party.thread is not None else None
    return party.index, lwp or 0


# --- what owners say to candidates that stacks alone suggested ---


def weighed(view: JobView, candidate: Candidate) -> Optional[Candidate]:
    """The candidate; less sure, or None, where the owners of its locks contradict it."""
    if candidate.cause not in ("lock-order-deadlock", "gil-deadlock") or not _any_locks(view):
        return candidate
    graph = graph_of(view)
    involved = [(party, graph.wait_of(party)) for party in (*candidate.culprits, *candidate.victims)]
    waits = [(party, wait) for party, wait in involved if wait is not None and wait.kind in _OWNED]
    if not waits or any(graph.ends_in_cycle(party) for party, _ in waits):
        return candidate
    if not all(_leads_out(wait) for _, wait in waits):
        return candidate
    if candidate.confidence == "low":
        return None
    against = shown(graph.chain(waits[0][0]))
    strength = min(candidate.strength, 30)
    return replace(candidate, confidence="low", strength=strength, evidence=(*candidate.evidence, *against))


def _any_locks(view: JobView) -> bool:
    return any(process.locks for process in view.snapshot.processes)


def _leads_out(wait: LockWait) -> bool:
    """Whether a wait that ends in no circle is known to be part of none: its owner is known, or the lock moves."""
    if isinstance(wait.owner, int) or wait.still is False:
        return True
    return wait.owner.reason in MOVING and wait.still is not True


def held_up(view: JobView, best: Candidate) -> Tuple[Evidence, ...]:
    """What the graph adds to a verdict that it did not make: whom its decisive threads wait for, and who for them."""
    if best.cause == "not-a-hang" or not _any_locks(view) or any(best.cause == cause for cause in _OWN):
        return ()
    graph = graph_of(view)
    lines: List[Evidence] = []
    for party in (*best.culprits, *best.victims)[:_MOST_NAMES]:
        chain = graph.chain(party) if party.thread is not None else ()
        if len(chain) < 2:
            chain = graph.held_up_by(party)
        if len(chain) > 1:
            first = chain[0].party
            lines.append(Evidence(story(chain), first.index, first.judged.id or None, first.judged.frame))
    return tuple(lines[:_MOST_CHAINS])


PATTERNS = (circle, owner_gone, changing_hands)
