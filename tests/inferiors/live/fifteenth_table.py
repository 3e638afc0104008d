"""The fifteenth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-15` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
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

_FIRST_OR_OTHERS = (("0",), ("1", "2"))
_JOBS = {
    "older-code-on-second-node": ((MISMATCH, MISSING), (("2",),)),
    "fewer-tasks-on-one-rank": ((MISMATCH, MISSING), (("2",),)),
    "no-tokens-no-backward": ((MISMATCH, MISSING), (("1",),)),
    # the first rank alone has the right sum, and the others were to have it too
    "best-loss-on-first-rank": ((MISMATCH, MISSING), _FIRST_OR_OTHERS),
    # the two that have nothing to do leave the first one alone
    "idle-ranks-skip-forward": ((MISMATCH, MISSING), _FIRST_OR_OTHERS),
    # who looks in the wrong place
    "store-on-another-host": ((INIT, "network-transport", MISSING), (("1", "2"), ("1",), ("2",))),
    **dict.fromkeys(("disk-slow-at-times", "saves-while-others-wait")),
}
_MPI = {
    # rank 0 is in what is done at exit, and waits there for the others
    "failed-test-skips-barrier": ((MISSING, EXIT, MISMATCH), (("0",),)),
    # all of them do the same
    "ring-of-sends": ((MISMATCH, OTHER, LOCKS), ()),
    "updates-of-uneven-length": None,
}
R, E, T = "fifteenth_ranks", "fifteenth_engines", "fifteenth_threads"
M, N = "fifteenth_mpi", "fifteenth_native"
_PAIR = ("0", "1")
_BOTH = (("0", "1"), ("0",), ("1",))
_SERVER = ("main", "server")
_SPLIT = ("main", "prefill", "decode")

FIFTEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    Live(R, "stages-send-to-each-other", (MISMATCH, OTHER, LOCKS), _BOTH, _PAIR, how="ranks", needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # both should have done both
    Live(M, "splits-outside-the-group", (MISMATCH, INIT, MISSING), _BOTH, _PAIR, how="mpirun", needs="mpi4py"),
    Live(N, "engines-destroyed-in-turn", (EXIT, *EITHER, MISSING)),
    # who was to commit has been killed
    Live(N, "commit-behind-a-killed-one", (OTHER, MISSING, LOCKS), (), ("main", "worker0", "worker1")),
    Live(N, "scheduler-returns-to-full-queue", EITHER),
    # the worker that the thread waits for has ended
    Live(E, "exit-joins-pool-manager", (EXIT, *EITHER, MISSING)),
    # natively a loop that polls
    Live(E, "transfers-never-done", (OTHER, MISSING, LOCKS, OPEN), (("prefill",), ("decode",), ("prefill", "decode")),
         _SPLIT),
    # who had made the file has been killed
    Live(E, "stale-build-lock", (*EITHER, MISSING), needs="torch"),
    Live(E, "server-output-not-read", EITHER, (_SERVER, ("main",), ("server",)), _SERVER),
    Live(E, "loader-worker-gone", (OTHER, MISSING, LOCKS)),
    Live(T, "exception-inside-logging", EITHER),
    Live(T, "waits-with-interpreter-lock", (GIL, LOCKS)),
    Live(E, "compiles-under-startup-lock", (HEALTHY,), roles=("main", "talker", "thinker")),
    Live(E, "loads-page-by-page", (HEALTHY,)),
    Live(E, "wheel-on-one-core", (HEALTHY,), roles=("main", "build")),
    Live(E, "polls-for-requests", (HEALTHY,), roles=("main", "detector")),
    Live(E, "retries-until-limit-resets", (HEALTHY,)),
    Live(E, "schema-with-large-enums", (HEALTHY,), roles=("main", "engine")),
    Live(E, "worker-without-jobs", (HEALTHY,), roles=("main", "worker")),
)  # fmt: skip

FIFTEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in FIFTEENTH}
