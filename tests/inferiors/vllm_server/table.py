"""Servers of vLLM, each with its truth, written before gdbext looked at them.

Roles: `api` (the HTTP server, or the parent of several, `api0` and `api1`), `coordinator` (of replicas), `core0`,
`core1` (the engine cores), `worker0`, `worker1` (the ranks), `other` (beside the server). `options` are vLLM's own.
`culprits` as in `tests.inferiors.live.table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from tests.inferiors.engine_server.table import NETWORK
from tests.inferiors.engine_server.table import Served as Row
from tests.inferiors.live.table import FORK, HEALTHY, INIT, LOCKS, MISMATCH, MISSING, ORDER, OTHER

TP2 = ("--tensor-parallel-size", "2", "--enforce-eager")
PP2 = ("--pipeline-parallel-size", "2", "--enforce-eager")
DP2 = ("--data-parallel-size", "2", "--enforce-eager")
ALONE = ("--enforce-eager",)
SERVERS = ("--api-server-count", "2", "--enforce-eager")
LOCKSTEP = (*DP2, "--api-server-count", "1", "--hf-overrides", '{"num_local_experts": 4}')
"""Replicas that go in step as if they had experts, of which none are left in the model: CPUs cannot share these."""


@dataclass(frozen=True)
class Served(Row):
    options: Tuple[str, ...] = TP2


_W0 = (("worker0",),)
_W1 = (("worker1",),)
_CORE = (("core0",),)
_API = (("api",),)
_EITHER_RANK = (("worker1",), ("worker0",), ("worker0", "worker1"))
_REPLICA1 = (("core1",), ("worker1",), ("core1", "worker1"))

_FIRST: Tuple[Served, ...] = (
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

# The numbers are those of the reports to vLLM that a row is modelled after.
SECOND: Tuple[Served, ...] = (
    # 47958: the thread of the core that receives requests makes room in a cache of pictures for ever; the main thread
    # waits for requests
    Served("pictures-make-room", (OTHER,), _CORE, ALONE),
    # 18304: one of two HTTP servers looks for calls of tools in an answer, in its event loop, by a pattern that takes
    # for ever
    Served("calls-in-an-answer", (OTHER,), (("api0",),), SERVERS, asks="on"),
    # 43620: worker 1 and a thread of its wait under one condition for pages of a prefiller; the one that is woken when
    # the pages for the other have come is the wrong one
    Served("pages-of-a-prefiller", (MISSING, LOCKS, OTHER), _W1),
    # 45388: blocks are held by a load that has landed, of a request that the scheduler does not reach, because the one
    # before it finds no blocks
    Served("blocks-of-landed-loads", (OTHER,), _CORE),
    # 45172: a thread of the core compiles a grammar with exponentially many states; the request waits for it
    Served("states-of-a-grammar", (OTHER,), _CORE, asks="schema"),
    # 6700: the first message of the core to worker 1 was sent before it listened, and is lost: worker 1 waits for it,
    # the core for worker 1
    Served("first-word-to-readers", (INIT, MISSING, OTHER), (("worker1",), ("core0",), ("core0", "worker1")),
           when="start"),
    # 16334: the only rank opens a rendezvous of two replicas, of which nobody starts the other
    Served("rendezvous-of-embedders", (INIT, MISSING, OTHER), _W0, ALONE, when="start"),
    # 19316: the core is forked from a server that has used several threads, and converts pictures with several.
    # Doubtful: the report names the conversion, and one thread as its cure, not the fork
    Served("converts-pictures", (FORK, INIT, OTHER, LOCKS), _CORE, ALONE, when="start"),
    # 53960: the only rank warms up and waits for rows of a thread that loads them; the thread waits for an event that
    # the next order, which is behind the first, has taken over
    Served("rows-of-an-offloader", (LOCKS, OTHER, INIT, MISSING), _W0, ALONE, when="start"),
    # 24382: a request has the name of one that was given up; the core ends it in place of that one, says nothing, and
    # the server waits for its answer. Doubtful: no process stands anywhere
    Served("same-name-again", (OTHER,), (("api",), ("core0",), ("api", "core0"))),
    # 32418: rank 0 has moved an expert, and its thread waits for the next one; rank 1 found the lock taken and goes on
    # to the next step: they meet in the same group in different collectives
    Served("experts-on-the-move", (ORDER, MISMATCH, MISSING), _EITHER_RANK),
    # 39366: replica 1 meets for new weights, when replica 0 has begun with a request that came while it paused
    Served("weights-for-a-wave", (MISMATCH, ORDER, MISSING), (*_REPLICA1, ("core0",), ("core0", "core1")), LOCKSTEP,
           asks="replica"),
    # 28224: replica 1, without requests, has made a dummy batch less: it agrees on what is left to do, while replica 0
    # agrees on the batch
    Served("batches-of-dummies", (MISMATCH, ORDER, MISSING), (*_REPLICA1, ("core0", "core1")), LOCKSTEP,
           asks="replica"),
    # 54762: the coordinator does not tell replica 1 of the first request, for which replica 0 waits in the batch
    Served("wave-not-told", (MISSING, MISMATCH, OTHER), (*_REPLICA1, ("coordinator",)), LOCKSTEP, asks="replica"),
    Served("servers-side-by-side", (HEALTHY,), (), SERVERS, when="", asks="load"),
    # replica 1 makes dummy batches
    Served("replicas-in-step", (HEALTHY,), (), LOCKSTEP, when="", asks="long"),
    Served("answers-by-a-schema", (HEALTHY,), when="", asks="schemas"),
    Served("long-questions", (HEALTHY,), (), ALONE, when="", asks="prompts"),
    # put to sleep by its operator, with nothing to do
    Served("sleeps-between-shifts", (HEALTHY,), when="", asks="sleep"),
    # the ranks warm up, for minutes
    Served("warms-up-shapes", (HEALTHY,), when="start", asks=""),
)  # fmt: skip

SERVED = _FIRST + SECOND
