"""The fifth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-5` alone. They are shaped like what engines of language
models do: ranks with groups, drivers with workers, rings of messages, caches of kernels and of files.
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
    ORDER,
    OTHER,
    RANKS,
    Live,
    _ranks,
)

_JOBS = {
    "block-count-override": ((MISMATCH, MISSING), (("1",),)),
    "step-error-swallowed": ((MISSING, MISMATCH), (("2",),)),
    "evicts-nothing": ((MISSING, OTHER), (("1",),)),
    # all receive in a ring; what tells is that rank 1 has sent nothing to rank 2
    "kv-transfer-skipped": ((MISMATCH, MISSING, *EITHER), (("1",), ("1", "2"), RANKS)),
    "baton-left-behind": ((MISSING, *EITHER), (("1",),)),
    "shutdown-barrier": ((MISMATCH, MISSING, EXIT), (("2",),)),
    "drain-before-update": ((MISSING, *EITHER), (("2",),)),
    "stage-asks-back": ((*EITHER, MISSING), (("1",), ("1", "2"))),
}
_STEPS = ("loads-slowly", "compiles-kernels", "evicts-for-long", "replicas-without-requests")
_FOUR = ("0", "1", "2", "3")
_MPI = {
    "error-by-other-tag": ((MISMATCH, MISSING, *EITHER), (("2",), ("0",), ("0", "2"))),
    **dict.fromkeys(("long-tasks",)),
}
E, C, N = "fifth_engines", "fifth_caches", "fifth_native"
_DRIVER = ("main", *RANKS)
_RING = ("main", "worker0", "worker1")
_WORKER = ("main", "worker")

FIFTH: Tuple[Live, ...] = (
    *_ranks("fifth_ranks", "ranks", "torch", _JOBS),
    Live("fifth_ranks", "logits-in-other-group", (MISMATCH, ORDER, MISSING), (("3",),), _FOUR, how="ranks",
         needs="torch"),
    *_ranks("fifth_steps", "ranks", "torch", dict.fromkeys(_STEPS)),
    Live("fifth_steps", "uneven-experts", (HEALTHY,), roles=_FOUR, how="ranks", needs="torch"),
    # by the code the driver is to blame, by the stacks rank 2, which has nothing to do
    Live(E, "command-to-two", (MISSING, OTHER), (("main",), ("2",), ("main", "2")), _DRIVER, needs="torch"),
    Live(E, "long-steps", (HEALTHY,), roles=_DRIVER, needs="torch"),
    Live(E, "ring-reader-died", (OTHER, MISSING, LOCKS), (("worker1",), ("main", "worker1")), _RING),
    Live(E, "ring-at-rest", (HEALTHY,), roles=_RING),
    Live(E, "request-lost", (OTHER, MISSING, LOCKS), (("engine",), ("main", "engine")), ("main", "engine")),
    Live(E, "chunks-in-same-executor", EITHER),
    Live(E, "loader-with-bars", (FORK,), (("worker",), _WORKER), _WORKER, ("main",), needs="torch"),
    Live(C, "cache-lock-over-compile", EITHER, (("main",), ("worker",), _WORKER), _WORKER, needs="filelock"),
    # the lock's holder is alive, and waits for a server that is silent
    Live(C, "download-stalled", (*EITHER, MISSING, "network-transport"),
         (("downloader",), ("hub",), ("main", "downloader"), ("downloader", "hub")), ("main", "downloader", "hub"),
         ("main",), needs="filelock"),
    Live(C, "download-trickles", (HEALTHY,), roles=("main", "downloader"), needs="filelock"),
    Live(C, "engine-left-to-exit", (EXIT, *EITHER), (("main",), _WORKER), _WORKER, needs="filelock"),
    Live(C, "import-before-fork", (FORK,), (("worker",), _WORKER), _WORKER, needs="filelock"),
    Live(N, "eviction-told-to-python", (GIL, LOCKS)),
    Live(N, "eviction-while-released", (HEALTHY,)),
    *_ranks("fifth_mpi", "mpirun", "mpi4py", _MPI),
)  # fmt: skip

FIFTH_BY_NAME: Dict[str, Live] = {row.id: row for row in FIFTH}
