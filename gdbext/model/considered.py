"""How a verdict came about: every hypothesis of the graph, what stood beside it, and who lowered the confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple

from gdbext.model.waits import Hypothesis

SOURCES = {
    "progress": "what moved between two looks, and work that was counted",
    "idle": "ranks that wait for work or run code of their own",
    "witnesses": "NCCL RAS, NVML, the kernel's log, shared memory",
    "checks": "a check that failed in a frame",
    "logs": "log lines and what the stacks' reader noted",
    "counters": "operations that the communicators launched",
    "unread": "what the kernel tells of ranks that could not be read",
}
"""Who speaks beside the graph."""

OUTCOMES = {
    "answer": "won: it is the answer",
    "cause": "won: it names the cause, the graph says who is to blame",
    "weaker": "lost: another voice beside the graph counts more",
    "circle": "lost: memory proves a circle of waits",
    "surer": "lost: what logs, witnesses or counters say is surer",
    "progress": "lost: progress was seen, and nothing surer speaks against it",
    "graph": "lost: the graph is at least as sure",
    "explained": "lost: the graph explains the waiting with more than low confidence",
}
"""What became of it."""

LIMITS = {
    "assumed": "an edge of its chain is only assumed",
    "inferred": "an edge of its chain is only inferred",
    "row": "a graph of one look proves no more of this kind of cause",
    "unexplained": "it leaves stuck ranks unexplained",
}
"""What keeps the confidence of a hypothesis down."""

REGRADES = {
    "slow work": "whether a culprit in the midst of slow work goes on",
    "unread": "threads that were not read, stacks that are cut",
    "counters": "the counters of the communicators",
    "witnesses": "the witnesses",
    "several jobs": "rank numbers that come twice",
}
"""What changes the confidence after the graph was read."""


@dataclass(frozen=True)
class Beside:
    """What was said beside the graph."""

    source: str  # a key of `SOURCES`
    cause: str
    confidence: str
    summary: str
    culprits: Tuple[int, ...]  # process indexes
    outcome: str = "graph"  # a key of `OUTCOMES`


@dataclass(frozen=True)
class Regrade:
    """A change of the answer's confidence."""

    by: str  # a key of `REGRADES`
    before: str
    after: str


@dataclass(frozen=True)
class Considered:
    """All that was weighed for one verdict, the best first."""

    hypotheses: Tuple[Hypothesis, ...] = ()
    beside: Tuple[Beside, ...] = ()
    stuck: Tuple[int, ...] = ()  # process indexes
    answer: Optional[int] = None  # position of the hypothesis that blames whom the answer blames
    regrades: Tuple[Regrade, ...] = ()

    def regraded(self, one: Regrade) -> Considered:
        """The same with one more change of the answer's confidence."""
        return replace(self, regrades=(*self.regrades, one))
