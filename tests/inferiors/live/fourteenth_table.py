"""The fourteenth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-14` alone. Each truth was written before gdbext looked,
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
    INIT,
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
    "grammar-on-one-rank": ((MISMATCH, MISSING), (("1",),)),
    "one-rank-ends-its-answer": ((MISMATCH, MISSING), (("1",),)),
    # the others meet in a barrier to which the first rank never comes
    "others-wait-while-first-saves": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
}
_MPI = {
    "fewer-batches-by-background-thread": ((MISMATCH, MISSING), (("1",),)),
    # rank 1 is in what is done at exit, and waits there for the others
    "exits-as-if-well": ((MISSING, EXIT, MISMATCH), (("1",),)),
}
R, E, T = "fourteenth_ranks", "fourteenth_engines", "fourteenth_threads"
_PAIR = ("0", "1")
_BOTH = (("0", "1"), ("0",), ("1",))
_CLIENT = ("main", "client")
_CHILD = ("main", "child")
_ENGINE = ("main", "engine")
_WORKER = ("main", "worker")
_WORKERS = ("main", "worker0", "worker1")

FOURTEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # rank 1 has come to its end and waits for the others there
    Live(R, "second-host-has-no-sum", (MISSING, MISMATCH, EXIT), (("1",),), _PAIR, how="ranks", needs="torch"),
    # who is waited for was never started
    Live(R, "world-of-more-than-started", (INIT, MISSING), (), _PAIR, how="ranks", needs="torch"),
    *_ranks("fourteenth_mpi", "mpirun", "mpi4py", _MPI),
    Live("fourteenth_mpi", "kernels-of-two-communicators", (ORDER, MISMATCH, *EITHER), _BOTH, _PAIR, how="mpirun",
         needs="mpi4py"),
    Live("fourteenth_native", "flush-never-done", (EXIT, OTHER, MISSING), (("0",),), _PAIR),
    Live(E, "restarted-actor-asks-back", (LOCKS, OTHER, MISSING), (), ("main", "a", "b"), ("a", "b"), needs="ray"),
    # the workers have been killed, one of them with half a batch in the pipe
    Live(E, "killed-with-half-a-batch", (OTHER, LOCKS, MISSING), ()),
    Live(E, "allocator-locked-at-fork", (FORK,), (("worker",), ("main",), _WORKER), _WORKER, ("main",)),
    Live(E, "forked-during-import", (FORK,), (("child",), _CHILD), _CHILD),
    Live(E, "tensors-in-forked-workers", (FORK,),
         (("worker0", "worker1"), ("worker0",), ("worker1",), ("main",), _WORKERS), _WORKERS, ("main",), needs="torch"),
    # the process that both are waited for has been killed
    Live(E, "proxy-of-dead-engine", (OTHER, MISSING, LOCKS, EXIT), ()),
    Live(E, "log-queue-at-exit", (EXIT, LOCKS, OTHER), ()),
    # natively an event loop at rest
    Live(E, "engine-core-killed", (OTHER, MISSING, LOCKS, OPEN), (("main",), _CLIENT), _CLIENT),
    Live(T, "lock-of-thread-states", (LOCKS, OTHER, EXIT)),
    Live(T, "loop-waits-for-own-coroutine", EITHER),
    Live(T, "worker-joined-by-destructor", (GIL, LOCKS)),
    Live(E, "evicts-for-minutes", (HEALTHY,), roles=_ENGINE),
    Live(E, "tokenizes-by-slices", (HEALTHY,)),
    Live(E, "download-pauses", (HEALTHY,)),
    Live(E, "engine-core-spins", (HEALTHY,), roles=_ENGINE),
    Live(E, "tensors-from-network-disk", (HEALTHY,), roles=("main", "runner")),
    Live(E, "generates-split", (HEALTHY,)),
    Live(E, "packs-layers", (HEALTHY,), needs="torch"),
    Live(E, "waits-for-next-checkpoint", (HEALTHY,)),
    Live(E, "compiles-kernels-at-start", (HEALTHY,)),
    Live(E, "loads-compiled-graphs", (HEALTHY,), roles=_ENGINE),
)  # fmt: skip

FOURTEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in FOURTEENTH}
