"""What lock owners say beside the answer of the wait-for graph: locks that change hands, and whom deciding threads
wait for."""

from __future__ import annotations

from typing import List, Mapping, Optional, Sequence, Tuple

from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import looked_long
from gdbext.analysis.view.candidate import Candidate, evidence_of, shows
from gdbext.analysis.view.job_view import JobView
from gdbext.analysis.view.places import taken_in
from gdbext.analysis.view.wording import start, verb, who
from gdbext.analysis.waits.chain import walk
from gdbext.analysis.waits.cycles import reversed_edges
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.prose import chain_with_end
from gdbext.analysis.waits.thread_numbers import Threads
from gdbext.model.locks import KINDS, LockWait
from gdbext.model.verdict import Evidence
from gdbext.model.waits import JOINS, Edge, Node, WaitGraph

_MOST_NAMES, _MOST_CHAINS = 4, 2
_OWN = ("lock-order-deadlock", "gil-deadlock", "fork-after-cuda")
# Waits for locks that have an owner; the others tell nothing of a lock that moves.
_OWNED = ("mutex", "rwlock", "loader", "driver", "gil", "join")


def changing_hands(view: JobView) -> Optional[Candidate]:
    """Every rank that does not idle waits for a lock or has one, and these locks were seen to move: contended only."""
    if not any(_moves(wait) for process in view.snapshot.processes for wait in process.locks):
        return None
    threads = Threads(view)
    moving = [(waiter, wait) for waiter, wait in threads.waits() if _moves(wait)]
    taking_part = {
        id(one.thread)
        for waiter, wait in moving
        for one in (waiter, threads.owner(waiter.process, wait))
        if one is not None
    }
    working = [party for party in view.parties if party.group != "idle"]
    outside = [party for party in working if party.group not in ("lock", "elsewhere", "unknown")]
    if not moving or not working or outside or not all(id(party.thread) in taking_part for party in working):
        return None
    deciding = {id(party.thread) for party in working}
    own = [(waiter, wait) for waiter, wait in moving if id(waiter.thread) in deciding]
    first, wait = (own or moving)[0]
    if own and all(wait.kind == "join" for _, wait in own) and not looked_long(view):
        summary = (
            f"It is not clear yet whether anything hangs: a thread that thread {first.id} waited for, in "
            f"{taken_in(first)}, ended between two copies. It may wait for further ones."
        )
        return not_clear(view, summary, evidence_of((), working))
    waited = f"thread {first.id} waited for {KINDS[wait.kind]} in {taken_in(first)}"
    summary = (
        f"{start(who(working))} {verb(working, 'takes', 'take')} part in a lock that changes hands: {waited}, and a "
        "second sample found another owner or no wait. The lock is contended; no thread is stuck."
    )
    return Candidate(cause="not-a-hang", confidence="medium", summary=summary, evidence=(shows(first, waited),))


def _moves(wait: LockWait) -> bool:
    """A wait without a time-out ends only when the lock is let go."""
    return wait.still is False and wait.kind in _OWNED and not (wait.gone or wait.timed)


def held_up(drawing: Drawing, graph: WaitGraph, best: Candidate) -> Tuple[Evidence, ...]:
    """What locks add to an answer that is none of them: whom its decisive threads wait for, and who for them."""
    if best.cause in ("not-a-hang", *_OWN) or not any(one.locks for one in drawing.view.snapshot.processes):
        return ()
    before = reversed_edges(graph)
    lines: List[Evidence] = []
    for party in (*best.culprits, *best.victims)[:_MOST_NAMES]:
        node = drawing.of(party)
        way = _to_holders(walk(graph, node)) or _to_waiter(before, node)
        first = drawing.parties.get(way[0].source.id) if way else None
        if first is not None:
            lines.append(shows(first, start(chain_with_end(way, drawing.parties))))
    return tuple(lines[:_MOST_CHAINS])


def _to_holders(way: Sequence[Edge]) -> Tuple[Edge, ...]:
    """The beginning of a way that leads over locks and joins, up to the last thread that is known."""
    count = next((number for number, edge in enumerate(way) if not _is_of_locks(edge)), len(way))
    while count and way[count - 1].target.thread is None:
        count -= 1
    return tuple(way[:count])


def _is_of_locks(edge: Edge) -> bool:
    return edge.target.kind == "lock" or edge.kind == "holds" or (edge.kind == JOINS and edge.target.thread is not None)


def _to_waiter(before: Mapping[str, Sequence[Edge]], node: Node) -> Tuple[Edge, ...]:
    """The way of one that waits for the thread."""
    last = next((edge for edge in before.get(node.id, ()) if _is_of_locks(edge)), None)
    if last is None or last.kind != "holds":
        return (last,) if last is not None else ()
    first = next(iter(before.get(last.source.id, ())), None)
    return (first, last) if first is not None else ()
