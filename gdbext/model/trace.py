"""Profiles of the ranks of a job: what was read, on which clock, and what it says about who comes late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Optional, Tuple

from gdbext.model.exit_status import ALL, NONE, PART
from gdbext.model.verdict import Verdict


@dataclass(frozen=True)
class Clock:
    """How the times of a file become those of the first: t + offset_us + drift * (t - since). Microseconds.

    `method`: "shared" (same host, or the reference itself), "collectives" (ends of common ones), "base time" (the
    start that the profiler wrote: not aligned), "none" (nothing to go by: left as it was).
    """

    method: str
    offset_us: float = 0.0
    drift: float = 0.0  # microseconds in a microsecond
    since: float = 0.0
    pairs: int = 0  # collectives it rests on
    residual_us: Optional[float] = None  # median distance of common ends after it
    residual_p99_us: Optional[float] = None
    part: int = 0  # index of the file that it is aligned with: ranks may meet in groups that never meet each other

    @property
    def aligned(self) -> bool:
        """With the first file, and so with all that are."""
        return self.part == 0 and self.method in ("shared", "collectives")


@dataclass(frozen=True)
class TraceFile:
    """One file, mostly of one rank. `labels`: its place in each kind of parallelism ("tp": 3)."""

    index: int
    path: str
    rank: Optional[int] = None
    labels: Mapping[str, int] = field(default_factory=dict)
    host: Optional[str] = None
    pid: Optional[int] = None
    world_size: Optional[int] = None
    events: int = 0
    state: str = "ok"  # "ok", "partial" or "lost", as of processes
    problems: Tuple[str, ...] = ()
    clock: Optional[Clock] = None

    @property
    def name(self) -> str:
        """`rank 3`, `TP0 DP1`, or the name of the file."""
        if self.labels:
            return " ".join(f"{kind.upper()}{number}" for kind, number in self.labels.items())
        return f"rank {self.rank}" if self.rank is not None else self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Shares:
    """How a rank spent its time, in fractions of the window: they add up to one."""

    compute: float
    exposed: float  # communication and nothing else
    hidden: float  # communication behind compute: within `compute`
    idle: float


@dataclass(frozen=True)
class Skew:
    """One collective on all of its ranks. Microseconds. `arrivals` are relative to the first, by index of the file."""

    kind: str
    group: str
    number: int
    size: Optional[int]
    at: float  # first arrival, since the start of the window
    arrivals: Mapping[int, float]
    skew: float
    transfer: float
    baseline: Optional[float]
    sort: str  # "transfer", "skew", "mixed" or "inconclusive"
    last: int  # who came last


@dataclass(frozen=True)
class Lateness:
    """How late one rank came, and what it did before. `share` of all delay that it caused."""

    process: int
    delay_us: float
    share: float
    times: int  # so often it was the last, by a margin that counts
    waited_us: float  # for others
    before: str = ""  # "kernel", "copy", "idle", ...
    doing: str = ""  # in words
    action: str = ""


@dataclass(frozen=True)
class TraceDiagnosis:
    """The verdict for slowness, in the form of the one for hangs."""

    files: Tuple[TraceFile, ...]
    verdict: Verdict
    window_us: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)  # collectives by sort
    delay_us: float = 0.0  # that late arrivals cost, all collectives
    excess_us: float = 0.0  # that transfers took beyond their baseline
    lateness: Tuple[Lateness, ...] = ()
    shares: Mapping[int, Shares] = field(default_factory=dict)
    skews: Tuple[Skew, ...] = ()  # the worst first; of more, those are kept that cost most
    timeline: Tuple[Skew, ...] = ()  # in order of time, thinned evenly
    problems: Tuple[str, ...] = ()

    @property
    def read(self) -> str:
        return read_of(self.files)

    @property
    def late(self) -> Optional[bool]:
        """Whether something is slow; None where it cannot be told."""
        return None if self.verdict.cause == "unknown" else self.verdict.cause != "not-late"


def read_of(files: Tuple[TraceFile, ...]) -> str:
    """How much of the files could be read."""
    states = {one.state for one in files}
    if not states - {"lost"}:
        return NONE
    return ALL if states == {"ok"} else PART


@dataclass(frozen=True)
class MergeReport:
    """What was written. `events_in` are those of the files, `events_out` those in the merged file that stem from them;
    `added` are names and order of processes and lanes."""

    files: Tuple[TraceFile, ...]
    output: str
    events_in: int
    events_out: int
    left_out: int = 0  # by --window, --steps, --ranks, --threads, --kernels
    invalid: int = 0  # without a time that is a number
    added: int = 0
    moved: int = 0  # overlapping slices in lanes of their own
    lanes: int = 0
    size: int = 0
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class SummaryRow:
    """One operator or kernel. Microseconds; `ranks`: its total by index of the file."""

    name: str
    sort: str  # stage, category or stream it stands under
    count: int
    total: float
    least: float
    most: float
    share: float
    ranks: Mapping[int, float] = field(default_factory=dict)
    counts: Mapping[int, int] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(frozen=True)
class TraceSummary:
    """Tables over ranks."""

    files: Tuple[TraceFile, ...]
    rows: Tuple[SummaryRow, ...]
    by: str = "category"
    total: float = 0.0
    left_out: int = 0  # rows beyond the limit
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedRow:
    """One kernel in two runs: counts and means before and after. `change`: "new", "gone", "slower", "faster"."""

    name: str
    change: str
    count: Tuple[int, int]
    mean: Tuple[float, float]
    total: Tuple[float, float]  # per rank


@dataclass(frozen=True)
class TraceDifference:
    """Two runs."""

    before: TraceSummary
    after: TraceSummary
    rows: Tuple[ChangedRow, ...]
