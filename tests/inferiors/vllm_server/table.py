"""Servers of vLLM, each with its truth, written before gdbext looked at them.

Roles: `api` (the HTTP server), `core0`, `core1` (the engine cores), `worker0`, `worker1` (the ranks), `other` (beside
the server). `options` are vLLM's own. `culprits` as in `tests.inferiors.live.table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from tests.inferiors.engine_server.table import NETWORK
from tests.inferiors.engine_server.table import Served as Row
from tests.inferiors.live.table import HEALTHY, INIT, LOCKS, MISMATCH, MISSING, OTHER

TP2 = ("--tensor-parallel-size", "2", "--enforce-eager")
PP2 = ("--pipeline-parallel-size", "2", "--enforce-eager")
DP2 = ("--data-parallel-size", "2", "--enforce-eager")
ALONE = ("--enforce-eager",)


@dataclass(frozen=True)
class Served(Row):
    options: Tuple[str, ...] = TP2


_W1 = (("worker1",),)
_CORE = (("core0",),)
_API = (("api",),)

SERVED: Tuple[Served, ...] = (
    # a thread of worker 1 renews weights under a lock and waits; the forward pass wants the lock
    Served("weights-renewed-under-a-lock", (MISSING, LOCKS), _W1),
    # worker 1 leaves one all-reduce out
    Served("reduces-only-on-the-first", (MISMATCH, MISSING), _W1),
    # worker 1 enters a barrier that worker 0 does not know
    Served("barrier-of-one", (MISMATCH, MISSING), _W1),
    Served("worker-stopped", (MISSING, OTHER), _W1, stops="worker1"),
    # worker 1 asks a remote cache, which does not answer
    Served("remote-cache-of-one-worker", (MISSING, NETWORK), _W1),
    # worker 1 filters tokens for ever
    Served("filters-tokens-for-ever", (MISSING,), _W1),
    # the scheduler wants a lock that a thread has, which waits for the scheduler
    Served("scheduler-and-its-auditor", (LOCKS, OTHER), _CORE),
    Served("core-stopped", (OTHER, MISSING), _CORE, stops="core0"),
    # the scheduler waits for a task of a pool whose only thread waits for another task of it
    Served("scheduler-asks-its-pool", (OTHER, LOCKS), _CORE),
    # worker 0 does not send its answer: the core waits for it, the workers for work
    Served("answer-not-sent", (OTHER, MISSING), (("worker0",),)),
    # the event loop asks its own server, and waits
    Served("api-asks-itself", (OTHER, LOCKS, NETWORK), _API),
    # the event loop's task that hands out answers has ended
    Served("handler-of-answers-has-ended", (OTHER,), _API),
    # requests wait for an asyncio lock that a request that has ended never gave back
    Served("quota-not-given-back", (OTHER, LOCKS), _API, asks="two"),
    # worker 1 waits for a file's lock, held by a downloader that stands still; OTHER was added after the first reading
    Served("download-lock-of-another", (MISSING, INIT, LOCKS, OTHER), (("worker1",), ("other",)), when="start",
           beside="downloader"),
    # worker 1 reads weights from a pipe to which nobody writes
    Served("weights-from-a-pipe", (MISSING, INIT, OTHER), _W1, when="start"),
    # the core asks a licence server, which does not answer, before it is ready
    Served("licence-of-the-core", (OTHER, MISSING, INIT, NETWORK), _CORE, ALONE, when="start"),
    # one of two engines stands in the lock of its scheduler
    Served("one-engine-of-two", (LOCKS, OTHER), _CORE, DP2, asks="four"),
    # the only rank asks a remote cache, which does not answer
    Served("remote-cache-of-the-core", (OTHER, NETWORK), (("worker0",),), ALONE),
    Served("idle", (HEALTHY,), when="", asks=""),
    Served("idle-after-requests", (HEALTHY,), when="", asks="before"),
    Served("idle-stages", (HEALTHY,), (), PP2, when="", asks=""),  # this release cannot serve them on CPUs
    Served("idle-engines", (HEALTHY,), (), DP2, when="", asks="before"),
    Served("idle-alone", (HEALTHY,), (), ALONE, when="", asks="before"),
    Served("under-load", (HEALTHY,), when="", asks="load"),
    Served("one-long-request", (HEALTHY,), when="", asks="long"),
    Served("reads-slowly", (HEALTHY,), when="", asks="slow"),
    # worker 1 checks its weights, which takes minutes
    Served("checks-weights", (HEALTHY,), when="start", asks=""),
    Served("compiles", (HEALTHY,), (), ("--tensor-parallel-size", "2"), when="says",
           says="for the compilation", asks=""),
)  # fmt: skip
