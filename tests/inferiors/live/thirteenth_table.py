"""The thirteenth set of live programs: each imitates one public report, drawn as they were found, even numbers only.

As `table.py`; played by `scripts/bench accuracy --family live-13` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
    FORK,
    GIL,
    HEALTHY,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    ORDER,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    "overflow-on-one-rank": ((MISMATCH, MISSING), (("1",),)),
    "overflow-in-one-stage": ((MISMATCH, MISSING), (("1",),)),
    # the first rank alone evaluates: it is where the others are not, and by the report they should have come
    "progress-bar-of-first-rank": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    "nothing-to-gather": ((MISMATCH, MISSING), (("1",),)),
    **dict.fromkeys(
        (
            *("compiles-index-builder", "builds-index-on-first-rank", "checks-order-of-first-iteration"),
            *("checks-order-of-many-units", "idle-scheduler-spins"),
        )
    ),
}
_MPI = {
    # one that waits for itself, and whom the others wait for
    "sends-to-itself": ((OTHER, LOCKS, MISMATCH, MISSING), (("0",),)),
    "synchronous-parts-are-probed": ((OTHER, LOCKS, MISMATCH, MISSING), (("0", "1"), ("0",), ("1",))),
    # rank 1 has the interpreter's lock in MPI; rank 0 makes its communicators in the other order
    "communicator-and-interpreter": ((GIL, ORDER, MISMATCH, LOCKS), (("1",), ("0", "1"))),
}
R, E, T = "thirteenth_ranks", "thirteenth_engines", "thirteenth_threads"
_ENGINE = ("main", "engine")
_WORKER = ("main", "worker")
_CHILD = ("main", "child")
_PIPES = ("main", "worker0", "worker1")

THIRTEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # rank 0 trains; rank 1 serves, has failed to take the weights and waits for requests again
    Live(R, "server-failed-to-update", (MISSING, OTHER), (("1",),), ("0", "1"), how="ranks", needs="torch"),
    *_ranks("thirteenth_mpi", "mpirun", "mpi4py", _MPI),
    # worker 1 has an end of the pipe whose end worker 0 waits for
    Live(E, "death-pipe-inherited", (OTHER, LOCKS, EXIT, FORK, MISSING),
         (("worker1",), ("worker0",), ("worker0", "worker1")), _PIPES),
    # these two look again and again at a request that they never admit
    Live(E, "prompt-never-fits", (OTHER, LOCKS, OPEN, MISSING), (("engine",), _ENGINE), _ENGINE),
    Live(E, "batch-stays-full", (OTHER, LOCKS, OPEN, MISSING), (("engine",), _ENGINE), _ENGINE),
    Live(E, "stream-at-shutdown", (EXIT, OTHER, LOCKS, OPEN), (("main",), ("client",), ("main", "client")),
         ("main", "client")),
    # natively an event loop at rest
    Live(E, "event-of-other-request", (OTHER, LOCKS, OPEN, MISSING), (("server",), ("main", "server")),
         ("main", "server")),
    Live(E, "join-before-drain", (LOCKS, OTHER), (("main",), ("child",), _CHILD), _CHILD),
    Live(E, "exit-functions-locked-at-fork", (FORK,), (("worker",), ("main",), _WORKER), _WORKER, ("main",),
         needs="torch"),
    Live(E, "fork-handler-takes-lock", (FORK,), (("child",), _CHILD), _CHILD),
    Live(E, "channel-from-before-fork", (FORK, OTHER, LOCKS), (("child",), _CHILD), _CHILD),
    Live(E, "slow-download", (HEALTHY,)),
    Live(E, "shards-from-slow-disk", (HEALTHY,), roles=_ENGINE),
    Live(E, "shards-by-threads", (HEALTHY,)),
    Live(E, "batches-in-bursts", (HEALTHY,), roles=("main", "worker0", "worker1"), asked=("main",), needs="torch"),
    Live(E, "idle-reader-spins", (HEALTHY,), roles=_PIPES),
    Live(T, "heartbeat-and-interpreter", (GIL, LOCKS)),
    Live(T, "dead-actor-and-interpreter", (GIL, LOCKS)),
    Live(T, "executor-not-collected", (EXIT, *EITHER)),
)  # fmt: skip

THIRTEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRTEENTH}
