"""Servers of SGLang, each with its truth, written before gdbext looked at them.

Roles: `api` (the HTTP server with its TokenizerManager), `tp0`, `tp1` (the schedulers, which are the ranks; `dp0` and
`pp0` where they are replicas or stages), `controller` (hands requests to replicas), `detokenizer`, `other` (beside the
server). `culprits` as in `tests.inferiors.live.table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from tests.inferiors.engine_server.table import NETWORK
from tests.inferiors.engine_server.table import Served as Row
from tests.inferiors.live.table import HEALTHY, INIT, LOCKS, MISMATCH, MISSING, ORDER, OTHER

TP2 = ("--tp-size", "2", "--sleep-on-idle")
BUSY = ("--tp-size", "2")
ALONE = ("--tp-size", "1", "--sleep-on-idle")
REPLICAS = ("--dp-size", "2")
STAGES = ("--pp-size", "2")
WORKERS = ("--tp-size", "2", "--tokenizer-worker-num", "2")


@dataclass(frozen=True)
class Served(Row):
    options: Tuple[str, ...] = TP2


_TP0 = (("tp0",),)
_TP1 = (("tp1",),)
_API = (("api",),)
_DETOKENIZER = (("detokenizer",),)
_CONTROLLER = (("controller",),)
_EITHER_RANK = (("tp1",), ("tp0",), ("tp0", "tp1"))
_EITHER_STAGE = (("pp0",), ("pp1",), ("pp0", "pp1"))

_FIRST: Tuple[Served, ...] = (
    # a thread of rank 1 has the pages and wants the statistics; the scheduler there has these and wants the pages
    Served("pages-and-statistics", (LOCKS, MISSING), _TP1),
    # rank 1 asks a remote store of keys and values, which does not answer, before a batch
    Served("remote-store-of-one-rank", (MISSING, NETWORK), _TP1),
    # rank 1 leaves one all-reduce out
    Served("small-reductions", (MISMATCH, MISSING), _TP1),
    # rank 1 matches a pattern with nested repeats, which takes for ever, before it samples
    Served("pattern-of-one-rank", (MISSING,), _TP1),
    # each rank meets the other in one group for each tenant, rank 1 in another order
    Served("tenants-meet", (ORDER, MISMATCH), (("tp0", "tp1"), ("tp0",), ("tp1",))),
    # rank 0 notes requests in a bounded queue, before it shares them; the thread that empties the queue has ended
    Served("journal-of-requests", (MISSING, OTHER), _TP0),
    # the detokenizer takes a lock that it has already
    Served("words-of-the-detokenizer", (LOCKS, OTHER), _DETOKENIZER),
    # the detokenizer writes into a pipe that is full; its reader stands still
    Served("texts-for-a-shipper", (OTHER,), (("detokenizer",), ("other",), ("detokenizer", "other")), beside="shipper"),
    # the detokenizer does not pass texts on: all wait for each other's messages
    Served("moderated-texts", (OTHER,), _DETOKENIZER),
    Served("detokenizer-stopped", (OTHER,), _DETOKENIZER, stops="detokenizer"),
    # the event loop asks its own server, and waits
    Served("model-of-a-request", (OTHER, LOCKS, NETWORK), _API),
    # requests wait for an asyncio lock that a request that has gone on never gave back
    Served("quota-of-requests", (OTHER, LOCKS), _API, asks="two"),
    # the event loop's task that hands out answers has ended
    Served("answers-with-a-deadline", (OTHER,), _API),
    # a request waits for a task of a pool whose only thread waits for another task of it
    Served("templates-in-a-pool", (OTHER, LOCKS), _API),
    # rank 1 waits for a file's lock, held by a downloader that stands still
    Served("shared-download", (MISSING, INIT, LOCKS, OTHER), (("tp1",), ("other",)), when="start",
           beside="downloader"),
    # the detokenizer asks a licence server, which does not answer, before it is ready; the rest has started
    Served("licence-of-the-detokenizer", (OTHER, INIT, NETWORK), _DETOKENIZER, when="says", says="Uvicorn running"),
    Served("idle", (HEALTHY,), when="", asks=""),
    Served("idle-after-requests", (HEALTHY,), when="", asks="before"),
    Served("idle-alone", (HEALTHY,), (), ALONE, when="", asks="before"),
    # ranks that poll for requests all the time
    Served("idle-and-busy", (HEALTHY,), (), BUSY, when="", asks="before"),
    Served("under-load", (HEALTHY,), when="", asks="load"),
    Served("one-long-request", (HEALTHY,), when="", asks="long"),
    Served("reads-slowly", (HEALTHY,), when="", asks="slow"),
    # rank 1 converts its weights, which takes minutes
    Served("converts-weights", (HEALTHY,), when="start", asks=""),
)  # fmt: skip

# In configurations of other users: ranks that poll all the time, as they do by default, replicas, stages, several HTTP
# servers. The numbers are those of the reports to SGLang that a row is modelled after.
SECOND: Tuple[Served, ...] = (
    # 30760: rank 0 agrees on what has been fetched for a waiting request, rank 1 has no room and leaves that out
    Served("progress-of-fetches", (MISMATCH, MISSING, ORDER), _EITHER_RANK, BUSY),
    # 38472: rank 1 waits for pages of a thread that loads them; the thread waits for the next order, and has sent none
    Served("pages-of-a-loader", (MISSING, LOCKS, OTHER), _TP1, BUSY),
    # 6188: a grammar that failed has not given its slot back: the next waits for one, in a pool, on both ranks
    Served("slots-of-grammars", (OTHER, LOCKS), _EITHER_RANK, BUSY, asks="two"),
    Served("rank-stopped", (MISSING, OTHER), _TP1, BUSY, stops="tp1"),
    # 10856: a thread of the detokenizer has its beats and wants its texts; the main thread has these and wants beats
    Served("beats-of-the-detokenizer", (LOCKS, OTHER), _DETOKENIZER, BUSY),
    # 28156: the event loop waits for a file's lock; a thread of its process has it and waits for the loop
    Served("figures-of-the-server", (OTHER, LOCKS), _API, BUSY),
    # 22754: a request that reads the weights waits until nobody does, to write them
    Served("weights-of-a-request", (OTHER, LOCKS), _API, BUSY, asks="two"),
    # 33858: the detokenizer drops an answer to one of several HTTP servers: all wait for each other's messages
    Served("answers-for-workers", (OTHER,), _DETOKENIZER, WORKERS),
    # 26058: the controller asks an adviser, which does not answer, before it hands a request to a replica
    Served("advised-replicas", (OTHER, NETWORK), _CONTROLLER, REPLICAS),
    # 34582
    Served("controller-stopped", (OTHER,), _CONTROLLER, REPLICAS, stops="controller"),
    # 4618: a replica is gone, killed as for want of memory; the controller goes on to hand requests to it
    Served("replica-without-memory", (OTHER, MISSING), (("dp1",), ("controller",)), REPLICAS, asks="four"),
    # 24962: stage 0 meets stage 1 before it passes the request on, for which stage 1 waits
    Served("stages-meet", (MISMATCH, MISSING, ORDER), _EITHER_STAGE, STAGES),
    Served("polls-under-load", (HEALTHY,), (), BUSY, when="", asks="load"),
    Served("polls-one-long-request", (HEALTHY,), (), BUSY, when="", asks="long"),
    # rank 0 compiles kernels, which takes minutes
    Served("compiles-kernels", (HEALTHY,), (), BUSY, when="start", asks=""),
    Served("replicas-idle", (HEALTHY,), (), REPLICAS, when="", asks="before"),
    Served("replicas-under-load", (HEALTHY,), (), REPLICAS, when="", asks="load"),
    Served("workers-under-load", (HEALTHY,), (), WORKERS, when="", asks="load"),
    Served("stages-one-long-request", (HEALTHY,), (), STAGES, when="", asks="long"),
)  # fmt: skip

SERVED = _FIRST + SECOND
