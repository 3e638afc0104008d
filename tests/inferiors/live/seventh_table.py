"""The seventh set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-7` alone. Who wrote them did not know the rules.
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
    ORDER,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    # who has the number of another one
    "rank-number-twice": ((INIT, MISSING), (("2",), ("1", "2"))),
    "generates-until-own-end": ((MISMATCH, MISSING), (("1",),)),
    "prints-sharded-norm": ((MISMATCH, MISSING), (("0",),)),
    "crash-handler-waits": ((MISSING, OTHER), (("2",),)),
    **dict.fromkeys(("generates-until-all-end",)),
}
_MPI = {
    # by the code rank 2 has too few neighbours; the lists of ranks 0 and 2 do not fit
    "neighbours-one-sided": ((MISMATCH, MISSING), (("2",), ("0", "2"), ("0",))),
    **dict.fromkeys(("neighbours-in-ring",)),
}
R, E, S, T, N = "seventh_ranks", "seventh_engines", "seventh_services", "seventh_threads", "seventh_native"
_FOUR = ("0", "1", "2", "3")
_ENGINE = ("main", "engine")
_LOADER = ("main", "worker0", "worker1")

SEVENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # rank 1 waits for rank 3 in the small group, 0 for 1, and 2 and 3 for both in the large one
    Live(R, "tied-embedding-skipped", (MISMATCH, ORDER, MISSING), (("3",), ("1", "3")), _FOUR, how="ranks",
         needs="torch"),
    Live(R, "uneven-stages", (HEALTHY,), roles=_FOUR, how="ranks", needs="torch"),
    *_ranks("seventh_mpi", "mpirun", "mpi4py", _MPI),
    Live(E, "times-of-log-and-fork", (FORK,), (("worker",), ("main", "worker")), ("main", "worker")),
    # each waits for the other: by the code the front end is to blame
    Live(E, "ready-asks-back", (*EITHER, MISSING), (("main",), ("engine",), _ENGINE), _ENGINE),
    # the engine has answered and waits for the next request
    Live(E, "route-needs-lock", EITHER, (("main",), _ENGINE), _ENGINE),
    Live(E, "answers-routed", (HEALTHY,), roles=_ENGINE),
    Live(E, "children-by-signals", (OTHER, MISSING, LOCKS)),
    Live(E, "children-by-turns", (HEALTHY,)),
    Live(E, "left-in-debugger", (OTHER, MISSING), (("worker1",), ("debugger",), ("worker1", "debugger")),
         (*_LOADER, "debugger"), _LOADER),
    Live(S, "starts-under-cache-lock", EITHER, (("main",), ("server",), ("main", "server")), ("main", "server")),
    Live(S, "workers-replaced", (HEALTHY,)),
    # all three locks and waits are between threads of the manager
    Live(S, "registry-asks-itself", EITHER, (("manager",), ("main", "manager")), ("main", "manager"), ("main",)),
    # a circle; who has the database is worker 1
    Live(S, "samples-within-transaction", EITHER, (("worker1",), ("worker0", "worker1"), _LOADER), _LOADER, ("main",),
         needs="torch"),
    Live(S, "samples-after-transaction", (HEALTHY,), roles=_LOADER, asked=("main",), needs="torch"),
    Live(T, "one-end-for-three", (*EITHER, MISSING)),
    Live(T, "ends-for-all", (HEALTHY,)),
    Live(T, "shutdown-in-handler", (*EITHER, EXIT)),
    Live(T, "rest-is-not-read", (*EITHER, MISSING)),
    Live(T, "rest-is-read", (HEALTHY,)),
    Live(T, "static-and-interpreter", (GIL, LOCKS)),
    Live(N, "future-thrown-away", EITHER),
    Live(N, "futures-kept", (HEALTHY,)),
    Live(N, "cancelled-with-mutex", EITHER),
)  # fmt: skip

SEVENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in SEVENTH}
