"""The fourth set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-4` alone.
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
    RANKS,
    Live,
    _ranks,
)

_JOBS = {
    "except-branch-barrier": ((MISMATCH, MISSING), (("1",),)),
    # two groups in another order on rank 1, by a lock that is kept over both
    "lock-over-all-reduce": ((ORDER, LOCKS, MISMATCH), (("1",), ("0", "1"), RANKS)),
    "sends-first": ((MISMATCH, *EITHER), (("0", "1"), ("0",), ("1",))),
    "slot-of-killed-helper": ((MISSING, LOCKS), (("1",),)),
    "ring-of-groups": ((ORDER, MISMATCH), ()),  # a ring: each is as much to blame as the others
    "health-check-starves": ((GIL, MISSING), (("1",),)),
    **dict.fromkeys(("lock-before-all-reduce", "long-product", "periodic-rank")),
}
_MPI = {
    "wrong-neighbour": ((MISMATCH, MISSING), (("1",), ("1", "2"))),
    "file-resized-by-two": ((MISMATCH, MISSING), (("1",),)),
    **dict.fromkeys(("file-written-by-all",)),
}
_THREADS: Dict[str, Tuple[str, ...]] = {
    "handler-logs-to-queue": EITHER,
    "loop-ends-before-worker": (*EITHER, EXIT),
    "slots-lost-by-errors": EITHER,
    **dict.fromkeys(("loop-compresses-in-thread", "retries-succeed"), (HEALTHY,)),
}
_NATIVE: Dict[str, Tuple[str, ...]] = {
    "nested-read": EITHER,
    "critical-waits-for-team": EITHER,
    "unload-joins-thread": (*EITHER, EXIT),
    "read-not-submitted": (OTHER, MISSING),
    **dict.fromkeys(("reads-and-updates", "tasks-and-teams"), (HEALTHY,)),
}
R, P, N = "fourth_ranks", "fourth_processes", "fourth_native"
_TWO = ("main", "child")
_BOTH = (_TWO, ("main",), ("child",))
_WORKER = ("main", "worker")
_AGENTS = ("0", "1")

FOURTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(R, "torchrun", "torch", dict.fromkeys(("except-branch-retries",))),
    Live(R, "node-does-not-come", (INIT, MISSING), needs="torch"),
    Live(R, "call-under-lock", (*EITHER, MISSING), (("1",), _AGENTS), _AGENTS, how="ranks", needs="torch"),
    Live(R, "call-without-lock", (HEALTHY,), roles=_AGENTS, how="ranks", needs="torch"),
    Live("fourth_loader", "log-file-copied", (FORK,), (("worker",), _WORKER), _WORKER, ("main",), needs="torch"),
    Live("fourth_loader", "log-file-opened", (HEALTHY,), roles=_WORKER, needs="torch"),
    *_ranks("fourth_mpi", "mpirun", "mpi4py", _MPI),
    *(Live("fourth_threads", name, causes) for name, causes in _THREADS.items()),
    # the one to blame has ended
    Live(P, "tokenizer-died", (OTHER, MISSING), (("scheduler",), ("main", "scheduler")), ("main", "scheduler")),
    Live(P, "tokenizer-idle", (HEALTHY,), roles=("main", "scheduler", "tokenizer")),
    Live(P, "warnings-not-read", EITHER, _BOTH, _TWO),
    Live(P, "warnings-read", (HEALTHY,), roles=_TWO),
    Live(P, "lock-of-stranger", EITHER, (("holder",), ("main",)), ("main", "holder"), ("main",)),
    Live(P, "spawn-opens-pipe", (OTHER, MISSING)),
    Live(P, "spawn-opens-file", (HEALTHY,)),
    Live(P, "file-lock-polled", (HEALTHY,), roles=_TWO, needs="filelock"),
    *(Live(N, name, causes) for name, causes in _NATIVE.items()),
    Live(N, "message-queues-full", EITHER, _BOTH, _TWO),
    Live(N, "message-queues-in-turn", (HEALTHY,), roles=_TWO),
    Live("fourth_ray", "actor-calls-itself", EITHER, (("a",), ("main", "a")), ("main", "a"), needs="ray"),
)  # fmt: skip

FOURTH_BY_NAME: Dict[str, Live] = {row.id: row for row in FOURTH}
