"""The ninth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-9` alone. Who wrote them did not know the rules.
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
    OTHER,
    RANKS,
    Live,
    _ranks,
)

_JOBS = {
    "version-already-there": ((MISMATCH, MISSING), (("1",),)),
    # ranks 1 and 2 wait for each other; by the code rank 1's number is another one than that of both neighbours
    "microbatches-differ": ((MISMATCH, MISSING, *EITHER), (("1",), ("1", "2"))),
    "attempt-of-its-own": ((INIT, MISSING), (("2",),)),
    "rpc-one-stays": ((MISSING, EXIT), (("2",),)),
    "list-in-circle": ((MISSING,), (("1",),)),
    # rank 2 is in the end of its group, which waits for a sum that the others do not know
    "destroys-with-work-left": ((EXIT, MISMATCH, MISSING), (("2",),)),
    **dict.fromkeys(("versions-agree", "microbatches-agree", "list-is-long")),
}
_MPI = {
    # by the code rank 1 is to blame; from outside rank 2 is not in the barrier
    "halo-not-started": ((MISMATCH, MISSING), (("1",), ("2",), ("1", "2"))),
    **dict.fromkeys(("halo-started",)),
}
R, E, T, N = "ninth_ranks", "ninth_engines", "ninth_threads", "ninth_native"
_WORKER = ("main", "worker")

NINTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    Live(R, "asks-to-trust-code", (MISSING,), (("1",),), RANKS, how="torchrun", needs="torch"),
    Live(R, "loader-worker-stopped", (MISSING, OTHER), (("1",), ("worker",), ("1", "worker")), (*RANKS, "worker"),
         RANKS, "ranks", "torch"),
    *_ranks("ninth_mpi", "mpirun", "mpi4py", _MPI),
    # the other process waits for a thread of main, which has no interpreter
    Live(E, "tensor-handle-needs-interpreter", (GIL, *EITHER), (("main",), _WORKER), _WORKER, needs="torch"),
    Live(E, "tensor-handles-pass", (HEALTHY,), roles=_WORKER, needs="torch"),
    # by the code the worker takes the step for an old one; it looks for a new one all the time
    Live(E, "sequence-wraps", (*EITHER, MISSING), (("worker",), _WORKER), _WORKER),
    Live(E, "scheduler-awaits-client", (HEALTHY,), roles=_WORKER),
    Live(E, "fork-while-caching", (FORK,), (("worker",), _WORKER), _WORKER),
    Live(T, "cancelled-not-notified", EITHER),
    Live(T, "cancelled-and-notified", (HEALTHY,)),
    Live(T, "adapter-of-itself", EITHER),
    Live(T, "cancel-is-swallowed", (*EITHER, EXIT, OPEN)),  # natively an event loop at rest
    Live(T, "restarts-decoder", (HEALTHY,)),
    Live(T, "barrier-keeps-interpreter", (GIL, LOCKS)),
    Live(T, "barrier-gives-interpreter", (HEALTHY,)),
    Live(T, "fork-handler-and-interpreter", (GIL, LOCKS, FORK)),
    Live(N, "future-waits-in-destructor", EITHER),
    Live(N, "condition-destroyed-at-exit", (EXIT, *EITHER)),
    Live(N, "epoch-not-left", EITHER),
    Live(N, "epoch-is-left", (HEALTHY,)),
)  # fmt: skip

NINTH_BY_NAME: Dict[str, Live] = {row.id: row for row in NINTH}
