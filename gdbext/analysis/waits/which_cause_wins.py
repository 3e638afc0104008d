"""Which of the hypotheses is the answer: how much each explains, what contradicts it, how sure it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Sequence, Tuple

from gdbext.analysis.view.job_view import JobView
from gdbext.analysis.waits.facts_beside_stacks import Fact
from gdbext.analysis.waits.hypotheses import Finder
from gdbext.knowledge.labels import CONFIDENCE
from gdbext.model.waits import STRENGTHS, Hypothesis, WaitGraph

_ORDER = tuple(STRENGTHS)
_STRONG_SOURCES = ("witnesses", "checks", "standstill", "last-resort", "counters", "logs")


def hypotheses(view: JobView, graph: WaitGraph, facts: Sequence[Fact] = ()) -> Tuple[Hypothesis, ...]:
    """All of them, the best first: in this order by how many of the stuck ranks they explain, by what contradicts them,
    by their weakest edge."""
    finder = Finder(view, graph)
    drawn = [*finder.of_circles(), *finder.of_ends()]
    surest = max(map(_sureness, drawn), default=-1)
    others = finder.of_facts(facts)
    found = [*drawn, *(one for one in others if one.source != "last-resort" or _sureness(one) >= surest)]
    return tuple(sorted(with_contradictions(found), key=_weight, reverse=True))


def with_contradictions(found: Sequence[Hypothesis]) -> Iterator[Hypothesis]:
    """With what they say against each other. Who was seen to go on does not hang, unless memory proves a circle; and
    ranks that look idle are none where something else tells what went wrong."""
    going = max((one for one in found if one.source == "progress"), key=_sureness, default=None)
    circle = next((one for one in found if one.circle and one.weakest == "proven"), None)
    fault = next((one for one in found if _is_fault(one)), None)
    said = next(
        (one for one in found if one.source in _STRONG_SOURCES and one.cause not in ("unknown", "not-a-hang")), None
    )
    for one in found:
        against = one.contradictions
        if one.source == "progress" and circle is not None:
            against += ("memory proves a deadlock cycle",)
        elif going is not None and one is not circle and _speaks_against(going, one):
            against += (f"progress was seen: {going.row}",)
        if fault is not None and one.source == "graph" and not (one.circle and one.weakest == "proven"):
            failed = tuple(f"the GPU of {node.label} has failed" for node in one.blamed if node in fault.blamed)
            against += failed
            one = replace(one, confidence=min(one.confidence, "medium", key=CONFIDENCE.index)) if failed else one
        if one.source == "idle" and said is not None:
            against += (f"{said.source} report {said.cause}",)
        yield replace(one, contradictions=against)


def _is_fault(one: Hypothesis) -> bool:
    """Whether it ends at a GPU that a check or its core shows to have failed: by stacks, its rank is only late."""
    sure = one.source == "checks" and one.confidence == "high"
    return sure and any(node.kind == "device" and node.state == "faulted" for node in one.roots)


def _speaks_against(going: Hypothesis, one: Hypothesis) -> bool:
    """Whether progress is at least as sure as what a log or a witness says; it always is as what stacks look like."""
    looks = one.source in ("graph", "idle")
    return looks or (one.source != "progress" and _sureness(one) <= _sureness(going))


def _sureness(one: Hypothesis) -> int:
    return CONFIDENCE.index(one.confidence)


def _weight(one: Hypothesis) -> Tuple[float, ...]:
    strength = _ORDER.index(one.weakest)
    stacks = one.source == "graph"
    return one.share, -len(one.contradictions), _sureness(one), stacks, _is_fact(one), one.circle, strength


def _is_fact(one: Hypothesis) -> bool:
    """Whether what the others end at is seen, not read from what they wait in: a process that is gone or stopped."""
    return not one.circle and any(root.state in ("dead", "stopped") for root in one.roots)
