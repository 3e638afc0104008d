"""The thirtieth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-30` alone. Each truth was written before gdbext looked,
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
    # sgl-project/sglang#38284: it does not know of the prefetch, and leaves out the reduction that says how far all are
    "checks-its-prefetch": ((MISMATCH, MISSING), (("1",),)),
    # sgl-project/sglang#24962: the first stage does what it was asked for, which has a barrier, before it sends that on
    "barriers-before-it-sends": ((MISMATCH, MISSING), (("0",),)),
    # NVIDIA-NeMo/Automodel#2468: a batch was too short there, and it has left out one backward pass, with its
    # reductions; the others wait in their last one
    "skips-a-short-batch": ((MISMATCH, MISSING), (("2",),)),
    # flashinfer-ai/flashinfer#3186: each rank tunes its kernel alone. One takes a tactic with more scratch, and
    # registers memory with all for that
    "tunes-on-its-own": ((MISMATCH, MISSING), (("2",),)),
    # ray-project/ray#61720: the function of the user that uploads the checkpoint is slow
    **dict.fromkeys(("uploads-its-checkpoint",)),
}
_MPI = {
    # awslabs/palace#838: the folder was made before it had looked. Its barrier at the end is taken for that of the
    # others, who go on to split the communicator
    "looks-for-the-folder": ((MISMATCH, MISSING), (("1",),)),
    # OPM/opm-simulators#6916: what the first rank alone sends has sums of all ranks in it
    "sums-in-the-first-rank": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    # MP-Gadget/MP-Gadget#278: one rank has much more to do, and a barrier of their own says so
    **dict.fromkeys(("warns-in-its-barrier",)),
}
R, E, T = "thirtieth_ranks", "thirtieth_engines", "thirtieth_threads"
M, N = "thirtieth_mpi", "thirtieth_native"
_CHILD, _SERVER = ("main", "child"), ("main", "server")

THIRTIETH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # AcademySoftwareFoundation/OpenImageIO#1560: tasks of a pool wait for tasks that they gave to it
    Live(N, "waits-in-its-own-pool", EITHER),
    # elastic/elasticsearch#99326: the locks of the segments and of the order of use are taken in two orders
    Live(N, "invalidates-its-cache", (LOCKS,)),
    # softprops/waitout#2: the count has come to nothing, and one waiter is woken
    Live(N, "wakes-one-of-its-waiters", EITHER),
    # SophistSolutions/Stroika#766: it has the value to read, and asks for it to write
    Live(N, "writes-what-it-reads", EITHER),
    # discord/discord-rpc#134: what holds the thread for input and output is ended with the process, and waits for that
    # thread, which has ended before without a word. Doubtful: what ends it is a handler of the program here
    Live(N, "holds-its-thread-to-the-end", (EXIT, *EITHER)),
    # scylladb/scylladb#590: without requests, its shards ask for some all the time
    Live(N, "shards-poll", (HEALTHY,)),
    # awolverp/cachebox#84: a value is dropped with the lock of the cache, its finaliser collects garbage, and the walk
    # through the cache wants that lock. Doubtful: the third word; who waits has the lock of the interpreter as well
    Live(T, "collects-with-its-lock", (LOCKS, OTHER, GIL)),
    # risingwavelabs/risingwave#3196: a task waits for room in a loop that never lets another task run, and the one that
    # makes room is among those. Doubtful: it looks now and then, and may be left open
    Live(T, "waits-without-a-yield", (OTHER, LOCKS, OPEN)),
    # pymssql/pymssql#540: with the lock of the interpreter it waits for the database, and what it says goes through a
    # proxy that is a thread here
    Live(T, "selects-through-its-proxy", (GIL,)),
    # mlflow/mlflow#23466: a hook imports, with the lock of all hooks, what another thread is about to import, and that
    # one wants the lock of the hooks to find it
    Live(T, "hooks-after-an-import", (LOCKS,)),
    # duplicati/duplicati#3084: it reads and compacts what is in the backup, for two days, and shows nothing
    Live(T, "compacts-its-backup", (HEALTHY,)),
    # vllm-project/vllm#3182: a tensor after the other is taken from the file and copied
    Live(T, "loads-tensor-by-tensor", (HEALTHY,), needs="torch"),
    # smg-project/smg#2094: an engine does not take its requests any more, and who sends to it has the lock that the
    # requests to the other one want too
    Live(E, "sends-with-one-lock", (MISSING, *EITHER), (("b",),), ("main", "a", "b"), needs="zmq"),
    # n8n-io/n8n#19084: the result is larger than a pipe, and the process that gave it is waited for first
    Live(E, "waits-for-its-runner", EITHER, (("main",), ("child",), ("main", "child")), _CHILD),
    # a710128/nanovllm-voxcpm#84: the worker was killed, and nobody looks whether it lives. Only the cause counts, as
    # the one to blame is no process any more. As an event loop at rest it may be left open
    Live(E, "asks-a-dead-worker", (OTHER, MISSING, LOCKS, OPEN)),
    # alfredodeza/remoto#62: it reads the output to its end, and the remote side writes into the other pipe
    Live(E, "reads-output-first", EITHER, (("main",), ("tool",), ("main", "tool")), ("main", "tool"), ("main",)),
    # DataDog/datadogpy#836: forked while a thread sends metrics, with the lock of the socket
    Live(E, "sends-metrics", (FORK,), (("child",),), _CHILD),
    # axolotl-ai-cloud/axolotl#2396: the long conversations came to one process, which is all that there is to wait for
    Live(E, "tokenizes-the-long-ones", (HEALTHY,), roles=("main", "worker")),
    # sgl-project/sglang#146: with the first request the kernels are built
    Live(E, "first-request-builds", (HEALTHY,), roles=_SERVER),
    # nerfstudio-project/gsplat#1058: each step waits for an image to be decoded
    Live(E, "decodes-an-image-a-step", (HEALTHY,), roles=("main", "worker"), needs="torch"),
    # gauteh/lieer#8: there were too many requests, and it waits for longer each time
    Live(E, "backs-off", (HEALTHY,), roles=_SERVER),
    # confluentinc/ksql#5386: the client is slow, and who writes to it waits until there is room
    Live(E, "writes-to-a-slow-client", (HEALTHY,), roles=_SERVER),
)  # fmt: skip

THIRTIETH_BY_NAME: Dict[str, Live] = {row.id: row for row in THIRTIETH}
