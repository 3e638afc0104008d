"""GPU cores that are to come: what a program is started with, which ranks are ready, what was asked for and came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple


@dataclass(frozen=True)
class ArmedEnvironment:
    """Variables for the driver at hand."""

    driver: Optional[int]  # its branch; None: nobody knows
    folder: str
    free: Optional[int]  # bytes there
    variables: Mapping[str, str]
    notes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ArmedRank:
    """Whether one process will write GPU cores. None: its environment could not be read."""

    label: str
    pid: int
    rank: Optional[int] = None
    on_exception: Optional[bool] = None
    on_demand: Optional[bool] = None
    file: str = ""  # as the variable says it
    pipe: str = ""  # as it is named in the process
    pipe_open: Optional[bool] = None  # the driver waits at it; False: it is not there (yet)
    free: Optional[int] = None  # bytes where the file goes
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ArmedJob:
    """All ranks of a job."""

    key: str
    ranks: Tuple[ArmedRank, ...]
    timeouts: Tuple[str, ...] = ()  # what runs on while the ranks stand still for their dumps

    @property
    def ready(self) -> bool:
        """Every rank writes a core when a kernel fails, and when it is asked for one."""
        return all(one.on_exception and one.on_demand and one.pipe_open for one in self.ranks)


@dataclass(frozen=True)
class TriggeredRank:
    """What came of asking one process. `state`: "written", "not finished", "nothing came", "not asked"."""

    label: str
    pid: int
    state: str
    file: str = ""
    size: Optional[int] = None
    seconds: Optional[float] = None
    problem: str = ""
    alive: Optional[bool] = None


@dataclass(frozen=True)
class TriggeredJob:
    ranks: Tuple[TriggeredRank, ...]

    @property
    def files(self) -> Tuple[str, ...]:
        return tuple(one.file for one in self.ranks if one.file and one.state == "written")
