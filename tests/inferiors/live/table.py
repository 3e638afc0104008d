"""The live matrix: programs with real libraries, each with its truth, written before gdbext looked at them.

    with BY_NAME["torch_collectives/download"].start() as job:
        job.pids   # {"0": 4711, "1": 4712, "2": 4713}, by role

A role is a rank's number or a name; `culprits` are the sets of roles any of which is the right blame, none where only
the cause counts (one process, which is all there is to blame). `asked`: what a user would name, all roles where empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Tuple

from tests.inferiors.live.job import LiveJob

RANKS = ("0", "1", "2")
HEALTHY = "not-a-hang"
LOCKS, OTHER, MISSING, MISMATCH, ORDER = (
    "lock-order-deadlock",
    "other",
    "missing-rank",
    "collective-mismatch",
    "multi-comm-ordering",
)
INIT, FORK, GIL, EXIT, OPEN = "init-rendezvous", "fork-after-cuda", "gil-deadlock", "destructor-or-teardown", "unknown"


@dataclass(frozen=True)
class Live:
    """One program. `causes`: the true one, then others that are right as well."""

    family: str
    name: str
    causes: Tuple[str, ...]
    culprits: Tuple[Tuple[str, ...], ...] = ()
    roles: Tuple[str, ...] = ("main",)
    asked: Tuple[str, ...] = ()
    how: str = "alone"
    needs: str = ""

    @property
    def healthy(self) -> bool:
        return self.causes[0] == HEALTHY

    @property
    def id(self) -> str:
        return f"{self.family}/{self.name}"

    def start(self) -> LiveJob:
        return LiveJob(self.family, self.name, self.roles, self.asked or self.roles, self.how, not self.healthy)


def _ranks(family: str, how: str, needs: str, rows: Dict[str, object]) -> List[Live]:
    """Rows of jobs of three ranks: name -> (causes, culprits) or healthy."""
    return [
        Live(family, name, *(row if row else ((HEALTHY,), ())), roles=RANKS, how=how, needs=needs)  # type: ignore[misc]
        for name, row in rows.items()
    ]


_COLLECTIVES = {
    "fewer-batches": ((MISMATCH, MISSING), (("1",),)),
    "save-on-first-rank-only": ((MISMATCH, MISSING), (("0",),)),
    "group-of-some": ((INIT, MISMATCH, MISSING), (("2",),)),
    "two-groups-crossed": ((ORDER, MISMATCH), (("0", "1"), ("0",), ("1",))),
    "recv-without-send": ((MISMATCH, MISSING), (("0",), ("1",), ("0", "1"))),
    "ring-of-recv": ((MISMATCH, OTHER, LOCKS, MISSING), ()),
    "pipeline-one-short": ((MISMATCH, MISSING), (("1",), ("2",), ("1", "2"))),
    "debugger-prompt": ((MISSING,), (("1",),)),
    "download": ((MISSING, "network-transport"), (("1",),)),
    "failed-but-alive": ((MISSING,), (("1",),)),
    "monitored-barrier": ((MISSING, LOCKS), (("2",),)),
    "store-key": ((MISSING,), (("1",),)),
    "file-lock-and-rendezvous": ((LOCKS, INIT), (("0",), ("1",), ("0", "1"))),
    "tokenizer-child": ((MISSING,), (("1",),)),
    "checkpoint-thread-first": ((MISMATCH, ORDER), (("1",),)),
    "async-work": ((MISSING,), (("2",),)),
    "gather-and-broadcast": ((MISMATCH,), (("2",),)),
    "wait-for-debugger": ((MISSING,), (("1",),)),
}
_HEALTHY_TRAINING = dict.fromkeys(
    (
        *("ddp-steps", "ddp-slow-loader", "ddp-accumulates", "evaluates-on-one", "compresses-checkpoint"),
        *("loads-in-turns", "compiles-on-one", "torch-compile", "pipeline-steps", "rpc-requests"),
    )
)
_MPI = {
    "recv-without-send": ((MISMATCH, MISSING), (("0",), ("1",), ("0", "1"))),
    "bcast-and-reduce": ((MISMATCH,), (("1",),)),
    "finalize-early": ((MISSING, EXIT), (("2",),)),
    "ssend-both": ((MISMATCH, OTHER, LOCKS, MISSING), (("0", "1"), ("0",), ("1",), ("2",))),
    "split-crossed": ((ORDER, MISMATCH), (("1",),)),
    "file-does-not-come": ((MISSING,), (("1",),)),
    "irecv-never-matched": ((MISMATCH, MISSING), (("2",), ("0",), ("0", "2"))),
    "locked-out": ((MISSING, LOCKS), (("0",),)),
    "probes-for-work": ((MISMATCH, MISSING), (("2",), ("0",), ("0", "2"))),
    **dict.fromkeys(("steps", "farm", "halo", "writes-on-first", "serves")),
}
MP = "processes"

LIVE: Tuple[Live, ...] = (
    *_ranks("torch_collectives", "ranks", "torch", _COLLECTIVES),
    Live("torch_collectives", "download", (MISSING,), (("1",),), RANKS, how="torchrun", needs="torch"),
    Live("torch_collectives", "two-groups-crossed", (ORDER, MISMATCH), (("0", "1"), ("0",), ("1",)), RANKS,
         how="torchrun", needs="torch"),
    Live("torch_training", "loss-skipped", (MISMATCH, MISSING), (("1",),), RANKS, how="ranks", needs="torch"),
    Live("torch_training", "loader-stuck", (MISSING,), (("1",), ("worker",)), (*RANKS, "worker"), RANKS, "ranks",
         "torch"),
    Live("torch_training", "loader-forked-with-lock", (FORK,), (("worker",), ("main",), ("main", "worker")),
         ("main", "worker"), ("main",), needs="torch"),
    Live("torch_training", "openmp-after-fork", (FORK,), (("child",),), ("main", "child"), needs="torch"),
    Live("torch_training", "spawned-and-never-told", (MISSING, LOCKS), (("1",), ("main",), ("main", "1")),
         ("main", *RANKS), ("main", *RANKS), needs="torch"),
    Live("torch_training", "nested-rpc", (OTHER, LOCKS, MISSING), (), ("0", "1"), how="ranks", needs="torch"),
    *_ranks("torch_training", "ranks", "torch", _HEALTHY_TRAINING),
    Live("torch_training", "ddp-steps", (HEALTHY,), roles=RANKS, how="torchrun", needs="torch"),
    Live(MP, "pool-worker-killed", (OTHER, MISSING), ()),
    Live(MP, "pool-result-unreadable", (OTHER, MISSING, LOCKS), ()),
    Live(MP, "queue-reader-killed", (OTHER, MISSING, LOCKS, OPEN), (), ("main", "one", "two")),
    Live(MP, "fork-with-lock", (FORK,), (("child",),), ("main", "child")),
    Live(MP, "fork-without-thread", (FORK, OTHER, LOCKS), (("child",),), ("main", "child")),
    Live(MP, "join-before-get", (LOCKS, OTHER), (("main",), ("child",), ("main", "child")), ("main", "child")),
    Live(MP, "output-not-read", (LOCKS, OTHER), (("main",), ("child",), ("main", "child")), ("main", "child"),
         ("main",)),
    Live(MP, "pipe-recv-both", (LOCKS, OTHER), (("main", "child"), ("main",), ("child",)), ("main", "child")),
    Live(MP, "two-locks", (LOCKS, OTHER), (("a", "b"), ("a",), ("b",)), ("main", "a", "b")),
    Live(MP, "two-file-locks", (LOCKS,), (("a", "b"), ("a",), ("b",)), ("main", "a", "b")),
    Live(MP, "barrier-of-three", (MISSING, OTHER), (("worker1",),), ("main", "worker0", "worker1", "worker2")),
    Live(MP, "manager-lock", (OTHER, MISSING, LOCKS), (("holder",),), ("main", "holder", "waiter")),
    Live(MP, "executor-task-asks", (MISSING, OTHER), (("worker",),), ("main", "worker")),
    Live(MP, "end-of-file", (OTHER, LOCKS), (("main",),)),
    Live(MP, "zombie-child", (MISSING, OTHER, LOCKS), (("main",), ("child",)), ("main", "child"), ("main",)),
    Live(MP, "pool-computes", (HEALTHY,)),
    Live(MP, "pool-naps", (HEALTHY,)),
    Live(MP, "compiles", (HEALTHY,)),
    Live(MP, "queue-line", (HEALTHY,), roles=("main", "producer", "worker")),
    Live(MP, "file-lock-in-turns", (HEALTHY,), roles=("main", "a", "b", "c")),
    Live(MP, "backup-by-pipe", (HEALTHY,)),
    *(
        Live("threads", name, causes)
        for name, causes in {
            "loop-waits-for-itself": (LOCKS, OTHER),
            "loop-calls-own-server": (LOCKS, OTHER, MISSING),
            "own-server": (LOCKS, OTHER, MISSING),
            "coroutines-with-two-locks": (LOCKS, OTHER, OPEN),  # natively an event loop at rest
            "pool-in-pool": (LOCKS, OTHER),
            "task-not-done": (LOCKS, OTHER),
            "threads-join-each-other": (LOCKS, OTHER),
            "handler-takes-lock": (LOCKS,),
            "finaliser-takes-lock": (LOCKS,),
            "two-locks": (LOCKS,),
            "import-in-thread": (LOCKS,),
            "left-locked": (LOCKS, OTHER),
            "exit-waits-for-worker": (LOCKS, OTHER, EXIT),
            "missed-notify": (LOCKS, OTHER),
            "full-queue": (LOCKS, OTHER),
            "constructor-and-gil": (GIL,),
            "callback-and-gil": (GIL,),
            **dict.fromkeys(
                ("threads-compute", "producers-and-consumers", "contended-lock", "loads-modules", "backoff"), (HEALTHY,)
            ),
        }.items()
    ),
    *(
        Live("serving", name, (HEALTHY,), roles=RANKS, how="ranks", needs="torch")
        for name in ("http-leader", "asyncio-leader", "queue-leader", "thread-leader")
    ),
    *(
        Live("serving", name, (HEALTHY,))
        for name in ("asyncio-server", "asyncio-jobs", "http-pool", "executor-idle", "sigwait", "queue-daemon", "spool")
    ),
    Live("serving", "prefork", (HEALTHY,), roles=("main", "child1", "child2")),
    *_ranks("mpi", "mpirun", "mpi4py", _MPI),
    Live("ray_actors", "ask-each-other", (OTHER, LOCKS, MISSING), (), ("main", "a", "b"), ("a", "b"), needs="ray"),
    Live("ray_actors", "actor-rank-waits", (MISSING,), (("b",),), ("main", "a", "b"), ("a", "b"), needs="ray"),
    Live("ray_actors", "actors-idle", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
    Live("ray_actors", "actors-work", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
)  # fmt: skip

BY_NAME: Dict[str, Live] = {f"{row.id}{'@torchrun' if row.how == 'torchrun' else ''}": row for row in LIVE}
