"""How a verdict came about: every hypothesis, and what changed the confidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple

from gdbext.model.waits import Hypothesis

SOURCES = {
    "graph": "the stacks and locks of the ranks",
    "progress": "ranks that moved between two samples, and counted work",
    "idle": "ranks that wait for work or run code of their own",
    "witnesses": "NCCL RAS, NVML, the kernel's log, shared memory",
    "checks": "a check that failed in a frame",
    "standstill": "a program whose threads all wait for each other",
    "last-resort": "a program whose threads all wait, where nothing more certain is known",
    "logs": "log lines and what the stacks' reader noted",
    "counters": "operations that the communicators launched",
    "unread": "what the kernel reports about ranks that could not be read",
}
"""What a hypothesis rests on."""

LIMITS = {
    "assumed": "an edge of its chain is only assumed",
    "inferred": "an edge of its chain is only inferred",
    "row": "one sample cannot prove this kind of cause",
    "unexplained": "it does not explain all stuck ranks",
    "contradicted": "an observation contradicts it",
}
"""What keeps the confidence of a hypothesis down."""

REGRADES = {
    "skipped": "whether a rank comes to a collective later or has skipped it, which stacks do not show",
    "slow work": "whether a culprit in slow work makes progress",
    "unread": "threads that were not read, stacks that are cut",
    "counters": "the counters of the communicators",
    "witnesses": "the other sources: NCCL RAS, NVML, the kernel's log, shared memory",
    "several jobs": "duplicate rank numbers",
}
"""What changes the confidence after the graph was read."""


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
    stuck: Tuple[int, ...] = ()  # process indexes
    answer: Optional[int] = None  # position of the hypothesis that blames whom the answer blames
    regrades: Tuple[Regrade, ...] = ()

    def regraded(self, one: Regrade) -> Considered:
        """The same with one more change of the answer's confidence."""
        return replace(self, regrades=(*self.regrades, one))
