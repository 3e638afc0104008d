"""The twelfth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-12` alone. Who wrote them did not know the rules.
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
    "one-rank-in-training-mode": ((MISMATCH, MISSING), (("1",),)),
    # by the code rank 1 is to blame, which waits with rank 0 by now; rank 2 sends to rank 0, which takes nothing
    "result-sent-twice": ((MISMATCH, MISSING), (("1",), ("2",), ("0",), ("0", "2"), ("1", "2"))),
    "rpc-not-joined": ((INIT, MISSING, MISMATCH), (("2",),)),
    **dict.fromkeys(("accumulates-together",)),
}
_MPI = {
    # by the code rank 1 is to blame; rank 2 does not take what rank 1 waits for
    "exchange-of-other-layer": ((MISMATCH, MISSING), (("1",), ("2",), ("1", "2"))),
    **dict.fromkeys(("exchange-ends",)),
}
R, E, T, N = "twelfth_ranks", "twelfth_engines", "twelfth_threads", "twelfth_native"
_WAVES = (*RANKS, "coordinator")
_ENGINE = ("main", "engine")
_WORKER = ("main", "worker")
_CHILD = ("main", "child")

TWELFTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    Live(R, "accumulates-one-longer", (MISMATCH, MISSING), (("1",),), RANKS, how="torchrun", needs="torch"),
    # rank 1 rests, and the coordinator takes it for one that runs
    Live(R, "wave-not-started", (MISSING, *EITHER), (("1",), ("coordinator",), ("1", "coordinator")), _WAVES, RANKS,
         "ranks", "torch"),
    Live(R, "waves-in-turn", (HEALTHY,), (), _WAVES, RANKS, "ranks", "torch"),
    *_ranks("twelfth_mpi", "mpirun", "mpi4py", _MPI),
    # the client waits for the old server, which waits for the client's other connection to end
    Live(E, "old-listener-drains", (*EITHER, MISSING), (("old",), ("old", "client")), ("main", "old", "new", "client")),
    Live(E, "edge-read-once", (*EITHER, MISSING), (("engine",), _ENGINE), _ENGINE),
    Live(E, "edge-read-to-end", (HEALTHY,), roles=_ENGINE),
    # by the code the parent is to blame; the worker waits for a signal that it does not let through
    Live(E, "mask-inherited", (*EITHER, MISSING), (("worker",), ("main",), _WORKER), _WORKER),
    Live(E, "lock-inherited", (*EITHER, FORK), (("worker",), ("main",), _WORKER), _WORKER),
    Live(E, "lock-until-worker-ends", (HEALTHY,)),
    Live(T, "reaper-was-faster", (*EITHER, MISSING)),
    Live(T, "log-pipe-and-interpreter", (GIL, LOCKS)),
    Live(T, "log-pipe-is-read", (HEALTHY,)),
    Live(T, "handler-never-runs", EITHER),
    Live(T, "property-of-whole-class", EITHER),
    Live(T, "properties-in-turn", (HEALTHY,)),
    Live(T, "engine-freed-at-finish", (EXIT, *EITHER)),
    Live(T, "microbatches-meet", (HEALTHY,)),
    Live(N, "connection-not-rearmed", EITHER),
    Live(N, "connection-rearmed", (HEALTHY,)),
    # it looks again and again at what only a wait would begin
    Live(N, "deferred-is-never-ready", (OTHER, LOCKS, OPEN)),
    Live(N, "task-is-polled", (HEALTHY,)),
    Live(N, "recursive-mutex-waits", EITHER),
    Live(N, "exit-from-worker", (EXIT, *EITHER)),
    Live(N, "fork-while-static", (FORK,), (("child",), _CHILD), _CHILD),
)  # fmt: skip

TWELFTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWELFTH}
