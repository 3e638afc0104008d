"""The ranks that one gdb holds, and what a command said for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.codes import RankState
from gdbext.model.job import RankProcess


@dataclass(frozen=True)
class AttachedRank:
    """One rank as an inferior of this gdb. `number` is None when it is not attached; then `problem` says why."""

    process: RankProcess
    number: Optional[int] = None  # of the inferior, as gdb prints it
    current: bool = False
    state: RankState = RankState.UNKNOWN
    attach_ms: Optional[float] = None  # from the moment the attach began until gdb gave the prompt back
    held_ms: Optional[float] = None  # how long it has been (or was) stopped since
    problem: Optional[str] = None


@dataclass(frozen=True)
class RankTable:
    """The answer of the commands that attach, list, select and release ranks."""

    ranks: Tuple[AttachedRank, ...]
    absent: Tuple[int, ...] = ()  # rank numbers that should be there and are not
    notes: Tuple[str, ...] = ()  # whole sentences: what holds now, and the next step


@dataclass(frozen=True)
class RankOutput:
    """What a gdb command printed on one rank, or why it failed there."""

    process: RankProcess
    number: int
    text: str = ""
    error: Optional[str] = None


@dataclass(frozen=True)
class RankOutputs:
    """The answer of `llm-rank apply`."""

    command: str
    outputs: Tuple[RankOutput, ...]
