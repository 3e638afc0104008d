"""What the stacks mean: per thread, per process, and for the whole job."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.model.considered_hypotheses import Considered
from gdbext.model.evidence import Evidence as Evidence
from gdbext.model.exit_status import ALL
from gdbext.model.gpu_errors import GpuFinding
from gdbext.model.job import JobSnapshot
from gdbext.model.stack import Captured
from gdbext.model.stack_tree import StackTree
from gdbext.model.waits import Edge, Hypothesis, Node


@dataclass(frozen=True)
class ThreadJudgement:
    """What a thread does. `kind` is a wait label of knowledge/labels.py. Threads with equal stacks share one."""

    kind: str
    frame: Optional[int] = None  # number of the frame that decided the kind
    engine_frame: Optional[int] = None  # first frame of the engine's own code
    caller: Optional[int] = None  # from there outwards the first frame that is no wait of the C library
    collective: Optional[str] = None  # "all_reduce", ...
    communicator: Optional[str] = None  # "0x55..", from a captured argument
    helper: Optional[str] = None  # what kind of helper thread it is; None for a thread that does the work
    idle: bool = False  # waits for work to arrive: normal
    running: bool = False  # was using the CPU outside of any known wait
    rule: Optional[str] = None  # id of the frame rule that decided
    captures: Mapping[str, Captured] = field(default_factory=dict)

    @property
    def shown(self) -> Optional[int]:
        """The frame that tells most of where it is."""
        return next((one for one in (self.engine_frame, self.caller, self.frame) if one is not None), None)


Groups = Sequence[Tuple[ThreadJudgement, Sequence[int]]]


@dataclass(frozen=True)
class Wait:
    """What a process as a whole waits for: the judgement of its decisive thread."""

    kind: str
    thread: Optional[str] = None
    frame: Optional[int] = None
    collective: Optional[str] = None
    communicator: Optional[str] = None
    op_count: Optional[Mapping[str, int]] = None


@dataclass(frozen=True)
class Remedy:
    """Something to do, and why it helps here."""

    action: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The answer. `cause` is a label of knowledge/labels.py; "unknown" is a good answer when evidence is thin."""

    cause: str
    confidence: str  # "high", "medium" or "low"
    summary: str  # two sentences for a person
    culprits: Tuple[int, ...] = ()  # process indexes
    victims: Tuple[int, ...] = ()
    absent: Tuple[int, ...] = ()  # rank numbers without a process that are to blame
    decisive_process: Optional[int] = None
    decisive_thread: Optional[str] = None
    evidence: Tuple[Evidence, ...] = ()
    remedies: Tuple[Remedy, ...] = ()
    missing: Tuple[str, ...] = ()  # what could not be read and would have helped
    other_errors: Tuple[str, ...] = ()  # error lines of the text that the answer does not explain
    decided_by: Optional[str] = None  # it cannot be told yet whether anything hangs: the command that tells
    chain: Tuple[Edge, ...] = ()  # from a rank that waits to where the waiting ends, or once around a circle
    root: Optional[Node] = None  # where it ends; on a circle the one that is told first
    alternatives: Tuple[Hypothesis, ...] = ()  # what else explains as many ranks, the best first
    unexplained: Tuple[int, ...] = ()  # process indexes of stuck ranks that the answer says nothing of
    considered: Considered = field(default_factory=Considered)

    @property
    def finding(self) -> bool:
        """True when something is wrong, whether its cause is known or not."""
        return self.cause != "not-a-hang" and self.decided_by is None


@dataclass(frozen=True)
class ProcessJudgement:
    """All threads of one process judged, and the one that decides."""

    index: int
    wait: Wait
    threads: Tuple[ThreadJudgement, ...]
    idle: bool = False  # the whole process waits for work: normal

    @cached_property
    def groups(self) -> Groups:
        return grouped(self.threads)

    def positions_where(self, wanted: Callable[[ThreadJudgement], bool]) -> List[int]:
        """Positions of the threads with such a judgement; asked once for each that is different."""
        return sorted(position for one, positions in self.groups if wanted(one) for position in positions)


def grouped(judged: Sequence[ThreadJudgement]) -> Groups:
    """Each judgement with the positions of the threads that share it."""
    positions: Dict[int, List[int]] = {}
    for position, one in enumerate(judged):
        positions.setdefault(id(one), []).append(position)
    return [(judged[some[0]], some) for some in positions.values()]


@dataclass(frozen=True)
class Diagnosis:
    """Snapshot and judgement together: what a renderer prints and what `--json` writes."""

    snapshot: JobSnapshot
    processes: Tuple[ProcessJudgement, ...]
    verdict: Verdict
    tree: Optional[StackTree] = None  # the stacks merged, where somebody merged them
    explains: bool = False  # the renderers tell how the verdict came about as well
    gpu_errors: Tuple[GpuFinding, ...] = ()  # what a sanitizer reports of kernels, the gravest first

    @property
    def hangs(self) -> Optional[bool]:
        """Whether something hangs, failed or is late; None where the evidence does not decide it.

        With parts unread only a known cause of at least medium confidence is proof: what was not read may contradict
        a weaker one, and "nothing hangs" speaks for all ranks or for none.
        """
        verdict = self.verdict
        if verdict.decided_by is not None:
            return None
        if self.snapshot.read == ALL:
            return verdict.finding
        proven = verdict.finding and verdict.cause != "unknown" and verdict.confidence != "low"
        return True if proven else None
