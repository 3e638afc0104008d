"""The twenty-fifth set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-25` alone. Each truth was written before gdbext looked,
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
    INIT,
    LOCKS,
    MISMATCH,
    MISSING,
    OPEN,
    ORDER,
    OTHER,
    Live,
    _ranks,
)

_JOBS = {
    # sgl-project/sglang#30760: it has room for one more request and asks all about it; the others are a step further
    "checks-what-was-fetched": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    # KempnerInstitute/KempnerForge#104: a thread gathers the plans and the main one is in a barrier, in one group; the
    # first rank began with the plans, the others with the barrier. Doubtful: whom to blame, and the name of it
    "saves-beside-the-steps": ((MISMATCH, ORDER, OTHER), (("0",), ("1", "2"), ("0", "1", "2"))),
    # meta-pytorch/torchrec#4158: it has fewer batches and gathers the losses; the others exchange one more batch
    "batches-of-each-rank": ((MISMATCH, MISSING), (("2",),)),
    # verl-project/verl#2860: the first rank writes its parts of a checkpoint an hour longer than the others
    **dict.fromkeys(("parts-of-the-first-rank",)),
}
_MPI = {
    # HDFGroup/hdf5#118: it has got an error and closes the file, which all do; the others wait for its broadcast
    "opens-with-all-ranks": ((MISMATCH, MISSING, ORDER), (("0",),)),
    # espressopp/espressopp#252: it sends a third message, and the other one asked for two and is in the next reduction
    "gathers-configurations": ((MISMATCH, MISSING), (("0",), ("1",), ("0", "1"))),
    # libMesh/libmesh#1088: one rank needs hours to number its unknowns, the others gather the counts
    **dict.fromkeys(("numbers-unknowns",)),
}
R, E, T = "twenty_fifth_ranks", "twenty_fifth_engines", "twenty_fifth_threads"
M, N = "twenty_fifth_mpi", "twenty_fifth_native"
_CHILD = ("main", "child")
_TRAINING = ("main", "trainer", "worker0", "worker1")

TWENTY_FIFTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # RLinf/RLinf#1540: the first rank sends to the rollout, which wants a device that the second one has, which waits
    # for the first one in another group. Doubtful: whom to blame, so that only the cause counts
    Live(R, "buckets-to-the-rollout", (MISSING, LOCKS, ORDER, MISMATCH, OTHER), (), ("0", "1", "2", "3"), how="ranks",
         needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # lemonade-sdk/lemonade#2414: it has the cache's lock and asks its own server, which wants that lock
    Live(N, "fills-the-system-info", EITHER),
    # pingcap/tiflash#7824: told to end without the lock, between a thread's look at it and its wait
    Live(N, "uploads-then-ends", (*EITHER, EXIT)),
    # microsoft/onnxruntime#1784: all threads of a pool wait for what the same threads should do
    Live(N, "runs-nodes-in-the-session", EITHER),
    # pocoproject/poco#5168: one has the observer's mutex and wants the center's, and the other way round
    Live(N, "removes-an-observer", (LOCKS,)),
    # ggml-org/llama.cpp#4182: an image is encoded by few cores before the first word
    Live(N, "encodes-an-image", (HEALTHY,)),
    # 1bit-MONSTER/1bit-MONSTER#948: one request computes for many minutes with the model's lock, the others wait
    Live(N, "generates-for-one", (HEALTHY,)),
    # abetlen/llama-cpp-python#1798: all threads wait for the model, and who has it needs a thread; the loop is at rest
    Live(T, "completes-many-requests", (*EITHER, OPEN)),
    # ServiceNow/Fast-LLM#548: it has the run's lock and waits for the loop, whose thread wants that lock.
    # Doubtful: the report says that it is the best understanding so far
    Live(T, "logs-from-the-actor", EITHER),
    # finos/opengris-scaler#984: it has the interpreter's lock and joins a thread that calls Python
    Live(T, "interrupted-while-starting", (GIL,)),
    # DataDog/dd-trace-py#18900: the log's lock was taken at the fork, and a word goes to the log before fork returns
    Live(T, "forks-for-a-request", (FORK,), (("child",),), _CHILD),
    # scosman/zipstreamer#34: a server that nobody asks for anything
    Live(T, "serves-on-a-port", (HEALTHY,)),
    # sgl-project/sglang#122: many small weights are loaded slowly
    Live(T, "loads-experts", (HEALTHY,), needs="torch"),
    # hw-native-sys/simpler#1396: a process could not begin and has ended; whether it has begun is looked at by running.
    # Doubtful: whom to blame, as it is no process any more, so that only the cause counts
    Live(E, "starts-its-chips", (OTHER, MISSING, LOCKS, INIT), (), ("main", "worker")),
    # NovaSky-AI/SkyRL#1960: the process that writes checkpoints has ended by an error, and its answer is waited for.
    # Doubtful: whom to blame, as it is no process any more, so that only the cause counts
    Live(E, "saves-in-another-process", (OTHER, MISSING, LOCKS), (), ("main", "trainer"), needs="ray"),
    # facebookresearch/spdl#1564: it waits until the rest is in a pipe that is full and has no reader left
    Live(E, "consumer-stops-early", (*EITHER, EXIT)),
    # hiyouga/LlamaFactory#10584: the workers write into a full pipe, which the interface reads after their end; it
    # looks for that end again and again
    Live(E, "trains-from-the-interface", EITHER,
         (("main",), ("worker0", "worker1"), ("main", "worker0", "worker1"), _TRAINING), _TRAINING),
    # NVlabs/GA3C#28: told to end, the threads wait for one more frame, and the agents have ended
    Live(E, "episodes-are-over", (*EITHER, EXIT, MISSING)),
    # zeromq/libzmq#1194: the worker of a server has no connection to the router, as it has another context, and
    # the router waits for a worker. Doubtful: whether to blame the server or who asked it
    Live(E, "routes-to-its-workers", (OTHER, MISSING, LOCKS, OPEN), (("main",), ("main", "client")),
         ("main", "client"), needs="zmq"),
    # xieyaxiongfly/Atheros_CSI_tool_OpenWRT_src#72: there is a lot to build
    Live(E, "builds-everything", (HEALTHY,), roles=("main", "job0", "job1")),
    # jchengai/planTF#2: all folders of a cache are gone through before the first step
    Live(E, "looks-into-its-cache", (HEALTHY,)),
    # electron-shaders/MineDraft#4: models are fetched, which takes up to an hour
    Live(E, "runs-the-example", (HEALTHY,), roles=("main", "hub")),
    # ray-project/ray#13148: actors of a pool that have nothing to do
    Live(E, "pool-between-rounds", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
)  # fmt: skip

TWENTY_FIFTH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_FIFTH}
