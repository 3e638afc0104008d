"""The eleventh set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-11` alone. Who wrote them did not know the rules.
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
    Live,
    _ranks,
)

_JOBS = {
    "no-sync-too-long": ((MISMATCH, MISSING), (("1",),)),
    "saves-by-own-clock": ((MISMATCH, MISSING), (("1",),)),
    "file-store-elsewhere": ((INIT, MISSING), (("2",),)),
    "checkpoint-alone": ((MISMATCH, MISSING), (("1",),)),
    # all threads of rank 0 wait for a call that no thread is left for; ranks 1 and 2 wait for rank 0
    "server-has-two-threads": ((OTHER, LOCKS, MISSING), (("0",),)),
    **dict.fromkeys(("server-has-four-threads", "saves-by-clock-of-one")),
}
_MPI = {
    # rank 0 should have received, and waits in the barrier by now; from outside rank 1 is not there
    "buffer-not-drained": ((MISMATCH, MISSING, OTHER), (("0",), ("1",), ("0", "1"))),
    "two-threads-probe-one": ((MISSING, MISMATCH, *EITHER), (("1",),)),
}
R, E, T, N = "eleventh_ranks", "eleventh_engines", "eleventh_threads", "eleventh_native"
_WORKER = ("main", "worker")

ELEVENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks("eleventh_mpi", "mpirun", "mpi4py", _MPI),
    # by the code the worker has taken too much; each of the two waits for the other
    Live(E, "takes-both-signals", (*EITHER, MISSING), (("worker",), ("main",), _WORKER), _WORKER),
    # who would accept is dead; the worker has the socket, and knows nothing of it
    Live(E, "listener-kept-by-worker", (OTHER, LOCKS, MISSING), (("worker",), ("main",), _WORKER), _WORKER),
    Live(E, "pool-fed-from-quiet-source", EITHER, (("main",),)),
    Live(E, "hook-before-exec-takes-lock", (FORK, LOCKS), (("child",), ("main",), ("main", "child")),
         ("main", "child")),
    # the one to blame was killed; worker 1 waits for the lock that the main process has
    Live(E, "event-waiter-killed", (OTHER, LOCKS, MISSING), (("main",), _WORKER), _WORKER),
    Live(E, "standby-waits-for-lock", (HEALTHY,), roles=("main", "leader", "standby")),
    Live(T, "streams-drain-both", (*EITHER, OPEN)),  # natively an event loop at rest
    Live(T, "streams-drain-slowly", (HEALTHY,)),
    Live(T, "sets-level-with-interpreter", (GIL, LOCKS)),
    Live(T, "close-wakes-nobody", EITHER),
    Live(T, "event-was-replaced", EITHER),
    Live(T, "polls-for-long", (HEALTHY,)),
    Live(T, "watchdog-tells-stacks", (HEALTHY,)),
    Live(T, "replays-at-its-pace", (HEALTHY,)),
    Live(N, "one-shot-not-armed", EITHER),
    Live(N, "one-shot-armed", (HEALTHY,)),
    Live(N, "stop-is-not-heard", (EXIT, *EITHER)),
    Live(N, "promise-kept-alive", EITHER),
    Live(N, "wait-without-notify", EITHER),
    Live(N, "parked-between-steps", (HEALTHY,)),
    Live(N, "latch-for-each-epoch", (HEALTHY,)),
)  # fmt: skip

ELEVENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in ELEVENTH}
