"""The tenth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-10` alone. Who wrote them did not know the rules.
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
    RANKS,
    Live,
    _ranks,
)

_JOBS = {
    # by the code rank 1 is to blame, which waits with rank 0 by now
    "key-deleted-too-soon": ((MISSING,), (("2",), ("1",), ("1", "2"))),
    # rank 2 has gone on with the lock and waits for rank 1
    "lock-in-store-kept": ((MISSING, LOCKS), (("1",), ("2",), ("1", "2"))),
    "file-lock-and-interpreter": ((GIL, MISSING, LOCKS), (("1",),)),
    "inf-on-one-rank": ((MISMATCH, MISSING), (("1",),)),
    **dict.fromkeys(("collects-garbage", "spare-waits")),
}
_MPI = {
    # by the code rank 1 is to blame, which waits in the barrier by now; from outside rank 2 is not there
    "window-posted-to-one": ((MISMATCH, MISSING), (("1",), ("2",), ("1", "2"))),
    # all are in the same call, with another tag on rank 2
    "counts-own-groups": ((INIT, MISMATCH, MISSING), (("2",),)),
    **dict.fromkeys(("window-posted-to-both",)),
}
R, E, T, N = "tenth_ranks", "tenth_engines", "tenth_threads", "tenth_native"
_FOUR = ("0", "1", "2", "3")
_WORKER = ("main", "worker")
_STEPS = ("main", "engine", "worker0", "worker1")
_FRONT = ("main", "engine", "client")

TENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    Live(R, "preempted-alone", (MISMATCH, MISSING), (("1",),), RANKS, how="torchrun", needs="torch"),
    Live(R, "mesh-of-other-shape", (INIT, MISMATCH, MISSING), (("3",),), _FOUR, how="ranks", needs="torch"),
    # ranks 0 and 2 wait for each other, and ranks 1 and 3 for them
    Live(R, "batch-grows-for-one-side", (MISMATCH, *EITHER, MISSING), (("0", "2"), ("0",), ("2",), ("0", "1")), _FOUR,
         how="ranks", needs="torch"),
    Live(R, "batch-stays", (HEALTHY,), roles=_FOUR, how="ranks", needs="torch"),
    # a circle: rank 1 waits for the agent, the agent for rank 0, and rank 0 for rank 1
    Live(R, "agent-has-no-room", (MISSING, *EITHER), (("1",), ("agent",), ("1", "agent")), (*RANKS, "agent"), RANKS,
         "ranks", "torch"),
    *_ranks("tenth_mpi", "mpirun", "mpi4py", _MPI),
    # by the code worker 0 has taken too much; worker 1 has nothing to do, and the engine waits for it
    Live(E, "one-takes-both-steps", (*EITHER, MISSING),
         (("worker1",), ("worker0",), ("engine",), ("worker0", "worker1"), ("engine", "worker1")), _STEPS),
    Live(E, "answer-finds-no-thread", (*EITHER, MISSING), (("main",), ("main", "engine")), _FRONT),
    Live(E, "answer-finds-thread", (HEALTHY,), roles=_FRONT),
    Live(E, "fork-while-drawing", (FORK,), (("worker",), _WORKER), _WORKER, needs="numpy"),
    Live(E, "replaced-in-turn", (HEALTHY,)),
    Live(T, "closes-while-written", EITHER),
    Live(T, "ring-keeps-interpreter", (GIL, LOCKS)),
    Live(T, "ring-gives-interpreter", (HEALTHY,)),
    Live(T, "loop-ends-its-threads", (*EITHER, EXIT, OPEN)),  # natively an event loop at rest
    Live(T, "asks-tool", (HEALTHY,)),
    Live(N, "timer-of-zero", EITHER),
    Live(N, "timer-of-a-second", (HEALTHY,)),
    Live(N, "list-of-modules", (LOCKS,)),
    Live(N, "sample-takes-memory", (LOCKS,)),
    Live(N, "stopped-while-it-ends", EITHER),
    Live(N, "phases-of-three", (HEALTHY,)),
)  # fmt: skip

TENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TENTH}
