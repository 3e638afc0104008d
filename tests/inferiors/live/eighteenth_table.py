"""The eighteenth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-18` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
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
    OPEN,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    # Lightning-AI/pytorch-lightning#6430
    "failed-rank-saves-first": ((MISMATCH, MISSING), (("1",),)),
    # microsoft/Tutel#182
    "one-rank-has-the-shorter-text": ((MISMATCH, MISSING), (("1",),)),
}
_MPI = {
    # claudiopica/HiRep#2: it is at its end, and the others go on with the work
    "rank-without-its-file-finalizes": ((MISSING, EXIT, MISMATCH), (("2",),)),
}
R, E, T = "eighteenth_ranks", "eighteenth_engines", "eighteenth_threads"
M, N = "eighteenth_mpi", "eighteenth_native"
_CHILD = ("main", "child")
_SERVER = ("main", "server")
_ENGINE = ("main", "engine")
_STORE = ("main", "store")
_BROKER = ("main", "broker")

EIGHTEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # X-Profiler/xprofiler#50
    Live(N, "returns-early-with-the-mutex", EITHER),
    # gperftools/gperftools#178
    Live(N, "allocates-between-fork-and-exec", (FORK,), (("child",),), _CHILD),
    # cloudius-systems/osv#1480
    Live(N, "wakes-nobody-that-it-has-not-seen", EITHER),
    # ARM-software/synchronization-benchmarks#62: one thread is in a barrier that the other one is through with
    Live(N, "both-reset-the-barrier", (*EITHER, MISSING)),
    # langchain-ai/langgraph#8558: natively an event loop at rest
    Live(T, "write-while-the-listing-is-paused", (*EITHER, OPEN)),
    # tornadoweb/tornado#924
    Live(T, "result-in-the-loop-that-would-set-it", EITHER),
    # Delgan/loguru#390
    Live(T, "child-ended-while-the-log-was-written", (LOCKS,)),
    # Opentrons/opentrons#12970
    Live(T, "exit-handler-after-the-threads", (EXIT, *EITHER)),
    # ecmwf/fdb#292
    Live(T, "handshake-through-a-thread-of-its-own", (GIL,)),
    # pytorch/pytorch#1838
    Live(E, "transform-threads-before-the-fork", (FORK,), (("worker",),), ("main", "worker"), needs="torch"),
    # vllm-project/vllm#45388: natively an engine that has nothing to do, and who waits for its answers
    Live(E, "head-of-queue-needs-what-others-hold", (OTHER, LOCKS, OPEN), (("engine",), _ENGINE), _ENGINE,
         needs="zmq"),
    # mars-project/mars#2170: natively an event loop at rest, and who asked it
    Live(E, "calls-wait-for-a-call-behind-them", (*EITHER, OPEN), (("store",), _STORE), _STORE, needs="ray"),
    # allenai/open-instruct#1454
    Live(E, "health-asked-before-the-broadcast", (OTHER, LOCKS, MISSING), (), ("main", "engine", "trainer"),
         needs="ray"),
    # bnb-chain/reth-bsc#476
    Live(E, "pool-waits-for-its-own-reads", EITHER, (("server",), _SERVER), _SERVER),
    # rabbitmq/rabbitmq-amqp-java-client#328
    Live(E, "deliveries-into-a-full-pool", EITHER, (("main",), _BROKER), _BROKER),
    # huggingface/huggingface_hub#3944: who has it was killed
    Live(E, "soft-lock-of-a-node-that-is-gone", (*EITHER, MISSING)),
    # HewlettPackard/foedus_code#136
    Live(E, "style-errors-that-nobody-reads", EITHER, (_CHILD, ("main",), ("child",)), _CHILD),
    # gchq/sleeper#4378
    Live(E, "builds-in-quiet-mode", (HEALTHY,), roles=("main", "build")),
    # localdesktop/localdesktop.github.io#172
    Live(E, "unpacks-after-the-download", (HEALTHY,)),
    # BBVA/qed#118
    Live(E, "rebuilds-its-cache-before-it-listens", (HEALTHY,), roles=_SERVER),
    # mgm3746/garbagecat#190
    Live(E, "reads-a-large-log", (HEALTHY,)),
    # camunda/camunda#2430
    Live(E, "workers-in-long-polling", (HEALTHY,), roles=("main", "a", "b")),
    # RipMeApp/ripme#1844
    Live(E, "sleeps-for-the-rate-limit", (HEALTHY,), roles=("main", "site")),
    # awslabs/libfabric-ci-scripts#6
    Live(E, "waits-for-an-instance-to-boot", (HEALTHY,), roles=("main", "instance")),
    # arvidn/libtorrent#708
    Live(E, "moves-a-file-to-a-slow-disk", (HEALTHY,)),
    # RIPE-NCC/whois#192
    Live(E, "collects-a-large-heap", (HEALTHY,), roles=_SERVER),
    # margince/margince#302
    Live(E, "index-build-holds-off-the-writers", (HEALTHY,), roles=("main", "migration")),
)  # fmt: skip

EIGHTEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in EIGHTEENTH}
