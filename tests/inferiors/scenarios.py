"""What a diagnosis of each hang of the demo engine should find: data for table-driven tests.

The names are those of `engine --list` (engine/plan.cc says how each comes about).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, Tuple

CULPRIT = 1
"""The rank that is hit, unless the job is started with another one."""


@dataclass(frozen=True)
class Scenario:
    """A hang and its truth.

    `kind` and `victim_kind` are wait kinds of the culprit's and of the victims' deciding thread; `""`: the process is
    not there to wait. `also_causes` and `also_kinds` are answers that are right as well, where the stacks alone do
    not tell more. A healthy job has the cause not-a-hang and neither culprits nor victims.
    """

    name: str
    cause: str
    kind: str
    victim_kind: str = "stream-sync"
    frame: str = ""  # a function that stands on the culprit's deciding stack
    also_causes: Tuple[str, ...] = ()
    also_kinds: Tuple[str, ...] = ()
    healthy: bool = False
    absent: bool = False  # the culprit's process was never started
    dies: bool = False  # the culprit's process is gone when the job is ready
    environment: Mapping[str, str] = field(default_factory=dict)  # what the ranks are started with

    def culprits(self, culprit: int = CULPRIT) -> Tuple[int, ...]:
        """Ranks to blame."""
        return () if self.healthy else (culprit,)

    def victims(self, ranks: int, culprit: int = CULPRIT) -> Tuple[int, ...]:
        """Ranks that only wait for the culprits."""
        return () if self.healthy else tuple(rank for rank in range(ranks) if rank != culprit)


IMPLICIT_SYNC = "implicit-sync-vs-collective"
LAZY_LOAD = "lazy-module-load-vs-collective"

SCENARIOS: Tuple[Scenario, ...] = (
    Scenario("pinned-alloc", IMPLICIT_SYNC, "pinned-host-alloc", frame="cudaMallocHost"),
    Scenario("pinned-free", IMPLICIT_SYNC, "pinned-host-alloc", frame="cudaFreeHost"),
    Scenario("device-free", IMPLICIT_SYNC, "device-free", frame="cudaFree"),
    Scenario("cublas-first-use", IMPLICIT_SYNC, "cublas", frame="cublasGemmStridedBatchedEx"),
    Scenario("lazy-module-load", LAZY_LOAD, "module-load", frame="cudaFuncSetAttribute"),
    # Without names in the driver a launch that loads looks like a launch that finds no room.
    Scenario(
        "lazy-module-launch",
        LAZY_LOAD,
        "kernel-launch",
        frame="cudaLaunchKernel",
        also_causes=("launch-serialisation",),
        also_kinds=("module-load",),
    ),
    Scenario(
        "launch-queue-full",
        "launch-serialisation",
        "kernel-launch",
        frame="cudaLaunchKernel",
        also_causes=(LAZY_LOAD,),
        also_kinds=("module-load",),
    ),
    Scenario("missing-rank-crash", "missing-rank", "", dies=True),
    Scenario("missing-rank-io", "missing-rank", "io", frame="readPromptTable"),
    Scenario("missing-rank-sleep", "missing-rank", "unknown", frame="backOff", also_kinds=("native-compute", "io")),
    Scenario("missing-rank-lock", "missing-rank", "mutex", frame="updateWeights", also_causes=("lock-order-deadlock",)),
    Scenario("collective-mismatch", "collective-mismatch", "stream-sync", frame="ftNcclAllGather"),
    Scenario("collective-mismatch-count", "collective-mismatch", "stream-sync", frame="ftNcclAllReduceSum"),
    # The collective is not on the stacks any more; only the communicators' counters (ncclComm::seqNumber) tell.
    Scenario("collective-mismatch-async", "collective-mismatch", "stream-sync", also_causes=("unknown",)),
    Scenario(
        "collective-mismatch-launch",
        "collective-mismatch",
        "nccl-group-launch",
        victim_kind="nccl-group-launch",
        frame="ncclLaunchKernel",
        also_kinds=("kernel-launch",),
        environment={"CUDA_LAUNCH_BLOCKING": "1"},
    ),
    Scenario("multi-comm-order", "multi-comm-ordering", "stream-sync", frame="ftNcclAllReduceSum"),
    Scenario("init-absent-rank", "init-rendezvous", "", victim_kind="nccl-init", absent=True),
    Scenario(
        "init-late-rank",
        "init-rendezvous",
        "io",
        victim_kind="nccl-init",
        frame="loadWeights",
        also_causes=("missing-rank",),
    ),
    Scenario("sigbus", "shm-too-small", "sigbus", victim_kind="nccl-init", frame="ncclShmOpen"),
    Scenario("teardown", "destructor-or-teardown", "nccl-destroy-abort", frame="ncclCommAbort"),
    Scenario("healthy-slow", "not-a-hang", "stream-sync", healthy=True),
    Scenario("healthy-idle", "not-a-hang", "ipc-queue", healthy=True, also_kinds=("condvar-idle", "io")),
    Scenario("healthy-busy", "not-a-hang", "native-compute", healthy=True, also_kinds=("stream-sync",)),
)

BY_NAME: Mapping[str, Scenario] = {scenario.name: scenario for scenario in SCENARIOS}
