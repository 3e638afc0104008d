"""What every witness is asked: which ranks the job has, and until when an answer is worth something."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple

from gdbext.model.witness import Statement, Witness

_MOST_STATEMENTS = 64


@dataclass(frozen=True)
class Asked:
    """A rank process. `index` is its place in the snapshot, `cache` its folder for caches ("" when unknown)."""

    index: int
    pid: int
    rank: Optional[int] = None
    device: Optional[str] = None
    environment: Mapping[str, str] = field(default_factory=dict)
    cache: str = ""
    start_time: Optional[int] = None  # clock ticks after boot

    @property
    def label(self) -> str:
        return f"pid {self.pid}" if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True)
class Question:
    """All ranks, the /proc to read, and the CLOCK_MONOTONIC second at which nobody listens any more."""

    ranks: Tuple[Asked, ...]
    until: float
    proc: str = "/proc"

    @property
    def left(self) -> float:
        return max(0.0, self.until - time.monotonic())

    def variable(self, name: str) -> Optional[str]:
        """The value in the first rank that has it."""
        return next((one.environment[name] for one in self.ranks if name in one.environment), None)

    def by_pid(self) -> Dict[int, Asked]:
        """Ranks by their pid here and by those they have in containers; a pid of two ranks names neither."""
        owners: Dict[int, List[Asked]] = {}
        for one in self.ranks:
            for pid in {*_inner_pids(f"{self.proc}/{one.pid}/status"), one.pid}:
                owners.setdefault(pid, []).append(one)
        return {pid: ranks[0] for pid, ranks in owners.items() if len(ranks) == 1}

    @property
    def started(self) -> Optional[float]:
        """Seconds after boot at which the oldest rank began; None when nobody knows."""
        ticks = [one.start_time for one in self.ranks if one.start_time is not None]
        return min(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None


def _inner_pids(path: str) -> Tuple[int, ...]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            line = next((line for line in file if line.startswith("NSpid:")), "")
    except OSError:
        return ()
    return tuple(int(word) for word in line.split()[1:] if word.isdigit())


def absent_witness(name: str, reason: str) -> Witness:
    return Witness(name, "absent", reason)


def failed_witness(name: str, reason: str) -> Witness:
    return Witness(name, "failed", reason)


def present_witness(name: str, reason: str, statements: Tuple[Statement, ...]) -> Witness:
    """The witness answered; of a very long answer the beginning, which is the most telling."""
    return Witness(name, "present", reason, statements[:_MOST_STATEMENTS])
