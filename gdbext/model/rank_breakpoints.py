"""Breakpoints over the ranks of a job, and where the ranks are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class BreakPoint:
    """One llm-break."""

    number: int  # gdb's own
    location: str
    pending: bool  # no process has such a place yet
    pids: Optional[Tuple[int, ...]]  # None: whichever comes first
    condition: Optional[str]
    count: int  # a rank stops from its count-th passing on
    action: str  # "stop", "log" or "report"
    limit: float  # seconds
    passed: Mapping[str, int]  # by rank ("rank 1", "pid 4711"): how often, the condition being true
    others: str = "stop"  # or "hold", "run"
    expressions: Tuple[str, ...] = ()  # of "log"
    ranks: Optional[Tuple[int, ...]] = None  # the numbers of `pids`, where all have one
    errors: Mapping[str, str] = field(default_factory=dict)  # by rank: why the condition could not be evaluated


@dataclass(frozen=True)
class RankPlace:
    """Where one rank stands."""

    pid: int
    rank: Optional[int]
    current: bool
    state: str
    function: Optional[str]  # of the newest frame of its selected thread; None while it runs
    hit: Optional[int]  # the breakpoint that stopped this rank and with it the others
    held: bool = False  # it waits at the same place


@dataclass(frozen=True)
class BreakTable:
    """The answer of llm-break."""

    points: Tuple[BreakPoint, ...]
    places: Tuple[RankPlace, ...] = ()
    notes: Tuple[str, ...] = ()
