"""An engine's own profiler: where its server listens, what it was told, and the traces that it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Optional, Tuple, Union

from gdbext.model.trace import MergeReport, TraceDiagnosis


@dataclass(frozen=True)
class ProfileServer:
    """The server that a job's profiler is started by. `recognised`: what says that it is this engine's."""

    engine: str
    host: str
    port: int
    pid: Optional[int] = None  # None where it was named by --url
    tls: bool = False
    recognised: str = ""
    folder: Optional[str] = None  # where it writes traces, as it sees it; None: not known
    root: str = ""  # that file system, as we see it: "" for ours, else /proc/PID/root

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


@dataclass(frozen=True)
class ProfileStatus:
    """What is known of one job's profiler without starting it. `ready`: the routes are there; None: not known."""

    job: str
    engine: Optional[str]
    ranks: int
    server: Optional[ProfileServer] = None
    ready: Optional[bool] = None
    problem: str = ""
    next_step: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ProfileStatuses:
    jobs: Tuple[ProfileStatus, ...]


@dataclass(frozen=True)
class WrittenTrace:
    """One trace of one process. `state`: "whole", "growing", or what is wrong with it."""

    path: str
    key: str  # whose it is: "rank 3", "TP 1, PP 0", "pid 4711"
    bytes: int
    state: str = "whole"
    stage: str = ""
    is_rank: bool = True


Body = Mapping[str, Union[str, int, bool, Tuple[str, ...]]]


@dataclass(frozen=True)
class ProfileAnswer:
    """What `gdbext profile start|stop|run` did."""

    action: str
    server: ProfileServer
    ranks: int
    sent: Body
    seconds: Optional[float] = None
    requests: Optional[int] = None  # that were sent while it ran
    failed_requests: int = 0
    folder: Optional[str] = None
    files: Tuple[WrittenTrace, ...] = ()
    complete: Optional[bool] = None  # every rank's trace is there and whole; None: nobody waited for them
    notes: Tuple[str, ...] = ()
    next_step: str = ""


@dataclass(frozen=True)
class ProfilePart:
    """What the traces of all ranks say, of one stage where the engine wrote one for each. `problem`: why there is no
    more."""

    stage: str = ""
    merged: Optional[MergeReport] = None
    diagnosis: Optional[TraceDiagnosis] = None
    problem: str = ""


@dataclass(frozen=True)
class ProfileReport:
    """A whole profile: what was done, and what its traces say."""

    answer: ProfileAnswer
    parts: Tuple[ProfilePart, ...] = ()
