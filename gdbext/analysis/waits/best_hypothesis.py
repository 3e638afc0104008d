"""The verdict that is read off the wait-for graph: the best hypothesis, with what others than the stacks said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Mapping, Sequence

from gdbext.analysis.causes.other_lengths import odd_by_length
from gdbext.analysis.progress.waits_for_ranks import sleeps_on
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.places import failed_before, taken_in
from gdbext.analysis.waits.awaited_thread import awaited_thread
from gdbext.analysis.waits.chain import LONGEST, own_of, with_chain
from gdbext.analysis.waits.changing_hands import held_up
from gdbext.analysis.waits.drawing import Drawing
from gdbext.analysis.waits.edges.one_process import ways_out
from gdbext.analysis.waits.facts_beside_stacks import draw, gather_facts
from gdbext.analysis.waits.graph_builder import build
from gdbext.analysis.waits.hypotheses import stuck_ranks
from gdbext.analysis.waits.prose import summary
from gdbext.analysis.waits.which_cause_wins import hypotheses
from gdbext.model.considered_hypotheses import Considered
from gdbext.model.verdict import Evidence
from gdbext.model.waits import Hypothesis

_MOST_WAITS = 8
_HELD = ("holds", "kept")


def read_off(view: JobView, unknown: Candidate) -> Candidate:
    """The answer of the graph; `unknown` with the chain of a rank where nothing explains the waiting. It carries all
    that was weighed for it."""
    drawing = build(view)
    facts = draw(drawing, gather_facts(view))
    graph = drawing.graph
    found = hypotheses(view, graph, facts)
    said = {fact.row: fact.said for fact in facts}
    best = odd_by_length(view, _best(drawing, found, said)) if found else unknown
    answer = with_chain(drawing, graph, found, best)
    evidence = (*answer.evidence, *held_up(drawing, graph, answer))
    waiting = (answer.victims or view.parties)[:1] if answer.cause == "unknown" else ()
    evidence += tuple(line for party in waiting for line in ways_out(view, party))
    return replace(answer, evidence=evidence, considered=_considered(view, found, answer))


def _considered(view: JobView, found: Sequence[Hypothesis], answer: Candidate) -> Considered:
    own = own_of(found, answer)
    # The answer's chain names all ranks at its beginning.
    shortened = tuple(replace(one, chain=answer.chain if one is own else one.chain[:LONGEST]) for one in found)
    return Considered(shortened, stuck_ranks(view), found.index(own) if own is not None else None)


def _best(drawing: Drawing, found: Sequence[Hypothesis], said: Mapping[str, Candidate]) -> Candidate:
    """The first hypothesis. One that names a cause and nobody leaves those to blame whom the graph blames."""
    best = found[0]
    if best.source == "graph":
        return _candidate(drawing, best)
    best_one = said[best.row]
    graph = next((one for one in found if one.source == "graph"), None)
    if best.source in ("progress", "idle") or best_one.culprits or best_one.absent or graph is None or not graph.blamed:
        return best_one
    own = _candidate(drawing, graph)
    return replace(best_one, culprits=own.culprits, victims=own.victims, evidence=(*best_one.evidence, *own.evidence))


def _candidate(drawing: Drawing, best: Hypothesis) -> Candidate:
    named = dict.fromkeys(one.id for one in best.blamed)  # in an order that no hash decides
    culprits = tuple(drawing.parties[one] for one in named if one in drawing.parties)
    culprits = tuple(sorted(culprits, key=lambda one: one.index))
    victims = _victims(drawing, best, culprits)
    awaited = awaited_thread(drawing.view, culprits[0]) if culprits else ""
    text = summary(best, culprits, victims, awaited) + (failed_before(culprits[0]) if culprits else "")
    evidence = (*_waits(drawing, best), *evidence_of(culprits, victims), *sleeps_on(culprits))
    return Candidate(
        cause=best.cause,
        confidence=best.confidence,
        summary=text,
        culprits=culprits,
        victims=tuple(victims),
        absent=best.absent,
        evidence=evidence,
    )


def _victims(drawing: Drawing, best: Hypothesis, culprits: Sequence[Party]) -> List[Party]:
    indexes = set(best.explained)
    reached = [party for party in drawing.view.parties if party.index in indexes]
    blamed = {one.index for one in culprits}
    if drawing.view.threads_as_ranks:
        return parties_without(reached, culprits)
    return [party for party in reached if party.index not in blamed]


def _waits(drawing: Drawing, best: Hypothesis) -> List[Evidence]:
    """What proves the waits between threads: a line for each of them."""
    lines: List[Evidence] = []
    for edge in best.chain:
        if edge.target.kind == "lock" or (edge.target.kind in ("thread", "process", "peer") and edge.kind not in _HELD):
            party = drawing.parties.get(edge.source.id)
            fact = edge.facts[0] if edge.facts else Evidence("", edge.source.process, edge.source.thread)
            place = f", in {taken_in(party)}" if party is not None else ""
            said = ": " if edge.target.label.startswith("no ") else " waits for "  # `no other process has it open`
            lines.append(replace(fact, text=f"{edge.source.label}{said}{edge.target.label}{place}"))
    return lines[:_MOST_WAITS]
