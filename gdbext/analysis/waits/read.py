"""The verdict that is read off the wait-for graph: the best hypothesis, with what others than the stacks said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Optional, Sequence, Tuple

from gdbext.analysis.across import sleeps_on
from gdbext.analysis.candidate import Candidate, evidence_of
from gdbext.analysis.locks import taken_in
from gdbext.analysis.view import JobView, Party, without
from gdbext.analysis.waits.beside import Voices, told_beside, voices
from gdbext.analysis.waits.build import build
from gdbext.analysis.waits.chain import LONGEST, agrees, explained
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.hypotheses import hypotheses, stuck
from gdbext.analysis.waits.prose import summary
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.model.considered import Beside, Considered
from gdbext.model.verdict import Evidence
from gdbext.model.waits import Hypothesis

_MOST_WAITS = 8


def read_off(view: JobView, unknown: Candidate) -> Candidate:
    """The answer of the graph; `unknown` with the chain of a rank where nothing explains the waiting. It carries all
    that was weighed for it."""
    drawing = build(view)
    graph = drawing.graph
    found = hypotheses(view, graph)
    heard = voices(view)
    best, winner = _best(drawing, found[0] if found else None, heard)
    answer = explained(drawing, graph, found, best or unknown)
    joined = winner == "said" and heard.said is not None and answer.culprits != heard.said.culprits
    beside = told_beside(heard, winner, _proven(found[0] if found else None), joined)
    return replace(answer, considered=_considered(view, found, answer, beside))


def _considered(
    view: JobView, found: Sequence[Hypothesis], answer: Candidate, beside: Tuple[Beside, ...]
) -> Considered:
    own = None if answer.cause == "not-a-hang" else next((one for one in found if agrees(one, answer)), None)
    # The answer's chain names all ranks at its beginning.
    told = tuple(replace(one, chain=answer.chain if one is own else one.chain[:LONGEST]) for one in found)
    return Considered(told, beside, stuck(view), found.index(own) if own is not None else None)


def _best(drawing: Drawing, best: Optional[Hypothesis], heard: Voices) -> Tuple[Optional[Candidate], str]:
    """The answer, and who gives it: "progress", "idle", "said" or "graph"."""
    moves, said = heard.moves, heard.said
    if moves is not None and not _proven(best) and (said is None or not _surer(said.confidence, moves.confidence)):
        return moves, "progress"
    if said is not None and (best is None or _surer(said.confidence, best.confidence)):
        return _beside(drawing, said, best), "said"
    if heard.idles is not None and (best is None or best.confidence == "low"):
        return heard.idles, "idle"
    return _candidate(drawing, best) if best is not None else None, "graph"


def _proven(best: Optional[Hypothesis]) -> bool:
    """Whether memory proves a circle of waits."""
    return best is not None and best.circle and best.weakest == "proven"


def _surer(one: str, other: str) -> bool:
    return CONFIDENCE.index(one) > CONFIDENCE.index(other)


def _beside(drawing: Drawing, said: Candidate, best: Optional[Hypothesis]) -> Candidate:
    """What logs, witnesses or counters say; who is to blame by the graph stays so where they name nobody."""
    if said.culprits or said.absent or best is None or not best.blamed:
        return said
    own = _candidate(drawing, best)
    return replace(said, culprits=own.culprits, victims=own.victims, evidence=(*said.evidence, *own.evidence))


def _candidate(drawing: Drawing, best: Hypothesis) -> Candidate:
    named = dict.fromkeys(one.id for one in best.blamed)  # in an order that no hash decides
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
