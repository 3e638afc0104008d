"""The eighth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-8` alone. Who wrote them did not know the rules.
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
    "skips-batch-on-oom": ((MISMATCH, MISSING), (("1",),)),
    # ranks 0 and 1 wait for each other; the others' counts do not tell whose warm-up is the right one
    "warm-up-too-long": ((MISMATCH, MISSING, *EITHER), (("1",), ("0", "1"))),
    "index-on-other-disk": ((MISSING,), (("2",),)),
    "finally-joins-writer": ((MISSING,), (("1",),)),
    "world-of-four": ((INIT, MISSING), (("2",),)),
    "probes-full-table": ((MISSING,), (("2",),)),
    **dict.fromkeys(("halves-batch-on-oom", "index-takes-long")),
}
_MPI = {
    # by the code rank 0 is to blame; from outside rank 2 is not in the barrier
    "last-worker-not-told": ((MISMATCH, MISSING), (("0",), ("2",), ("0", "2"))),
    **dict.fromkeys(("all-workers-told",)),
}
R, E, T = "eighth_ranks", "eighth_engines", "eighth_threads"
_ENGINE = ("main", "engine")
_SIDES = ("main", "prefill", "decode")
_RING = ("main", "writer", "reader0", "reader1")
_LAUNCHED = (*RANKS, "main")

EIGHTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    Live(R, "rank-was-stopped", (MISSING, OTHER), (("2",),), RANKS, how="torchrun", needs="torch"),
    Live(R, "weights-trickle", (HEALTHY,), roles=RANKS, how="torchrun", needs="torch"),
    Live(E, "launcher-reads-nothing", (MISSING, *EITHER), (("1",), ("main",), ("main", "1")), _LAUNCHED, RANKS,
         needs="torch"),
    *_ranks("eighth_mpi", "mpirun", "mpi4py", _MPI),
    # only the front end can be asked: the engine is a zombie
    Live(E, "engine-was-killed", (OTHER, MISSING, LOCKS), (("engine",), ("main",), _ENGINE), _ENGINE, ("main",)),
    Live(E, "engine-is-idle", (HEALTHY,), roles=_ENGINE),
    # all three wait; the prefill side is the one that waits for something new
    Live(E, "prefill-drops-request", (MISSING, *EITHER), (("prefill",), ("main", "prefill"), ("prefill", "decode")),
         _SIDES),
    Live(E, "nothing-schedulable", (OTHER, MISSING), (("engine",),), _ENGINE),
    Live(E, "waits-for-blocks", (HEALTHY,), roles=_ENGINE),
    # each waits for the other: by the code the trainer is to blame
    Live(E, "paused-and-not-resumed", (*EITHER, MISSING), (("main",), ("engine",), _ENGINE), _ENGINE),
    Live(E, "paused-for-update", (HEALTHY,), roles=_ENGINE),
    Live(E, "fork-while-registering", (FORK,), (("worker",), ("main", "worker")), ("main", "worker"),
         needs="prometheus_client"),
    Live(E, "ring-writer-killed", (OTHER, MISSING, LOCKS), (("writer",), ("main", "writer")), _RING,
         ("main", "reader0", "reader1")),
    Live(E, "ring-writer-slow", (HEALTHY,), roles=_RING),
    Live(T, "client-has-gone", (*EITHER, OPEN)),  # natively an event loop at rest
    Live(T, "step-and-free", (LOCKS,)),
    Live(T, "one-told-of-two", EITHER),
    Live(T, "all-are-told", (HEALTHY,)),
    Live(T, "stop-keeps-interpreter", (GIL, LOCKS)),
    Live(T, "packs-with-interpreter", (HEALTHY,)),
    Live("eighth_native", "pool-tells-one", (*EITHER, EXIT)),
)  # fmt: skip

EIGHTH_BY_NAME: Dict[str, Live] = {row.id: row for row in EIGHTH}
