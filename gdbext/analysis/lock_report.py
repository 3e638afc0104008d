"""Everything that `llm-locks` tells: each wait with its owner, circles first, and the longest chains as stories."""

from __future__ import annotations

from collections import Counter
from typing import Collection, Dict, List, Optional, Sequence, Tuple

from gdbext.analysis.lock_frames import is_text, waits_of
from gdbext.analysis.locks import LockGraph, Node, Step, lowered, story, taken_in
from gdbext.analysis.peers import other_end
from gdbext.analysis.view import look
from gdbext.analysis.wording import start, where
from gdbext.knowledge.locks import NO_OWNER
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import KINDS, LockReport, LockRow, LockWait, PeerRow
from gdbext.model.stack import ThreadStack
from gdbext.model.verdict import Diagnosis

_MOST_STORIES = 8
_DEADLOCKS = ("lock-order-deadlock", "gil-deadlock")
_BY_FRAMES = (
    "Of texts the frames tell who waits; a live look, or one at a core file, reads from memory who holds a lock."
)


def report(diagnosis: Diagnosis, only: Optional[Collection[int]] = None) -> LockReport:
    """The report on a judged snapshot; of the processes with these indexes where `only` is given."""
    view = look(diagnosis.snapshot, diagnosis.processes)
    graph = LockGraph(view)
    chosen = [pair for pair in graph.waits if only is None or pair[0].party.index in only]
    circles = {graph.node(step): number for number, cycle in enumerate(graph.cycles) for step in cycle}
    rows = [_row(graph, circles, step, owner) for step, owner in chosen if not _ownerless(step.wait)]
    kinds = Counter(step.wait.kind for step, _ in chosen if step.wait is not None and _ownerless(step.wait))
    seen = [process for process in diagnosis.snapshot.processes if only is None or process.index in only]
    by_frames, ownerless = waits_of(view, [one.index for one in seen if is_text(one.source) and not one.locks])
    rows = sorted(rows + by_frames, key=lambda row: (row.circle is None, row.circle or 0, row.process))
    kinds.update(ownerless)
    suspicion = _suspicion(diagnosis, {row.process for row in by_frames})
    notes = [] if rows or kinds or any(process.locks for process in seen) else [_why_nothing(seen)]
    notes += [_BY_FRAMES] if by_frames else []
    peers = tuple(
        PeerRow(process.index, process.label, _thread_id(process.threads, peer.thread), peer.file, other_end(peer))
        for process in seen
        for peer in process.peers
    )
    return LockReport(
        tuple(rows),
        (*suspicion, *_stories(graph, chosen)),
        peers,
        tuple(kinds.most_common()),
        tuple(notes),
        suspected=bool(suspicion),
    )


def _suspicion(diagnosis: Diagnosis, waiting: Collection[int]) -> Tuple[str, ...]:
    """What the verdict says, where it takes the waits that frames alone show for a deadlock."""
    verdict = diagnosis.verdict
    suspected = verdict.cause in _DEADLOCKS and any(index in waiting for index in verdict.culprits)
    return (verdict.summary,) if suspected else ()


def _why_nothing(seen: Sequence[RankSnapshot]) -> str:
    if not seen:
        return "No process was read."
    by_frames = ", as far as frames tell" if any(is_text(one.source) for one in seen) else ""
    return f"No thread was seen in a wait for a lock{by_frames}."


def _thread_id(threads: Sequence[ThreadStack], lwp: int) -> str:
    return next((one.id for one in threads if one.lwp == lwp), str(lwp))


def _ownerless(wait: Optional[LockWait]) -> bool:
    return wait is None or wait.kind in NO_OWNER or wait.kind == "futex"


def _row(graph: LockGraph, circles: Dict[Node, int], step: Step, owner: Optional[Step]) -> LockRow:
    wait, party = step.wait, step.party
    assert wait is not None and party.thread is not None
    return LockRow(
        party.index,
        party.process.label,
        party.thread.id,
        party.thread.name or "",
        wait,
        taken_in(party),
        _owner(step, owner, wait),
        _does(owner, graph) if owner is not None else _why_unknown(wait),
        circles.get(graph.node(step)),
    )


def _owner(step: Step, owner: Optional[Step], wait: LockWait) -> str:
    if owner is not None:
        elsewhere = f" of {owner.party.process.label}" if owner.party.index != step.party.index else ""
        return f"{owner.name}{elsewhere}"
    return f"thread {wait.owner}" if isinstance(wait.owner, int) else ""


def _does(owner: Step, graph: LockGraph) -> str:
    if owner.wait is None:
        return f"is in {where(owner.party)}"
    return "waits too" if graph.in_cycle(owner) else f"waits for {KINDS[owner.wait.kind]}"


def _why_unknown(wait: LockWait) -> str:
    if not isinstance(wait.owner, int):
        return wait.owner.reason if wait.gone else f"unknown: {wait.owner.reason}"
    if wait.gone and wait.owner_process is not None:
        return f"is a thread of the parent, pid {wait.owner_process}: it was not forked along"
    return "has ended, or was left in the parent by a fork" if wait.gone else "was not seen"


def _stories(graph: LockGraph, chosen: Sequence[Tuple[Step, Optional[Step]]]) -> Tuple[str, ...]:
    """Circles, then the longest chains that no longer chain contains."""
    told: List[str] = []
    wanted = {graph.node(step) for step, _ in chosen}
    for cycle in graph.cycles:
        if any(graph.node(step) in wanted for step in cycle):
            label = cycle[0].party.process.label
            told.append(f"Circle in {label}: {story(cycle, cycle[0])}. None of them ever goes on.")
    waited_for = {graph.node(owner) for _, owner in chosen if owner is not None}
    heads: Dict[Node, List[Step]] = {}  # by the thread they wait for
    for step, owner in chosen:
        if owner is not None and graph.node(step) not in waited_for:
            heads.setdefault(graph.node(owner), []).append(step)
    chains = sorted(((graph.chain(steps[0].party), len(steps)) for steps in heads.values()), key=_length, reverse=True)
    told += [
        f"{_label(step)}: {_told(graph, [step])}." for step, _ in chosen if step.wait is not None and step.wait.gone
    ]
    told += [f"{_label(chain[0])}: {_told(graph, chain)}{_also(count - 1)}." for chain, count in chains[:_MOST_STORIES]]
    return tuple(told[: 2 * _MOST_STORIES])


def _length(chain: Tuple[Sequence[Step], int]) -> Tuple[int, int]:
    return len(chain[0]), chain[1]


def _also(others: int) -> str:
    """How many more threads the first of a chain stands for."""
    return f". {others} more {'threads wait' if others > 1 else 'thread waits'} like the first" if others else ""


def _label(step: Step) -> str:
    return start(step.party.process.label)


def _told(graph: LockGraph, chain: Sequence[Step]) -> str:
    """A chain up to where it enters a circle, or to a thread whose wait says why it does not go on."""
    circle = next((number for number, step in enumerate(chain) if graph.in_cycle(step)), None)
    if circle is not None:
        return f"{lowered(story(chain[:circle], chain[circle]))}, which is in the circle"
    last = chain[-1]
    if last.wait is None:
        return lowered(story(chain))
    if last.wait.gone and not last.wait.owner:
        return f"{lowered(story(chain))}; {_why_unknown(last.wait)}"
    why = f", which {_why_unknown(last.wait)}" if last.wait.gone else f" in {taken_in(last.party)}"
    return f"{lowered(story(chain))}{why}"
