"""The thirty-second set of live programs: each imitates one public report, numbers that four divides with a rest of two
only. Each search of reports gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-32` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
    FORK,
    HEALTHY,
    INIT,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    OTHER,
    Live,
    _ranks,
)

_FOUR = ("0", "1", "2", "3")
_JOBS = {
    # intel/ipex-llm#3626: it has one batch more than the others, whose epoch has ended and who gather their losses
    "has-one-batch-more": ((MISMATCH, MISSING), (("2",),)),
    # Lightning-AI/pytorch-lightning#19106: it has logged one thing more than the others, and each is reduced by itself
    "logs-one-thing-more": ((MISMATCH, MISSING), (("1",),)),
    # instructlab/training#566: the first rank saves for long, and the others are in the next step already
    # sgl-project/sglang#6830: compiling and capturing for each size takes tens of minutes at the start
    **dict.fromkeys(("saves-while-others-go-on", "captures-each-size")),
}
_MPI = {
    # OPM/opm-simulators#7190: whether to update the network once more is each rank's own word, and one does so alone
    "updates-its-network-again": ((MISMATCH, MISSING), (("1",),)),
    # Chengcheng-Xiao/mpiPyMC#2: the rank that collects has a part as well, and sends it to itself before it receives
    "sends-to-itself": ((MISMATCH, *EITHER, MISSING), (("0",),)),
    # libMesh/libmesh#2706: to prepare a large mesh, which each rank has as a whole, takes long
    **dict.fromkeys(("prepares-a-large-mesh",)),
}
R, E, T = "thirty_second_ranks", "thirty_second_engines", "thirty_second_threads"
M, N = "thirty_second_mpi", "thirty_second_native"
_CHILD = ("main", "child")

THIRTY_SECOND: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # pytorch/pytorch#23074: on each node the ranks begin with 0, so that nobody is rank 2 or 3, whom all wait for
    Live(R, "counts-ranks-by-node", (INIT, MISSING), (("2", "3"), ("2",), ("3",)), _FOUR, how="ranks", needs="torch"),
    # pytorch/pytorch#49846: it says that it is one of two processes, and is started alone
    Live(R, "starts-from-a-notebook", (INIT, MISSING), needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # hpc/libcircle#10: the first rank takes its partner for nobody, and says at once that all is done; another rank
    # sends work to one that has heard of that. Doubtful: whom to blame, as the one who said so too early has gone on
    Live(M, "sends-work-after-the-end", (MISMATCH, MISSING), (("0",), ("1",), ("2",), ("1", "2")), _FOUR, how="mpirun",
         needs="mpi4py"),
    # stephenberry/glaze#1218: who waits has seen that tasks are left, and is told that none is before it sleeps
    Live(N, "shows-what-is-left", EITHER),
    # att/ast#490: a signal comes inside the allocator, and what handles it allocates
    Live(N, "traps-a-signal", EITHER),
    # log4cplus/log4cplus#102: the pool of threads is ended twice, the second time from a destructor at the exit, and
    # waits for threads that have ended before
    Live(N, "ends-its-pool-twice", (EXIT, *EITHER)),
    # iowarp/clio-core#142: with periodic tasks alone, its workers look for tasks all the time
    Live(N, "polls-its-lanes", (HEALTHY,)),
    # sleuthkit/sleuthkit#2402: some take a connection before the lock, one takes it after that, and the pool is empty
    Live(T, "caches-host-addresses", EITHER),
    # agronholm/anyio#398: a task is cancelled as it gets the lock, and nobody gives that back. As an event loop at rest
    # it may be left open
    Live(T, "cancels-a-request", (*EITHER, OPEN)),
    # dice-group/gerbil#350: an exception comes between taking and giving back a permit of a semaphore
    Live(T, "limits-its-retrievals", EITHER),
    # apache/maven-indexer#314: those who read have ended by an exception, and one still fills what they read
    Live(T, "reads-an-index", EITHER),
    # korma/Korma#130: a transaction in a transaction takes another connection, which waits for the first one. Doubtful:
    # the database asks again and again, with naps
    Live(T, "nests-its-transactions", EITHER),
    # zeromq/pyzmq#1282: both sides have a context of their own, so that they never meet. As an event loop at rest it
    # may be left open
    Live(T, "connects-inside-itself", (OTHER, LOCKS, OPEN), needs="zmq"),
    # aws-samples/hpc-cost-simulator#82: many millions of jobs are analysed, and nothing is said about that
    Live(T, "models-a-cluster", (HEALTHY,)),
    # ml-explore/mlx-lm#674: a server without requests asks its queue for one all the time
    Live(T, "asks-its-queue", (HEALTHY,)),
    # pgvector/pgvector#450: the index is vacuumed for ten hours, by a budget that makes it nap
    Live(T, "vacuums-by-a-budget", (HEALTHY,)),
    # ServiceNow/Fast-LLM#202: the data are prepared for many minutes
    Live(T, "prepares-its-data", (HEALTHY,)),
    # brooklyncentral/clocker#382: the daemon has the file of the lock open too, and so it is never given back
    Live(E, "configures-its-proxy", (LOCKS, OTHER, MISSING), (("daemon",),), ("main", "daemon"), ("main",)),
    # michaelforney/samurai#94: there was a token, and another process took it first; until it gets one it does not see
    # that its job has ended, and does not give back the token of that, for which the other one waits
    Live(E, "builds-with-tokens", (*EITHER, MISSING), (("main",), ("main", "make")), ("main", "make")),
    # vmware-archive/runtimes#94: forked while a thread writes to the standard output, with the lock of that
    Live(E, "logs-its-requests", (FORK,), (("child",),), _CHILD),
    # vllm-project/vllm#21538: the word that all are ready was published before the engine had subscribed. Doubtful:
    # whom to blame, as the engine came late
    Live(E, "publishes-that-all-are-ready", (*EITHER, MISSING), (("main",), ("main", "engine")), ("main", "engine"),
         needs="zmq"),
    # johnolafenwa/DeepStack#82: without requests it asks for one again and again
    Live(E, "asks-for-images", (HEALTHY,), roles=("main", "detector")),
    # ptrkrysik/gr-gsm#526: the library is compiled for a very long time, without a word
    Live(E, "compiles-its-radio", (HEALTHY,), roles=("main", "builder")),
)  # fmt: skip

THIRTY_SECOND_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRTY_SECOND}
