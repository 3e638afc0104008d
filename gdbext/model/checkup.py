"""What stands in the way of a look, and what is ready for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Point:
    """One thing that was looked at. `state`: "ok", "warning" (an answer is slower or smaller) or "hindrance"."""

    name: str
    state: str
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Checkup:
    """All of them."""

    points: Tuple[Point, ...]

    @property
    def hindered(self) -> bool:
        return any(point.state == "hindrance" for point in self.points)

    @property
    def tried(self) -> bool:
        """False when a job was looked for, to see whether it may be looked at, and none was found."""
        jobs = [point for point in self.points if point.name == "job"]
        return not jobs or any(point.state == "ok" for point in jobs)
