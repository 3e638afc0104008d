"""Two looks at a job that lie apart: by an hour, a build or a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.look_origin import Origin

STATES = {
    "moved": "its deciding thread is in different calls",
    "same": "its deciding thread is in the same calls and, as far as is known, did not run",
    "unknown": "whether it moved is unknown",
    "new": "it is in the second snapshot only",
    "gone": "it is in the first snapshot only",
}
"""What a rank did between the two looks (`RankDifference.state`)."""


@dataclass(frozen=True)
class CountDifference:
    """Collectives of one kind that a rank has launched on one communicator."""

    communicator: int  # its hash
    kind: str
    before: int
    after: int


@dataclass(frozen=True)
class RankDifference:
    """One rank in both looks. `wait_*` are labels of waits; None where the rank is not in that look."""

    name: str  # how people call it
    state: str
    rank: Optional[int] = None
    pid_before: Optional[int] = None
    pid_after: Optional[int] = None
    wait_before: Optional[str] = None
    wait_after: Optional[str] = None
    why: Optional[str] = None  # why the state is unknown
    counts: Tuple[CountDifference, ...] = ()  # that have changed


@dataclass(frozen=True)
class StackDifference:
    """A stack that other ranks have in the second look. `before`, `after`: the ranks that have it."""

    calls: Tuple[str, ...]  # functions, callers first
    before: Tuple[int, ...]
    after: Tuple[int, ...]


@dataclass(frozen=True)
class JobDifference:
    """All of it. `counts`: what the numbers of stacks are, "rank" or "process"."""

    before: Origin
    after: Origin
    ranks: Tuple[RankDifference, ...]
    stacks: Tuple[StackDifference, ...] = ()
    counts: str = "rank"
    notes: Tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether something has changed."""
        return bool(self.stacks) or any(one.state not in ("same", "unknown") or one.counts for one in self.ranks)

    @property
    def told(self) -> bool:
        """Whether it can be told of every rank."""
        return bool(self.ranks) and all(one.state != "unknown" for one in self.ranks)
