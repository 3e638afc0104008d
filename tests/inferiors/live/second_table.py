"""The second set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-2` alone.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.table import (
    EXIT,
    FORK,
    HEALTHY,
    INIT,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    ORDER,
    OTHER,
    RANKS,
    Live,
    _ranks,
)

EITHER = (LOCKS, OTHER)
"""A process, or processes, that wait for themselves: whether one calls it a lock is taste."""

_COLLECTIVES = {
    "tensor-parallel-first": ((ORDER, MISMATCH), (("1",),)),
    "swallowed-exception": ((MISMATCH, MISSING), (("2",),)),
    "other-source": ((MISMATCH, MISSING), (("1",),)),
    "wrong-operation": ((MISMATCH, MISSING, *EITHER), (("1",), ("1", "2"))),
    "store-counter": ((MISSING, OTHER, MISMATCH), (("0",),)),
    "uneven-inputs": ((MISMATCH, MISSING), (("0",),)),
    "branch-on-one-rank": ((MISMATCH, MISSING), (("1",),)),
    "shards-and-replicas": ((ORDER, MISMATCH), (("2",),)),
    "rate-limited": ((MISSING,), (("1",),)),
    "report-from-handler": ((MISSING,), (("2",),)),
    "wrong-port": ((INIT, MISSING, "network-transport"), (("2",),)),
    "one-rank-too-few": ((INIT, MISSING), ()),  # the one to blame does not run
    "done-callback": ((MISSING, LOCKS), (("2",),)),
    "gather-elsewhere": ((MISMATCH, MISSING), (("1",),)),
    "rpc-waits": ((MISSING, OTHER), (("2",),)),
    "checkpoint-to-pipe": ((MISSING,), (("0",),)),
    "stopped": ((MISSING,), (("2",),)),
    "evaluation-thread": ((MISSING,), (("1",),)),
}
_MPI = {
    "other-root": ((MISMATCH, MISSING), (("1",),)),
    "split-of-some": ((MISMATCH, INIT, MISSING), (("2",),)),
    "other-tag": ((MISMATCH, MISSING, *EITHER), (("0", "1"), ("0",), ("1",))),
    "fence-left-out": ((MISMATCH, MISSING), (("2",),)),
    "long-sleep": ((MISSING,), (("1",),)),
    "a-step-ahead": ((MISMATCH,), (("0",),)),
    **dict.fromkeys(("client-leader", "uneven-steps", "barrier-with-test")),
}
_ENGINES = (
    *("unix-socket-leader", "condition-leader", "dummy-steps", "disaggregated", "shared-memory-channel"),
    *("uneven-inputs-joined", "saves-beside", "polls-the-store", "slow-storage", "prefetched", "rpc-servers"),
    "gathers-objects",
)
P = "second_processes"

_THREADS: Dict[str, Tuple[str, ...]] = {
    "thread-needs-loop": EITHER,
    "loop-wants-lock": EITHER,
    "slots-of-requests": (*EITHER, OPEN),  # natively an event loop at rest
    "callback-takes-rlock": (LOCKS,),
    "barrier-of-threads": (*EITHER, MISSING),
    "connection-pool": EITHER,
    "logging-to-full-queue": EITHER,
    "join-at-exit": (*EITHER, EXIT),
    "done-callback": EITHER,
    "worker-died": (*EITHER, MISSING),
    "sqlite-transaction": EITHER,
    "own-file-lock": EITHER,
    "own-pipe": EITHER,
    "condition-of-two": EITHER,
    "three-locks": (LOCKS,),
    "child-waits": (OTHER, MISSING, LOCKS),
    "module-level-pool": EITHER,
}
_NATIVE: Dict[str, Tuple[str, ...]] = {
    "reader-upgrades": EITHER,
    "lost-wakeup": EITHER,
    "singleton": EITHER,
    "call-once": EITHER,
    "loads-plugin": EITHER,
    "task-of-full-pool": EITHER,
    "static-destructor": (EXIT, *EITHER),
    "barrier-too-large": (*EITHER, MISSING),
    "owner-was-killed": (*EITHER, MISSING),
    "full-channels": EITHER,
    "atomic-wait": EITHER,
    "callback-under-lock": (LOCKS,),
    "crossed-mutexes": (LOCKS,),
    **dict.fromkeys(
        ("epoll-server", "quiet-connections", "pool-computes", "stages", "busy-mutex", "polling-worker"), (HEALTHY,)
    ),
}
_BOTH = (("main", "child"), ("main",), ("child",))

SECOND: Tuple[Live, ...] = (
    *_ranks("second_collectives", "ranks", "torch", _COLLECTIVES),
    Live("second_collectives", "stale-lock-file", (MISSING, LOCKS), (("1",), ("holder",)), (*RANKS, "holder"), RANKS,
         "ranks", "torch"),
    Live("second_collectives", "checkpoint-to-pipe", (MISSING,), (("0",),), RANKS, how="torchrun", needs="torch"),
    Live(P, "loader-under-lock", EITHER, (("main",), ("worker",), ("main", "worker")), ("main", "worker"), ("main",),
         needs="torch"),
    Live(P, "semaphore-slot", (*EITHER, MISSING)),
    Live(P, "flags", EITHER, _BOTH, ("main", "child")),
    Live(P, "initializer-waits", (*EITHER, MISSING)),
    Live(P, "stopped-manager", (OTHER, MISSING), (("manager",),), ("main", "manager"), ("main",)),
    Live(P, "both-pipes-full", EITHER, _BOTH, ("main", "child")),
    Live(P, "grandchild", (OTHER, MISSING, LOCKS), (("grandchild",), ("main",)), ("main", "grandchild"), ("main",)),
    Live(P, "event-after-join", EITHER, _BOTH, ("main", "child")),
    Live(P, "own-copy-of-pipe", EITHER, (("child",), ("main", "child")), ("main", "child")),
    Live(P, "greeting", EITHER, (("a", "b"), ("a",), ("b",)), ("main", "a", "b")),
    Live(P, "lock-and-queue", EITHER, (("reader", "writer"), ("reader",), ("writer",)), ("main", "reader", "writer")),
    Live(P, "shared-condition", (*EITHER, MISSING)),
    Live(P, "asyncio-child-full", EITHER, _BOTH, ("main", "child"), ("main",)),
    Live(P, "reader-thread-died", (OTHER, MISSING, LOCKS), (("child",), ("main", "child")), ("main", "child")),
    Live(P, "ring-of-file-locks", (LOCKS,), (("a", "b", "c"), ("a",), ("b",), ("c",)), ("main", "a", "b", "c")),
    Live(P, "three-of-two", (*EITHER, MISSING), (("main",), ("main", "worker0", "worker1")),
         ("main", "worker0", "worker1")),
    *(Live("second_threads", name, causes) for name, causes in _THREADS.items()),
    *(Live("second_native", name, causes) for name, causes in _NATIVE.items()),
    Live("second_native", "fork-with-mutex", (FORK,), (("child",),), ("main", "child")),
    *_ranks("second_mpi", "mpirun", "mpi4py", _MPI),
    *_ranks("second_engines", "ranks", "torch", dict.fromkeys(_ENGINES)),
    *_ranks("second_engines", "ranks", "zmq", dict.fromkeys(("zmq-leader", "zmq-polling-leader"))),
    Live("second_engines", "uneven-inputs-joined", (HEALTHY,), roles=RANKS, how="torchrun", needs="torch"),
    Live("second_services", "worker-processes", (HEALTHY,), roles=("main", "one", "two")),
    Live("second_services", "supervisor", (HEALTHY,), roles=("main", "child0", "child1")),
    Live("second_services", "manager-and-workers", (HEALTHY,), roles=("main", "one", "two")),
    Live("second_services", "watches-trainer", (HEALTHY,), roles=("main", "trainer"), needs="numpy"),
    Live("second_services", "kernel", (HEALTHY,), needs="zmq"),
    Live("second_services", "zmq-pipeline", (HEALTHY,), roles=("main", "engine"), needs="zmq"),
    Live("second_services", "matrix-product", (HEALTHY,), needs="torch"),
    *(
        Live("second_services", name, (HEALTHY,))
        for name in ("follows-log", "process-pool", "continuous-batching", "database-queue", "listener",
                     "loads-weights", "loop-with-program", "job-threads")
    ),
)  # fmt: skip

SECOND_BY_NAME: Dict[str, Live] = {f"{row.id}{'@torchrun' if row.how == 'torchrun' else ''}": row for row in SECOND}
