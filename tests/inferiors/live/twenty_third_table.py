"""The twenty-third set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-23` alone. Each truth was written before gdbext looked,
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
    # microsoft/PyMarlin#80: it has fewer batches, and gathers the losses; the others reduce gradients
    "shards-of-unlike-length": ((MISMATCH, MISSING), (("2",),)),
    # pytorch/pytorch#126616: no token of it goes to the last expert, which the others gather
    "experts-gathered-when-used": ((MISMATCH, MISSING), (("1",),)),
    # pytorch/PiPPy#1000: a batch of messages goes when all its peers are there, and three batches wait in a ring.
    # Doubtful: whom to blame, so that only the cause counts
    "batched-for-all-peers": ((MISMATCH, OTHER, LOCKS, MISSING), ()),
    # karpathy/nanochat#722: one rank has no kernels in its cache and compiles them, the others reduce.
    # deepspeedai/DeepSpeed#6834: each rank computes its part of the optimizer for ten seconds
    **dict.fromkeys(("kernels-cached-on-some", "optimizer-beside-the-accelerator")),
}
_MPI = {
    # project-asgard/asgard#220: a condition leaves out a message of the first rank, and the second one waits for it
    "message-by-a-condition": ((MISMATCH, MISSING), (("0",), ("1",), ("0", "1"))),
    # Unidata/netcdf-c#448: it has no rows to write, and closes the file; each row of the others is a collective
    "rows-with-a-stride": ((MISMATCH, MISSING), (("2",),)),
    # libMesh/libmesh#1468: what would be done once is done once for each rank
    **dict.fromkeys(("indices-for-each-rank",)),
}
R, E, T = "twenty_third_ranks", "twenty_third_engines", "twenty_third_threads"
M, N = "twenty_third_mpi", "twenty_third_native"
_CHILD = ("main", "child")
_SERVER = ("main", "server")
_WORKER = ("main", "worker")

TWENTY_THIRD: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # vllm-project/vllm#39366: it has told the coordinator to wake the engines, which wakes all but it
    Live(R, "wakes-the-others", (MISSING, MISMATCH, OTHER), (("0",), ("coordinator",), ("0", "coordinator")),
         ("0", "1", "coordinator"), ("0", "1"), "ranks", "torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # bshoshany/thread-pool#108: a worker was told to end between its look at the word and its wait
    Live(N, "told-before-the-wait", (*EITHER, EXIT)),
    # alexcrichton/dlmalloc-rs#22: a thread had the allocator's lock when the process was forked
    Live(N, "allocator-at-fork", (FORK,), (("child",),), _CHILD),
    # cmuparlay/parlaylib#100: who unloads the library has the loader's lock and joins a worker that wants it
    Live(N, "scheduler-of-a-library", (*EITHER, EXIT)),
    # bit-hack/nano3d#2: the pipe is full, and its reader is the same thread; it waits by running
    Live(N, "bins-in-one-thread", EITHER),
    # dotnet/corefx#41200: an expression with nested repeats is tried in all ways, minutes for each line.
    # Doubtful: with a longer line nobody would live to see its end
    Live(N, "nested-repeats", (HEALTHY,)),
    # tensorchord/pgvecto.rs#618: an index is built for a day
    Live(N, "index-of-many-vectors", (HEALTHY,)),
    # encode/httpcore#830: a cancelled request is still in the line and gets the connection; an event loop at rest
    Live(T, "line-for-connections", (*EITHER, OPEN)),
    # equinor/ert#3450: it has the interpreter's lock and waits for futures, one of which logs by Python
    Live(T, "loads-realizations", (GIL,)),
    # grpc/grpc#17214: at the exit a tag is put into a queue whose thread has ended before
    Live(T, "server-left-by-an-error", (*EITHER, EXIT)),
    # box/ClusterRunner#48: the handler logs while it begins a new file, with its own lock
    Live(T, "summary-in-a-new-log", EITHER),
    # brianmhess/cassandra-loader#92: the main thread ended by an error, and nobody told the pool's threads to end
    Live(T, "unloads-a-table", (*EITHER, EXIT)),
    # certego/BuffaLogs#364: it tries to connect again, and waits twice as long each time
    Live(T, "tests-with-retries", (HEALTHY,)),
    # pypy/pypy#470: it reads the output to its end, and the child writes errors into a full pipe
    Live(E, "output-before-errors", EITHER, (("main",), ("child",), _CHILD), _CHILD, ("main",)),
    # wilhelm-lab/oktoberfest#372: a worker was killed, and its result is waited for, for three hours
    Live(E, "pool-for-large-spectra", (OTHER, MISSING)),
    # dask/distributed#2362: a worker died with a lock that the scheduler keeps for it, and another one wants it.
    # Doubtful: whom to blame, as who has it is not a process any more, so that only the cause counts
    Live(E, "lock-at-the-scheduler", (MISSING, OTHER, LOCKS), (), ("main", "scheduler", "b"), ("main", "b")),
    # vllm-project/vllm#36958: a notice has a name that this prefill worker does not know, and it keeps all its blocks.
    # Doubtful: whether to blame who waits for blocks or who sent the name
    Live(E, "blocks-freed-by-notice", (OTHER, LOCKS, MISSING), (("prefill1",), ("decode",), ("prefill1", "decode")),
         ("main", "prefill0", "prefill1", "decode")),
    # ohdearquant/lionagi#1440: the controller waits for a new worker to end, which waits for tests.
    # Doubtful: the controller gave it none, but each of them waits for the other
    Live(E, "replaces-a-worker", (*EITHER, MISSING), (("main",), ("main", "replacement"), ("replacement",)),
         ("main", "replacement")),
    # lllyasviel/Fooocus#238: a model comes from a slow disk for half an hour, and the bar does not move
    Live(E, "models-on-a-slow-disk", (HEALTHY,), roles=_WORKER),
    # celery/billiard#158: a worker of a pool waits for more work, as there is none
    Live(E, "worker-without-tasks", (HEALTHY,), roles=_WORKER),
    # aio-libs/aiohttp#2200: a server that is told to end waits for its open connections, for some time.
    # Doubtful: nothing goes on until that time is over
    Live(E, "drains-its-connections", (HEALTHY,), roles=_SERVER),
    # vectorize-io/hindsight#4374: models are warmed up before the server takes connections
    Live(E, "warms-up-first", (HEALTHY,), roles=_SERVER),
)  # fmt: skip

TWENTY_THIRD_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_THIRD}
