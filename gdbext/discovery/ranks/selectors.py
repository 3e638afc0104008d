"""What the user may say to choose processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Selector:
    """A choice of processes; what is given must hold together. Empty: the one job on this host.

    `pids` stand for the whole job each of them belongs to, one alone that has none also for what it has started;
    `name` is a regular expression searched in the title; `pgid` is a process group; `parent` stands for itself and all
    below it; `engine` is the name of a profile.
    """

    pids: Tuple[int, ...] = ()
    name: Optional[str] = None
    pgid: Optional[int] = None
    parent: Optional[int] = None
    engine: Optional[str] = None

    @property
    def empty(self) -> bool:
        return self == Selector()

    def __str__(self) -> str:
        """As it is typed."""
        values = {name: getattr(self, name) for name in ("name", "pgid", "parent", "engine")}
        given = [f"--{name} {value}" for name, value in values.items() if value is not None]
        return " ".join(given + [str(pid) for pid in self.pids])
