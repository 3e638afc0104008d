"""Processes, ranks and jobs: who belongs to whom, and what one look at all of them saw."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Mapping, Optional, Sequence, Tuple

from gdbext.model.activity import Activity
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import Given, ReadState
from gdbext.model.communicator import Communicator
from gdbext.model.exit_status import ALL, NONE, PART
from gdbext.model.gpu_core import ResidentKernel
from gdbext.model.gpu_errors import GpuError
from gdbext.model.host import HostLook
from gdbext.model.locks import LockWait, Peer
from gdbext.model.stack import LoopInText, ThreadStack
from gdbext.model.tasks import PythonTask
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import ranks
from gdbext.model.witness import Witness

SCHEMA = 1
"""Version of every JSON document of gdbext; raised when a key changes its meaning or goes away."""

RANK = "rank"
"""The role of a process that takes part in collectives."""

SAVED = 2
"""Version of saved snapshots. Before it, frames stood in each thread; since then, in the table of its stacks."""

AFTER = {
    "runs": "a thread has used the processor since it was let go",
    "waits": "every thread is blocked in the same call as before",
    "moved": "every thread is blocked, some in other calls than before",
    "held": "a gdb that held it before the look (`--let-run`) holds it again",
    "stopped": "threads are stopped",
    "traced": "another process traces it",
    "gone": "it has ended",
}
"""Signs of life after a look (`RankSnapshot.after`)."""


@dataclass(frozen=True)
class RankProcess:
    """One process of a job as /proc shows it, before anything is attached.

    `role` is "rank" for a process that takes part in collectives, else what it is instead ("front end",
    "engine core", "launcher", ...). `rank_source` says where the rank number comes from ("title",
    "environment RANK", "argument --rank", "memory", "unknown: ...").
    """

    pid: int
    role: str
    engine: Optional[str] = None
    title: str = ""
    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world_size: Optional[int] = None
    rank_source: str = "unknown"
    device: Optional[str] = None  # e.g. "cuda:3", from LOCAL_RANK / CUDA_VISIBLE_DEVICES / open device files
    host: Optional[str] = None
    start_time: Optional[int] = None  # clock ticks after boot: tells a reused pid from the one we found
    threads: Optional[int] = None
    state: Optional[str] = None  # letter of /proc/PID/stat
    labels: Mapping[str, int] = field(default_factory=dict)  # parallel groups: {"tp": 1, "pp": 0, "dp": 0}
    serves: bool = False  # part of the engine beside the ranks: it hands them work, or takes requests

    @property
    def label(self) -> str:
        """How people call it: `rank 3`, `engine core`, else `pid 4711`."""
        return _named(self.rank, self.role) or f"pid {self.pid}"


@dataclass(frozen=True)
class Job:
    """The rank processes that work together, in rank order, and the ranks that should be there and are not."""

    key: str  # what holds it together, for people: "pgid 4711", "torchrun run id none, port 29500", ...
    engine: Optional[str]
    ranks: Tuple[RankProcess, ...]
    others: Tuple[RankProcess, ...] = ()  # front ends, launchers, ...: part of the job, not of its collectives
    world_size: Optional[int] = None
    absent: Tuple[int, ...] = ()  # rank numbers expected on this host of which no process was found
    notes: Tuple[str, ...] = ()
    left_out: Tuple[RankProcess, ...] = ()  # of the job, but not asked for

    @property
    def serving(self) -> Tuple[RankProcess, ...]:
        """Engine cores, front ends, ...: a server can hang in them while its ranks wait for work.

        Of several in one role each has a number in it, by pid: `engine core 0`, `engine core 1`.
        """
        serving = sorted((one for one in self.others if one.serves), key=lambda one: one.pid)
        roles = [one.role for one in serving]
        numbers = [roles[:at].count(role) for at, role in enumerate(roles)]
        return tuple(
            replace(one, role=f"{one.role} {number}") if roles.count(one.role) > 1 else one
            for one, number in zip(serving, numbers)
        )


@dataclass(frozen=True)
class Refusal:
    """Why a process may not be read, and what to do about it."""

    text: str
    remedy: str = ""


ONLY = "the process"
"""What the one process of a text is called, where it has neither rank nor pid."""
_FILE_NAME = regex(r"[A-Za-z0-9._+-]{1,80}\Z")  # a title that needs no cleaning: see parsers.assemble.job


@dataclass(frozen=True)
class RankSnapshot:
    """What one look at one process saw."""

    index: int
    threads: Tuple[ThreadStack, ...]
    pid: Optional[int] = None
    rank: Optional[int] = None
    local_rank: Optional[int] = None
    world_size: Optional[int] = None
    host: Optional[str] = None
    engine: Optional[str] = None
    title: Optional[str] = None
    device: Optional[str] = None
    state: ReadState = ReadState.OK
    alive: Optional[bool] = None  # the process was there when the look ended; None when nobody checked
    problems: Tuple[str, ...] = ()
    pause_ms: Optional[float] = None  # how long a thread of it stood still by this look, the longest of all stops
    environment: Mapping[str, str] = field(default_factory=dict)  # known tuning and rank variables only
    libraries: Tuple[str, ...] = ()  # mapped object files that say something: engine, torch, NCCL, CUDA
    python: Optional[str] = None  # "3.11" when it is a Python process whose frames were read
    said: Tuple[str, ...] = ()  # log lines of its own that are evidence
    source: str = Given.LIVE  # a word of `Given`, of a text with the kind of its stacks: "text:gdb", ...
    activity: Optional[Activity] = None  # what the kernel counted between the two copies of the look
    communicators: Tuple[Communicator, ...] = ()  # of NCCL, as they lie in its memory
    communicator_notes: Tuple[str, ...] = ()  # what kept them from being read, and how far a search for them came
    locks: Tuple[LockWait, ...] = ()  # threads that wait for other threads
    peers: Tuple[Peer, ...] = ()  # what its threads wait for from other processes
    started: Optional[int] = None  # clock ticks after boot
    clients: Tuple[WaitingClient, ...] = ()  # who has asked it for something and has got no answer
    tasks: Tuple[PythonTask, ...] = ()  # of asyncio, that are suspended
    after: Optional[str] = None  # what its threads did when all was read, by a word of `AFTER`; None: nobody looked
    handlers: Optional[Tuple[int, ...]] = None  # signals that it has handlers for; None: not known
    held_back: Tuple[int, ...] = ()  # signals that have come, and that all its threads block
    loops_in_text: Tuple[LoopInText, ...] = ()  # that its threads are in, by the text of its files of Python
    refusal: Optional[Refusal] = None  # the first of its problems, where a right or a setting stands in the way
    search_cut: bool = False  # the search for communicators came to its limit: there may be more
    labels: Mapping[str, int] = field(default_factory=dict)  # parallel groups: {"tp": 1, "pp": 0, "dp": 0}
    gpu_errors: Tuple[GpuError, ...] = ()  # of its kernels, as a sanitizer or a GPU core reports them
    kernels: Optional[Tuple[ResidentKernel, ...]] = None  # on its GPU, as its GPU core shows them; None: it has none
    only: bool = False  # the text that it is from has no other process
    shares_pid: bool = False  # another process of the text has the same pid, in another container
    role: str = RANK  # else what it is beside the ranks: "engine core", "front end 2", ...

    @property
    def given(self) -> Given:
        """What of it was read."""
        word = self.source.partition(":")[0]
        return next((one for one in Given if one == word), Given.LOG)

    @property
    def outlined(self) -> bool:
        """No thread of it could be read: names, states and counters are all that is known."""
        return bool(self.threads) and all(thread.outlined for thread in self.threads)

    @property
    def unstopped(self) -> bool:
        """It was looked at while it ran: of threads that did not sleep nothing is known."""
        return self.given is Given.LIVE and self.pause_ms == 0

    @property
    def label(self) -> str:
        """How people call it: `rank 3`, `engine core`, else `pid 4711`, `the process`, `file a.txt`, `process 1`."""
        if self.is_named:
            return _named(self.rank, self.role)
        if self.pid is not None:
            return f"process {self.index + 1}" if self.shares_pid else f"pid {self.pid}"
        if self.given not in (Given.TEXT, Given.LOG):
            return f"process {self.index + 1}"
        named = _FILE_NAME.match(self.title or "")
        if self.only and not named:
            return ONLY
        return f"file {named.group()}" if named else f"process {self.index + 1}"

    @property
    def is_named(self) -> bool:
        """Its label is no pid."""
        return bool(_named(self.rank, self.role))

    @property
    def log_of(self) -> str:
        """What follows `the log`: `of rank 3`, `of EngineCore`; the name of a file, of a process that nothing else
        names."""
        label = self.label
        named = _FILE_NAME.match(self.title or "")
        if named is None or label != f"file {named.group()}":
            return f"of {label}"
        return named.group() if "." in named.group() else f"of {named.group()}"

    @property
    def identity(self) -> Tuple[object, ...]:
        """What tells the same process in another look at the job: a pid, of a text its rank, else its place. Containers
        of several hosts may have one name, and number their processes alike."""
        if self.pid is not None:
            return self.host, self.pid, self.rank
        return ("rank", self.rank) if self.rank is not None else ("index", self.index)


@dataclass(frozen=True)
class JobSnapshot:
    """One look at all processes of a job. `processes[i].index == i`."""

    processes: Tuple[RankSnapshot, ...]
    taken_at: Optional[float] = None  # seconds since the epoch, UTC
    engine: Optional[str] = None
    world_size: Optional[int] = None
    absent: Tuple[int, ...] = ()  # ranks that should be there and are not
    problems: Tuple[str, ...] = ()
    said: Tuple[str, ...] = ()  # log lines that are evidence, of nobody in particular
    first_said: Tuple[str, ...] = ()  # of one text its first lines that are evidence, in order, whoever said them
    error_lines: Tuple[str, ...] = ()  # of texts: error lines that no row knows, the most severe first
    tool: str = ""
    command: str = ""
    apart: Optional[float] = None  # seconds between this look and the second one that `ThreadStack.still` comes from
    earlier: Tuple[JobSnapshot, ...] = ()  # looks taken before this one, oldest first
    witnesses: Tuple[Witness, ...] = ()  # what others than the stacks said, asked before the stop
    hosts: Tuple[HostLook, ...] = ()  # those that were asked together; () of a look at this host

    @property
    def read(self) -> str:
        """How much of it could be read, by the words of `model.exit_status`."""
        states = {process.state for process in self.processes}
        if states <= {ReadState.LOST}:
            return ALL if self.said and not states else NONE  # log lines alone are all that was given
        return ALL if states == {ReadState.OK} and all(host.read for host in self.hosts) else PART


def _named(rank: Optional[int], role: str) -> str:
    """What a process is called by its rank, or by its role beside the ranks; "" where it has neither."""
    if rank is not None:
        return f"rank {rank}"
    return "" if role == RANK else role


def ranks_or_pids(processes: Sequence[RankProcess]) -> str:
    """`rank 3`, `ranks 0-2,5`; pids of those whose numbers nobody knows."""
    numbers = [one.rank for one in processes if one.rank is not None]
    known = [ranks(numbers)] if numbers else []
    return ", ".join([*known, *(f"pid {one.pid}" for one in processes if one.rank is None)])
