"""What others than the stacks say, as facts on the graph: progress, idle jobs, logs, witnesses, counters, checks.

A fact that names a rank is an edge to it from what the other ranks wait for; one that names nobody is an end for all
that wait. Each is a hypothesis like those that are read off the graph, and weighed like them (which_cause_wins.py).
"""

from __future__ import annotations

from typing import Callable, List, Mapping, NamedTuple, Optional, Tuple

from gdbext.analysis.causes import causes_in_logs, witness_evidence
from gdbext.analysis.communicators import launch_counts
from gdbext.analysis.failures import failed_check, gpu_findings
from gdbext.analysis.progress import healthy, nobody_acts, pool_tasks, running, slow
from gdbext.analysis.progress.idle import at_rest, keeps_running, works_inside
from gdbext.analysis.progress.own_hangs import (
    background_collectives,
    blocked_signals,
    dead_children,
    engine_requests,
    engine_start,
    in_debugger,
    kept_gil,
    kept_lock,
    loop_tasks,
    no_room,
    polls_alone,
    results_elsewhere,
    stops_in_vain,
    taken_further_out,
    unanswered_requests,
)
from gdbext.analysis.unread import unread_ranks
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.waits import changing_hands
from gdbext.analysis.waits.drawing import Drawing
from gdbext.model.verdict import Evidence
from gdbext.model.waits import Node

_Pattern = Callable[[JobView], Optional[Candidate]]

_SOURCES: Mapping[str, Tuple[_Pattern, ...]] = {
    "progress": (*slow.PATTERNS, *running.PATTERNS, healthy.goes_on, *background_collectives.PATTERNS),
    "idle": (
        healthy.nothing_to_do,
        healthy.all_busy,
        healthy.some_stand,
        changing_hands.changing_hands,
        *kept_lock.PATTERNS,
        *engine_requests.PATTERNS,
        *no_room.PATTERNS,
        *polls_alone.PATTERNS,
        *stops_in_vain.PATTERNS,
        *keeps_running.PATTERNS,
        *at_rest.PATTERNS,
        *results_elsewhere.PATTERNS,
        *works_inside.PATTERNS,
    ),
    "witnesses": witness_evidence.PATTERNS,
    "checks": (*gpu_findings.PATTERNS, *failed_check.PATTERNS),
    "standstill": (
        *background_collectives.LOST,
        *loop_tasks.LOST,
        *dead_children.LOST,
        *blocked_signals.LOST,
        *kept_gil.LOST,
        *kept_lock.LOST,
        *taken_further_out.LOST,
        *stops_in_vain.LOST,
        *in_debugger.LOST,
        *unanswered_requests.LOST,
        *engine_requests.LOST,
        *engine_start.LOST,
        *polls_alone.LOST,
        *no_room.LOST,
        *results_elsewhere.LOST,
        *pool_tasks.LOST,
        *at_rest.LOST,
        *works_inside.LOST,
    ),
    "last-resort": nobody_acts.LOST,
    "counters": launch_counts.PATTERNS,
    "logs": causes_in_logs.PATTERNS,
    "unread": unread_ranks.PATTERNS,
}
"""By key of model/considered_hypotheses.py SOURCES, those that prove most first."""

PATTERNS: Tuple[_Pattern, ...] = tuple(pattern for some in _SOURCES.values() for pattern in some)

_OF_CONFIDENCE = {"low": "assumed", "medium": "inferred", "high": "named"}
_PROVE = ("progress", "witnesses", "counters")
_MEANS = {
    "gpu-fault": ("device", "the GPU"),
    "driver-bug": ("driver", "the GPU driver"),
    "shm-too-small": ("file", "shared memory"),
}
"""What has failed by a cause, and its name: the end beyond the ranks."""
_JOINED = ("collective", "rendezvous")
_MOST_RANKS = 64  # that edges are drawn to


class Fact(NamedTuple):
    """What one pattern found."""

    source: str  # a key of `SOURCES`
    row: str
    said: Candidate
    strength: str  # a key of model/waits.py STRENGTHS
    roots: Tuple[Node, ...] = ()


def gather_facts(view: JobView) -> Tuple[Fact, ...]:
    """Each pattern is asked once."""
    found: List[Fact] = []
    for source, patterns in _SOURCES.items():
        for pattern in patterns:
            said = pattern(view)
            if said is not None:
                strength = "proven" if source in _PROVE else _OF_CONFIDENCE[said.confidence]
                found.append(Fact(source, pattern.__name__.replace("_", "-"), said, strength))
    return tuple(found)


def draw(drawing: Drawing, facts: Tuple[Fact, ...]) -> Tuple[Fact, ...]:
    """Edges for those that say why ranks wait. The same facts, with the nodes where they end."""
    return tuple(one._replace(roots=_draw(drawing, one)) for one in facts)


def _draw(drawing: Drawing, fact: Fact) -> Tuple[Node, ...]:
    said = fact.said
    if fact.source in ("progress", "idle") or said.cause in ("not-a-hang", "unknown"):
        return ()
    shown = said.evidence[:1] or (Evidence(said.summary),)
    blamed = [drawing.rank(party) for party in said.culprits[:_MOST_RANKS]]
    blamed += [drawing.absent(rank) for rank in said.absent[:_MOST_RANKS]]
    waits = _waited_for(drawing, said.victims)
    for party in said.victims[:_MOST_RANKS] if len(waits) == 1 else ():  # of some no stack was read
        rank = drawing.rank(party)
        if party.thread is None and party.kind == "unknown":
            drawing.clear(rank)
            drawing.join(rank, waits[0], "said", fact.strength, shown)
    for node in waits:
        for rank in blamed:
            known = any(edge.target.id == rank.id for edge in drawing.leaving(node))
            arrived = any(edge.target.id == node.id for edge in drawing.leaving(rank))
            if not (known or arrived):
                drawing.join(node, rank, "said", fact.strength, shown)
    if said.cause not in _MEANS:
        return tuple(blamed)
    kind, name = _MEANS[said.cause]
    ends: List[Node] = []
    for rank in blamed:
        end = drawing.resource(kind, f"failed:{rank.id}", f"{name} of {rank.label}", "faulted")
        drawing.join(rank, end, "said", fact.strength, shown)
        ends.append(end)
    if not blamed:
        ends.append(drawing.resource(kind, f"failed:{fact.row}", name, "faulted"))
        for node in waits:
            drawing.join(node, ends[0], "said", fact.strength, shown)
    return tuple(ends)


def _waited_for(drawing: Drawing, victims: Tuple[Party, ...]) -> List[Node]:
    """The collectives and rendezvous that ranks wait for."""
    found = {}
    for party in victims:
        node = drawing.known(party)
        for edge in drawing.leaving(node) if node is not None else ():
            if edge.target.kind in _JOINED:
                found[edge.target.id] = edge.target
    return list(found.values())
