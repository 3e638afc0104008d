"""The sixteenth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-16` alone. Each truth was written before gdbext looked,
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
    # it took too little, and neither of the two takes what the other one has for it
    "buffer-of-another-type": ((MISMATCH, OTHER, LOCKS), (("1",), ("0", "1"), ("0",))),
    "fewer-batches-then-validation": ((MISMATCH, MISSING), (("0",),)),
    "progress-bar-asks-for-metric": ((MISMATCH, MISSING), (("0",),)),
    "eager-on-one-rank": ((MISMATCH, MISSING), (("1",),)),
    "head-called-more-often": ((MISMATCH, MISSING), (("1",),)),
    # the first rank alone has the metric, and the others were to take part
    "metric-where-it-was-seen": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    **dict.fromkeys(("first-rank-prepares-data",)),
}
_MPI = {
    "tuning-fails-on-first-rank": ((MISMATCH, MISSING), (("0",),)),
    # it is at the end already
    "model-stops-early": ((MISSING, EXIT, MISMATCH), (("2",),)),
    # it waits for its next task
    "executor-fails-on-one-rank": ((MISSING, MISMATCH), (("2",),)),
    "polls-the-barrier": None,
}
R, E, T = "sixteenth_ranks", "sixteenth_engines", "sixteenth_threads"
M, N = "sixteenth_mpi", "sixteenth_native"
_ROLLOUT = ("main", "rollout")
_CHILD = ("main", "child")
_FOUR = ("0", "1", "2", "3")

SIXTEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # all of them should have made both groups
    Live(R, "pairs-made-at-once", (INIT, MISMATCH, ORDER, MISSING), (), _FOUR, how="ranks", needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # who was to say that it has ended has ended
    Live(N, "worker-ended-unseen", (OTHER, MISSING, LOCKS, EXIT)),
    Live(N, "pool-told-too-early", (*EITHER, EXIT)),
    Live(N, "failure-inside-its-handler", EITHER),
    Live(N, "limiter-looks-at-first-only", EITHER),
    Live(T, "acquires-what-it-has", (GIL, LOCKS)),
    Live(T, "timer-in-a-loop-that-stands", EITHER),
    Live(E, "tokenizer-pool-forked", (FORK,), (("child",),), _CHILD),
    Live(E, "rollout-left-paused", (*EITHER, MISSING), (_ROLLOUT, ("main",), ("rollout",)), _ROLLOUT),
    Live(E, "gets-one-of-many", (*EITHER, EXIT), (_CHILD, ("main",), ("child",)), _CHILD),
    # natively a loop that polls
    Live(E, "head-of-queue-never-fits", (OTHER, LOCKS, MISSING, OPEN), (("engine",),), ("main", "engine")),
    Live(E, "loads-pickled-shards", (HEALTHY,), needs="torch"),
    Live(E, "compiles-fusions", (HEALTHY,)),
    Live(E, "steps-without-requests", (HEALTHY,)),
    Live(E, "load-keeps-the-thread", (HEALTHY,), roles=("main", "server")),
    Live(E, "shard-of-long-texts", (HEALTHY,), roles=("main", "worker")),
    Live(E, "warms-up-traces", (HEALTHY,), roles=("main", "engine", "probe"), needs="torch"),
    Live(E, "threads-back-off", (HEALTHY,)),
    Live(E, "preempts-and-recomputes", (HEALTHY,), roles=("main", "engine")),
)  # fmt: skip

SIXTEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in SIXTEENTH}
