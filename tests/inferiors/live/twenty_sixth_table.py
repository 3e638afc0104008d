"""The twenty-sixth set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-26` alone. Each truth was written before gdbext looked,
and who wrote them did not know the rules. Each program names its report.
"""

from __future__ import annotations

from typing import Dict, Tuple

from tests.inferiors.live.second_table import EITHER
from tests.inferiors.live.table import (
    EXIT,
    GIL,
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

_JOBS = {
    # TheHPXProject/hpx#3794: two ranks have a barrier whose root is always the first rank, which does not take part;
    # they wait for what the root would register. Doubtful: whom to blame, and the name of it
    "barrier-of-some-localities": ((MISMATCH, INIT, MISSING), (("0",), ("1", "2"))),
    # sgl-project/sglang#33614: it has accepted one more of the drafted tokens than the others and is a step ahead
    "verifies-drafted-tokens": ((MISMATCH, MISSING), (("1",),)),
    # huggingface/transformers#17478: its own measure got no better, so that it stops and is in the barrier of the end
    "stops-by-its-own-measure": ((MISMATCH, MISSING), (("2",),)),
    # NVIDIA/TensorRT-LLM#16170: it has the interpreter's lock and waits for its device, which waits for the next stage,
    # which waits for what a thread of it would send with that lock. Doubtful: whether that is a rank that is missing
    "relays-sampled-states": ((GIL, MISSING), (("0",),)),
    # rwth-i6/returnn#1638: one rank copies its files to its own disk, the others have theirs and wait in the first step
    **dict.fromkeys(("caches-files-of-each-node",)),
}
_MPI = {
    # firemodels/fds#8698: it has got an error for one of its meshes and returned to the end; the others add up
    "reads-the-ducts-of-meshes": ((MISSING, MISMATCH, EXIT), (("1",),)),
    # Nek5000/parRSB#44: it has left a loop by a break, and the others are in the next turn
    "refines-its-vector": ((MISMATCH, MISSING), (("2",),)),
    # JohannesBuchner/UltraNest#18: the first rank has the points in the order in which they came, and decides
    # otherwise than the others. Doubtful: whom to blame
    "samples-live-points": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    # geoschem/GCHP#52: one rank has most of the chemistry to compute, the others wait for it in a barrier
    **dict.fromkeys(("chemistry-by-day-and-night",)),
}
R, E, T = "twenty_sixth_ranks", "twenty_sixth_engines", "twenty_sixth_threads"
M, N = "twenty_sixth_mpi", "twenty_sixth_native"
_WORKERS = ("main", "worker0", "worker1")

TWENTY_SIXTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # ithewei/libhv#736: told to stop without the lock, between a worker's look at it and its wait; it joins the worker
    Live(N, "stops-its-pool", (*EITHER, EXIT)),
    # cloudius-systems/osv#1502: one has the lock of all entries and wants that of a node, and the other way round
    Live(N, "looks-up-names", (LOCKS,)),
    # vsg-dev/VulkanSceneGraph#164: the last count was taken between a look at it and the wait, and said to nobody
    Live(N, "compiles-on-all-threads", EITHER),
    # ml-explore/mlx#1738: at the exit a task is given to a thread that has ended before, and waited for
    Live(N, "streams-end-with-the-process", (EXIT, *EITHER)),
    # loda-lang/loda-cpp#206: an expensive search that takes minutes
    Live(N, "minimizes-a-program", (HEALTHY,)),
    # files-community/Files#10774: a large file is copied, and nothing is said
    Live(N, "copies-a-large-file", (HEALTHY,)),
    # django/asgiref#562: a thread wants a coroutine to be run in a loop that has stopped, and the main one waits for it
    Live(T, "worker-outlives-its-loop", EITHER),
    # rajfirke/provena#42: the handler of a signal wants the lock that the thread it interrupted has
    Live(T, "flushes-when-told-to-end", (LOCKS,)),
    # pytgcalls/ntgcalls#62: one has the interpreter's lock and wants that of the calls, and the other way round
    Live(T, "beside-a-live-call", (GIL,)),
    # pytorch/pytorch#56786: a reference is given up with the interpreter's lock and wants that of a pool, whose thread
    # has it and wants the interpreter's lock
    Live(T, "gives-up-a-reference", (GIL,)),
    # aogburn/yatda#20: the threads of a pool that have no task
    Live(T, "default-tasks-at-rest", (HEALTHY,)),
    # vladmandic/sdnext#922: the sum of a model's file is computed before it is loaded for the first time
    Live(T, "sums-up-its-model", (HEALTHY,)),
    # chainer/chainer#1358: a worker has put more into a queue than anybody takes, and is joined
    Live(E, "iterator-is-finalized", EITHER, (("main",), ("worker",), ("main", "worker")), ("main", "worker")),
    # FujitsuPolycom/sparkring#224: the answer to a step was lost on its way; the engine waits for it and the workers
    # for the next step. Doubtful: whom to blame, so that only the cause counts
    Live(E, "steps-with-a-connector", (OTHER, MISSING, LOCKS), (), _WORKERS),
    # zeromq/rbzmq#2: its server was killed, and it waits for the answer. Doubtful: whether that can be seen from it;
    # whom to blame is no process any more, so that only the cause counts
    Live(E, "asks-its-server", (OTHER, MISSING, LOCKS, OPEN), needs="zmq"),
    # muccg/yabi#262: it waits for the end of a command, which writes into a full pipe that nobody reads
    Live(E, "stages-in-by-a-command", EITHER, (("main",), ("command",), ("main", "command")), ("main", "command"),
         ("main",)),
    # modelscope/modelscope#1778: it looks again and again whether a file is gone that a killed process has left
    Live(E, "downloads-one-at-a-time", (*EITHER, MISSING)),
    # micheletufano/DeepMutation#4: commands that compile and test are slow
    Live(E, "tests-its-mutants", (HEALTHY,), roles=("main", "command")),
    # ray-project/ray#7608: there is much to decide between two steps of 4000 trials, and their actors wait
    Live(E, "thousands-of-trials", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
    # jundot/omlx#2334: a large engine is unloaded, which takes longer than a watch allows for
    Live(E, "unloads-its-engine", (HEALTHY,), roles=("main", "engine")),
    # DocNow/twarc#584: it sleeps until the service takes requests again, a quarter of an hour
    Live(E, "waits-for-the-next-window", (HEALTHY,), roles=("main", "service")),
)  # fmt: skip

TWENTY_SIXTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_SIXTH}
