"""The third set of live programs: each truth was written before gdbext looked, and no rule was made for any of them.

As `table.py`; played by `scripts/bench accuracy --family live-3` alone. Each healthy one is a hang's twin: the same
shape, in which work goes on.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
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
    "expert-without-tokens": ((MISMATCH, MISSING), (("1",),)),
    "metrics-lock": ((MISSING, LOCKS), (("1",),)),
    "upload-not-read": ((MISSING, "network-transport"), (("0",),)),
    **dict.fromkeys(("experts-with-no-tokens", "metrics-lock-in-turns", "upload-drained")),
}
_MPI = {
    "window-lock-kept": ((MISSING, LOCKS), (("1",),)),
    "barrier-started-by-two": ((MISMATCH, MISSING), (("0",), ("1",), ("0", "1"))),
    **dict.fromkeys(("window-lock-in-turns", "barrier-overlaps")),
}
_THREADS: Dict[str, Tuple[str, ...]] = {
    "queue-of-other-loop": EITHER,
    "generator-keeps-lock": EITHER,
    "event-cleared-too-soon": EITHER,
    "timer-was-cancelled": (*EITHER, MISSING),
    "lock-of-cancelled-task": (*EITHER, OPEN),  # natively an event loop at rest
    "rest-is-not-sent": EITHER,
    "native-mutex-and-gil": (GIL, LOCKS),
    **dict.fromkeys(
        ("queue-of-other-loop-woken", "generator-copies", "rest-is-sent", "native-mutex-in-turns"), (HEALTHY,)
    ),
}
_NATIVE: Dict[str, Tuple[str, ...]] = {
    "spinlock-owner-waits": EITHER,
    "handler-takes-mutex": (LOCKS,),
    "destructor-under-mutex": (LOCKS,),
    "file-lock-and-mutex": (LOCKS,),
    "eventfd-nobody-writes": (*EITHER, MISSING),
    **dict.fromkeys(("spinlock-in-turns", "destructor-after-mutex"), (HEALTHY,)),
}
P = "third_processes"
_TWO = ("main", "child")
_BOTH = (_TWO, ("main",), ("child",))

THIRD: Tuple[Live, ...] = (
    *_ranks("third_ranks", "ranks", "torch", _JOBS),
    # the one to blame has ended
    Live("third_ranks", "left-before-barrier", (MISSING, INIT), (), RANKS, ("0", "1"), "ranks", "torch"),
    Live("third_ranks", "loader-inherits-pool", (FORK, *EITHER), (("worker",), ("main", "worker")), ("main", "worker"),
         ("main",), needs="torch"),
    Live("third_ranks", "loader-with-own-pool", (HEALTHY,), roles=("main", "worker"), needs="torch"),
    *_ranks("third_mpi", "mpirun", "mpi4py", _MPI),
    Live(P, "named-pipes-crossed", EITHER, _BOTH, _TWO),
    Live(P, "record-lock-and-pipe", EITHER, _BOTH, _TWO),
    Live(P, "answer-not-flushed", EITHER, (("child",), _TWO), _TWO),
    Live(P, "task-waits-for-later", EITHER, (("main", "worker"), ("main",), ("worker",)), ("main", "worker")),
    Live(P, "pause-after-signal", EITHER, (("main",), _TWO), _TWO),
    Live(P, "third-connection", EITHER, _BOTH, _TWO),
    *(
        Live(P, name, (HEALTHY,), roles=_TWO)
        for name in ("named-pipes-in-order", "answers-flushed", "many-connections")
    ),
    *(Live("third_threads", name, causes) for name, causes in _THREADS.items()),
    *(Live("third_native", name, causes) for name, causes in _NATIVE.items()),
)  # fmt: skip

THIRD_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRD}
