"""The twenty-first set of live programs: each imitates one public report, even numbers only. Each search gave the first
report that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-21` alone. Each truth was written before its program was,
and before gdbext looked; who wrote them did not know the rules. Each program names its report.
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
    OTHER,
    Live,
    _ranks,
)

TRANSPORT = "network-transport"

_JOBS = {
    # huggingface/transformers-bloom-inference#40: the first rank calls a barrier, and the others do not
    "weights-downloaded-once": ((MISMATCH, MISSING), (("0",),)),
    # PaddlePaddle/PaddleFleet#2080: a send goes only when it is waited for, and all ranks of the ring receive before it
    "exchange-in-a-ring": ((MISMATCH, OTHER, LOCKS, MISSING), ()),
    # sgl-project/sglang#31144: one rank sends to an instance that is dead, without a limit of time; the others gather
    "metadata-to-a-prefill-instance": ((MISSING, TRANSPORT, OTHER), (("1",),)),
    # k2-fsa/snowfall#152: the first rank has one more batch than the others, which have ended
    "utterances-of-each-node": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
    # traceopt-ai/traceml#158: one rank computes for longer, and it shows in the others, which wait for it
    # sgl-project/sglang#39128: the shards of one rank are heavier; the others are in a barrier for many minutes
    **dict.fromkeys(("one-rank-computes-longer", "heavier-shards-after-the-load")),
}
_MPI = {
    # hpc/mpifileutils#26: who sends is not a sequence from the first rank on; it waits for one that has nothing to send
    "ranks-that-send-work": ((MISMATCH, MISSING), (("0",), ("0", "1"))),
}
R, E, T = "twenty_first_ranks", "twenty_first_engines", "twenty_first_threads"
M, N = "twenty_first_mpi", "twenty_first_native"
_CHILD = ("main", "child")
_SERVER = ("main", "server")
_WORKER = ("main", "worker")

TWENTY_FIRST: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # tensorflow/tensorflow#932: threads that have ended are still in the list of who waits, and get the new tasks
    Live(N, "tasks-during-the-destructor", (EXIT, *EITHER)),
    # stingergraph/stinger#256: a server without clients waits for something to do
    Live(N, "waits-for-batches", (HEALTHY,)),
    # canonical-ols/talisker#610: a handler of a signal counts while the thread that it interrupts has the lock for that
    Live(T, "counts-ended-workers", (LOCKS,), needs="prometheus_client"),
    # open-telemetry/opentelemetry-rust#3176: a flush blocks the only thread that could send
    Live(T, "spans-flushed-from-the-loop", EITHER),
    # LMCache/LMCache#3362: to destroy an event waits for a callback, with the lock of the interpreter that this needs
    Live(T, "event-of-a-freed-block", (GIL,)),
    # pytorch/pytorch#30354: the server of the store waits for workers, which are started after it
    Live(T, "store-before-its-workers", (INIT, MISSING, OTHER), needs="torch"),
    # microsoft/onnxruntime#7740: a build was broken off, and its lock file is still there
    Live(T, "extension-built-again", (LOCKS, OTHER), needs="torch"),
    # vllm-project/vllm#50754: a transfer was not begun, and who counts its notifications is not told
    Live(E, "blocks-by-notifications", (MISSING, OTHER, TRANSPORT), (("prefill",),), ("main", "prefill")),
    # dcellison/kai#1064: a stream of events has no end, and the server waits for all answers before it stops
    Live(E, "event-stream-at-shutdown", (EXIT, *EITHER, OPEN), (("main",),), ("main", "browser")),
    # openclaw/openclaw#3304: what a tool says as warnings goes to a pipe that nobody reads
    Live(E, "tool-with-warnings", EITHER, (("main",), ("child",), _CHILD), _CHILD, ("main",)),
    # grpc/grpc#23280: what is completed is told to a loop that does not run
    Live(E, "call-from-another-loop", (*EITHER, OPEN), (("main",),), _SERVER),
    # vllm-project/vllm#45644: a worker died before it had read, and its flag is never set; it cannot be blamed by name
    Live(E, "broadcast-to-three-workers", (MISSING, OTHER), (), _WORKER),
    # python/cpython#146316: a forked process has the pipe of the tracker, whose end is waited for at the exit
    Live(E, "tracker-at-exit", (EXIT, FORK, OTHER, LOCKS), (("child",), ("main",), _CHILD), _CHILD),
    # pratyushjha06/Dockfleet#142: a reader waits for room in a queue that nobody takes from any more
    Live(E, "log-streams", (*EITHER, OPEN), (("main",),), ("main", "client")),
    # python/cpython#91598: workers are forked on demand by a process that has threads by then
    Live(E, "workers-on-demand", (FORK,), (("worker",),), _WORKER),
    # vllm-project/vllm#11076: what would tell the engine to stop runs only when its owner is collected
    Live(E, "script-and-its-engine", (EXIT, *EITHER, MISSING), (("main",), ("core",), ("main", "core")),
         ("main", "core"), needs="zmq"),
    # huggingface/datasets#5338: every thousand of them are written at once, and nothing is seen of that
    Live(E, "features-written-by-the-thousand", (HEALTHY,)),
    # evalplus/evalplus#230: each answer is as long as the model allows
    Live(E, "answers-of-full-length", (HEALTHY,), needs="torch"),
    # pytorch/pytorch#168242: workers wait for the next master and go on with it
    Live(E, "store-comes-back", (HEALTHY,), roles=_WORKER, needs="torch"),
    # NVIDIA/TensorRT#3614: the layers are profiled, and nothing is printed of that
    Live(E, "layers-profiled-quietly", (HEALTHY,), roles=("main", "builder")),
    # sgl-project/sglang#2778: a worker takes longer to start than the router would wait
    Live(E, "router-of-a-loading-worker", (HEALTHY,), roles=_WORKER),
    # open-telemetry/opentelemetry-python#2024: the collector is down; each span is tried again, for longer and longer
    Live(E, "collector-is-away", (HEALTHY,), roles=("main", "client")),
    # wandb/server#84: tens of thousands of media files are uploaded at the end of a run
    Live(E, "media-of-a-run", (HEALTHY,), roles=("main", "uploader", "server")),
)  # fmt: skip

TWENTY_FIRST_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTY_FIRST}
