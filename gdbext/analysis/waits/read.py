"""The verdict that is read off the wait-for graph: the best hypothesis, with what others than the stacks said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Optional, Sequence, Tuple

from gdbext.analysis import failed_checks, healthy, locking, outline, told
from gdbext.analysis.across import sleeps_on
from gdbext.analysis.candidate import Candidate, evidence_of
from gdbext.analysis.launches import PATTERNS as COUNTS
from gdbext.analysis.locks import taken_in
from gdbext.analysis.running import PATTERNS as RUNNING
from gdbext.analysis.slow import PATTERNS as SLOW
from gdbext.analysis.view import JobView, Party, without
from gdbext.analysis.waits.build import build
from gdbext.analysis.waits.chain import explained
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.hypotheses import hypotheses
from gdbext.analysis.waits.prose import summary
from gdbext.analysis.witnesses import PATTERNS as BESIDE
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.model.verdict import Evidence
from gdbext.model.waits import Hypothesis

_MOST_WAITS = 8

_Pattern = Callable[[JobView], Optional[Candidate]]

_MOVES: Tuple[_Pattern, ...] = (*SLOW, *RUNNING, healthy.goes_on)
_IDLES: Tuple[_Pattern, ...] = (healthy.nothing_to_do, healthy.all_busy, locking.changing_hands)
_SAID: Tuple[_Pattern, ...] = (
    *BESIDE,
    *failed_checks.PATTERNS,
    *told.PATTERNS,
    *COUNTS,
    *outline.PATTERNS,
)

PATTERNS: Tuple[_Pattern, ...] = (*_MOVES, *_IDLES, *_SAID)
"""What is said beside the graph: of progress, of idle jobs, by logs, witnesses and counters."""


def read_off(view: JobView, unknown: Candidate) -> Candidate:
    """The answer of the graph; `unknown` with the chain of a rank where nothing explains the waiting."""
    drawing = build(view)
    graph = drawing.graph
    found = hypotheses(view, graph)
    best = _best(view, drawing, found[0] if found else None)
    return explained(drawing, graph, found, best or unknown)


def _best(view: JobView, drawing: Drawing, best: Optional[Hypothesis]) -> Optional[Candidate]:
    moves, said = _surest(view, _MOVES), _surest(view, _SAID)
    proven = best is not None and best.circle and best.weakest == "proven"
    if moves is not None and not proven and (said is None or not _surer(said.confidence, moves.confidence)):
        return moves
    if said is not None and (best is None or _surer(said.confidence, best.confidence)):
        return _beside(drawing, said, best)
    if best is None or best.confidence == "low":
        return _surest(view, _IDLES) or (_candidate(drawing, best) if best is not None else None)
    return _candidate(drawing, best)


def _surest(view: JobView, patterns: Sequence[_Pattern]) -> Optional[Candidate]:
    found: List[Candidate] = []
    for pattern in patterns:
        one = pattern(view)
        if one is not None:
            found.append(one)
    return max(found, key=lambda one: (CONFIDENCE.index(one.confidence), one.strength), default=None)


def _surer(one: str, other: str) -> bool:
    return CONFIDENCE.index(one) > CONFIDENCE.index(other)


def _beside(drawing: Drawing, said: Candidate, best: Optional[Hypothesis]) -> Candidate:
    """What logs, witnesses or counters say; who is to blame by the graph stays so where they name nobody."""
    if said.culprits or said.absent or best is None or not best.blamed:
        return said
    own = _candidate(drawing, best)
    return replace(said, culprits=own.culprits, victims=own.victims, evidence=(*said.evidence, *own.evidence))


def _candidate(drawing: Drawing, best: Hypothesis) -> Candidate:
    named = {one.id for one in best.blamed}
    culprits = tuple(drawing.parties[one] for one in named if one in drawing.parties)
    culprits = tuple(sorted(culprits, key=lambda one: one.index))
    victims = _victims(drawing, best, culprits)
    text = summary(best, culprits, victims)
    evidence = (*_waits(drawing, best), *evidence_of(culprits, victims), *sleeps_on(culprits))
    return Candidate(best.cause, best.confidence, 0, text, culprits, tuple(victims), best.absent, evidence)


def _victims(drawing: Drawing, best: Hypothesis, culprits: Sequence[Party]) -> List[Party]:
    indexes = set(best.explained)
    reached = [party for party in drawing.view.parties if party.index in indexes]
    blamed = {one.index for one in culprits}
    if drawing.view.threads_as_ranks:
        return without(reached, culprits)
    return [party for party in reached if party.index not in blamed]


def _waits(drawing: Drawing, best: Hypothesis) -> List[Evidence]:
    """What proves the waits between threads: a line for each of them."""
    lines: List[Evidence] = []
    for edge in best.chain:
        if edge.target.kind == "lock" or (edge.target.kind in ("thread", "process", "peer") and edge.kind != "holds"):
            party = drawing.parties.get(edge.source.id)
            fact = edge.facts[0] if edge.facts else Evidence("", edge.source.process, edge.source.thread)
            place = f", in {taken_in(party)}" if party is not None else ""
            lines.append(replace(fact, text=f"{edge.source.label} waits for {edge.target.label}{place}"))
    return lines[:_MOST_WAITS]
