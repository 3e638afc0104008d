"""What a watch sees of a job without stopping it, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class ThreadPulse:
    """One thread at one poll. `place` names the system call and the depth of the stack; None while it runs."""

    started: Optional[int] = None  # clock ticks after boot
    cpu_ns: Optional[int] = None
    slept: Optional[int] = None  # voluntary context switches so far
    place: Optional[str] = None


@dataclass(frozen=True)
class Pulse:
    """All threads of one rank at the second `at` (CLOCK_MONOTONIC)."""

    at: float
    threads: Mapping[int, ThreadPulse]


@dataclass(frozen=True)
class WatchEvent:
    """One line of a watch. `kind`: watching, hang, undecided, no-hang, moves, gone, trouble. `at`: seconds since the
    epoch."""

    kind: str
    text: str
    at: float
    bundle: Optional[str] = None  # folder that was written
    cause: Optional[str] = None
    confidence: Optional[str] = None
    culprits: Tuple[int, ...] = ()  # rank numbers, where they are known
    job: Optional[str] = None  # which one, where several are watched
    host: Optional[str] = None  # where several may report to one place
    standstill: Optional[float] = None  # seconds
    pause_ms: Optional[float] = None  # the longest stop of a rank in this look
    steps: Tuple[str, ...] = ()  # what to do, the first thing first
