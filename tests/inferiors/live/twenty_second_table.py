"""The twenty-second set of live programs: each imitates one public report, even numbers only. Each search of reports
gave the first one that tells its root cause and that no earlier set has.

As `table.py`; played by `scripts/bench accuracy --family live-22` alone. Each truth was written before gdbext looked,
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
    # cornstarch-org/Cornstarch#76: two ranks made groups without the first one. All make the next group, which has
    # another number on the first. Doubtful: whom to blame, as all of them wait in the same call
    "mesh-of-its-members": ((INIT, MISMATCH, MISSING), (("0",), ("1", "2"))),
    # huggingface/accelerate#2258: it has left out batches, and is in the next epoch's broadcast; the others reduce
    "skips-bad-batches": ((MISMATCH, MISSING), (("1",),)),
    # sgl-project/sglang#27164: it has aborted the request by its own clock, and waits for the next; the others go on
    "aborts-late-requests": ((MISMATCH, MISSING), (("1",),)),
    # NVIDIA/TensorRT-LLM#16592: its executor's thread has ended with an error, and its main thread waits for a result
    "executor-per-rank": ((MISSING, OTHER), (("1",),)),
    # EleutherAI/bergson#444: the first rank factors matrices, the others are in the reduction after that
    **dict.fromkeys(("factors-on-the-first",)),
}
_MPI = {
    # tweag/chainsail#108: it has raised, and is in MPI_Finalize; the first rank waits for its sample
    "replica-exchange": ((MISSING, EXIT), (("1",),)),
    # ghackebeil/pybnb#20: one worker has the only node, the others wait by running
    **dict.fromkeys(("branch-and-bound",)),
}
R, E, T = "twenty_second_ranks", "twenty_second_engines", "twenty_second_threads"
M, N = "twenty_second_mpi", "twenty_second_native"
_CHILD = ("main", "child")
_SERVER = ("main", "server")
_WORKER = ("main", "worker")

TWENTY_SECOND: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # NVIDIA/Megatron-LM#6970: the process that writes its checkpoints has died; it waits for it, and the other for it
    Live(R, "checkpoint-writer", (MISSING, OTHER), (("0",),), ("0", "1"), how="ranks", needs="torch"),
    # marin-community/marin#8538: one rank's part of the checkpoint comes slowly, the others are in a barrier
    Live(R, "restores-last", (HEALTHY,), roles=("0", "1", "2", "store"), asked=("0", "1", "2"), how="ranks",
         needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # kvcache-ai/Mooncake#2336: the master is stopped; a thread waits for it with a mutex that the destructor wants.
    # Doubtful: whether to blame the master or the client that keeps its mutex
    Live(N, "mounts-and-closes", (MISSING, OTHER, LOCKS, "network-transport"),
         (("master",), ("main", "master"), ("main",)), ("main", "master")),
    # grpc/grpc#34442: who forks has the list's lock and waits for a thread of the pool that wants it
    Live(N, "pool-before-fork", EITHER),
    # ros2/rclcpp#2982: the handler of a signal logs, and the thread that it came to is in the log
    Live(N, "logs-when-terminated", EITHER),
    # kokkos/kokkos#6686: the pool's threads wait by running while the main thread does what is serial
    Live(N, "serial-part", (HEALTHY,)),
    # grpc/grpc#14258: who forks has the interpreter's lock and waits for a thread that wants it
    Live(T, "server-before-fork", (GIL,)),
    # LMCache/LMCache#2942: it tries again for ever; what is allocated is its own
    Live(T, "staging-buffer", EITHER),
    # Fatal1ty/aioapns#42: a call ran out of time with a lock, and did not give it back; an event loop at rest natively
    Live(T, "notifies-with-a-limit", (*EITHER, OPEN)),
    # nsoft/jesterj#44: all threads of the pool are in full queues, and who would take out of them is not begun
    Live(T, "steps-in-one-pool", EITHER),
    # noonghunna/club-3090#726: the file that is the lock was left by a process that is gone; it tries again for ever.
    # Doubtful: whether that is a lock or something else, and nothing outside the program's code tells that
    Live(T, "fetches-weights", (*EITHER, MISSING, OPEN)),
    # Delgan/loguru#972: a coroutine waits with a lock of threads, and the next one takes it in the same thread
    Live(T, "completes-its-sinks", EITHER),
    # huggingface/transformers#5944
    Live(T, "lines-to-tokens", (HEALTHY,)),
    # kubernetes-sigs/inference-perf#608: one worker died by an error, and all others are in the barrier with it.
    # Doubtful: who is missing is not a process any more, so that only the cause counts
    Live(E, "stage-barrier", (MISSING, *EITHER), (), ("main", "worker0")),
    # flagos-ai/FlagGems#5358: its workers have died by errors, and it looks every second for what they would send
    Live(E, "collects-results", (OTHER, MISSING, LOCKS)),
    # zopefoundation/zc.lockfile#8: the file was closed, and a child that was forked before that has it open
    Live(E, "instance-lock", EITHER, (("child",), _CHILD, ("main",)), _CHILD),
    # dask/distributed#4224: the one thread of the worker waits for what it would run itself
    Live(E, "actor-asks-actor", EITHER, (("worker",), _WORKER), _WORKER, needs="zmq"),
    # vllm-project/vllm#1058: two accelerators are wanted, and others keep all but one.
    # Doubtful: it could be said that it waits for resources, which is no hang
    Live(E, "engine-on-two", (OTHER, LOCKS, MISSING, INIT), (), ("main", "a", "b"), ("main",), needs="ray"),
    # PrefectHQ/prefect#4852: the server refuses most requests, and the client sleeps and tries again
    Live(E, "creates-runs", (HEALTHY,), roles=_SERVER),
    # unslothai/unsloth#8990: the backend computes, and answers no probes for so long
    Live(E, "probes-its-backend", (HEALTHY,), roles=("main", "backend")),
    # benoitc/gunicorn#3432: workers wait for another service, which is slow
    Live(E, "asks-a-service", (HEALTHY,), roles=("main", "worker", "service")),
    # vllm-project/vllm#16716: the workers capture graphs, and the engine waits until they are ready
    Live(E, "captures-graphs", (HEALTHY,), roles=("main", "worker0", "worker1"), needs="torch"),
    # kunchenguid/firstmate#4316: the watcher has the lock and is in a slow cycle; its children work
    Live(E, "watches-homes", (HEALTHY,), roles=("main", "watcher")),
)  # fmt: skip

TWENTY_SECOND_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_SECOND}
