"""What an engine has dumped: files of ranks and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class DumpedFile:
    path: str  # below the folder
    engine: str
    what: str
    bytes: int
    rank: Optional[int] = None
    step: Optional[int] = None
    name: str = ""  # of a tensor or graph: the same on all ranks
    of: str = ""  # whose it is where there is no rank: "pid 4711", "DP 1"


@dataclass(frozen=True)
class DumpGroup:
    """All files of one kind that one rank wrote in one step."""

    whose: str
    step: Optional[int]
    what: str
    engine: str
    files: int
    bytes: int


@dataclass(frozen=True)
class DumpListing:
    """`uneven`: what some ranks wrote in a step and others did not, in words. `pair`: two files to compare, of two
    ranks."""

    folder: str
    groups: Tuple[DumpGroup, ...]
    files: Tuple[DumpedFile, ...] = ()  # named only where one rank or a name was asked for
    unknown: int = 0  # files that no known layout has
    uneven: Tuple[str, ...] = ()
    pair: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
