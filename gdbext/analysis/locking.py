"""What lock owners say beside the wait-for graph: locks that change hands, and whom deciding threads wait for."""

from __future__ import annotations

from typing import List, Optional, Tuple

from gdbext.analysis.candidate import Candidate
from gdbext.analysis.locks import graph_of, shown, story, taken_in
from gdbext.analysis.view import JobView, Party
from gdbext.analysis.wording import start, verb, who
from gdbext.model.locks import LockWait
from gdbext.model.verdict import Evidence

_MOST_NAMES, _MOST_CHAINS = 4, 2
_OWN = ("lock-order-deadlock", "gil-deadlock", "fork-after-cuda")
# Waits for locks that have an owner; the others tell nothing of a lock that moves.
_OWNED = ("mutex", "rwlock", "loader", "driver", "gil", "join")


def changing_hands(view: JobView) -> Optional[Candidate]:
    """Every rank that does not idle waits for a lock or has one, and these locks were seen to move: contended only."""
    if not any(_moves(wait) for process in view.snapshot.processes for wait in process.locks):
        return None  # without the graph, which takes a while to build
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
    return Candidate("not-a-hang", "medium", summary, (), (), (), shown([step], moving[0][1]))


def _moves(wait: LockWait) -> bool:
    """A wait without a time-out ends only when the lock is let go."""
    return wait.still is False and wait.kind in _OWNED and not (wait.gone or wait.timed)


def _node(party: Party) -> Tuple[int, int]:
    lwp = party.thread.lwp if party.thread is not None else None
    return party.index, lwp or 0


def held_up(view: JobView, best: Candidate) -> Tuple[Evidence, ...]:
    """What the graph adds to a verdict that it did not make: whom its decisive threads wait for, and who for them."""
    if (
        best.cause == "not-a-hang"
        or not any(process.locks for process in view.snapshot.processes)
        or any(best.cause == cause for cause in _OWN)
    ):
        return ()
    graph = graph_of(view)
    lines: List[Evidence] = []
    for party in (*best.culprits, *best.victims)[:_MOST_NAMES]:
        chain = graph.chain(party) if party.thread is not None else ()
        if len(chain) < 2:
            chain = graph.held_up_by(party)
        if len(chain) > 1:
            first = chain[0].party
            lines.append(Evidence(story(chain), first.index, first.id or None, first.judged.frame))
    return tuple(lines[:_MOST_CHAINS])
