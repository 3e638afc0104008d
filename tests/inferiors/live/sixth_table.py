"""The sixth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-6` alone. Who wrote them knew neither the rules nor what
gdbext says of the other sets.
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
    "object-instead-of-tensor": ((MISMATCH, MISSING), (("0",),)),
    "update-one-tensor-short": ((MISMATCH, MISSING), (("2",),)),
    "stale-expert-plan": ((MISMATCH, MISSING), (("1",), ("1", "2"))),
    "gradients-by-name": ((ORDER, MISMATCH), (("2",), ("1", "2"))),
}
_STEPS = ("grammar-backtracks", "updates-in-order", "shards-with-metadata", "compiler-has-token")
_MPI = {
    # by the stacks the workers have nothing to do, and the master looks in the wrong place
    "probes-other-communicator": ((MISMATCH, MISSING, *EITHER), (("0",), ("1", "2"), RANKS)),
    **dict.fromkeys(("probes-for-results",)),
}
R, E, T, N = "sixth_ranks", "sixth_engines", "sixth_threads", "sixth_native"
_ENGINE = ("main", "engine")
_STAGES = ("main", "engine", "detokenizer")
_NODES = ("a", "b", "c")
_WORKER = ("main", "worker")
_SHARDS = ("worker0", "worker1", "worker2")

SIXTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # rank 2 is gone, its child lives
    Live(R, "killed-beside-helper", (MISSING,), (("2",), ("2", "helper")), (*RANKS, "helper"), ("0", "1"), "ranks",
         "torch"),
    Live(R, "log-collector-blocked", (MISSING, OTHER), (("1",), ("collector",), ("1", "collector")),
         (*RANKS, "collector"), RANKS, "ranks", "torch"),
    Live(R, "token-of-killed-compiler", (MISSING, OTHER), (("1",), ("compiler",), ("1", "compiler")),
         (*RANKS, "compiler"), RANKS, "ranks", "torch"),
    *_ranks("sixth_steps", "ranks", "torch", dict.fromkeys(_STEPS)),
    Live("sixth_steps", "log-collector-slow", (HEALTHY,), roles=(*RANKS, "collector"), asked=RANKS, how="ranks",
         needs="torch"),
    *_ranks("sixth_mpi", "mpirun", "mpi4py", _MPI),
    # a circle: by the code the front end is to blame, by the stacks each as much as the others
    Live(E, "three-queues-full", EITHER, (_STAGES, *((role,) for role in _STAGES)), _STAGES),
    Live(E, "queues-drain", (HEALTHY,), roles=_STAGES),
    Live(E, "cache-nodes-in-circle", EITHER, (_NODES, *((role,) for role in _NODES)), ("main", *_NODES)),
    Live(E, "prefill-stopped", (OTHER, MISSING, "network-transport"), (("prefill",), ("main", "prefill")),
         ("main", "prefill")),
    Live(E, "loop-thread-not-forked", (FORK, *EITHER), (("worker",), _WORKER), _WORKER),
    # the engine waits in send() for a front end that will not read
    Live(E, "output-handler-died", EITHER, (("main",), _ENGINE), _ENGINE),
    Live(E, "front-end-at-rest", (HEALTHY,), roles=_ENGINE),
    # worker 2 waits for the others, they for the engine, and the engine for worker 2
    Live(E, "restarted-worker", (MISSING, *EITHER), (("worker2",), ("main", "worker2"), ("worker0", "worker1")),
         ("main", *_SHARDS)),
    Live(T, "blocks-held-by-both", EITHER),
    Live(T, "blocks-come-back", (HEALTHY,)),
    Live(T, "metrics-at-exit", (EXIT, *EITHER)),
    Live(T, "registry-and-import", EITHER),
    # the one to blame has ended
    Live(N, "table-half-written", (OTHER, MISSING, LOCKS), (("writer",), ("main",), ("main", "writer")),
         ("main", "writer"), ("main",)),
    Live(N, "table-written-often", (HEALTHY,), roles=("main", "writer")),
    Live(N, "thread-leaves-registry", EITHER),
    Live(N, "transfer-with-interpreter", (GIL, LOCKS)),
)  # fmt: skip

SIXTH_BY_NAME: Dict[str, Live] = {row.id: row for row in SIXTH}
