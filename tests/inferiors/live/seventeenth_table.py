"""The seventeenth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-17` alone. Each truth was written before gdbext looked,
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
    # EleutherAI/bergson#380
    "moments-gathered-by-the-first-alone": ((MISMATCH, MISSING), (("0",),)),
    # NVIDIA/TensorRT-LLM#12024: it has drawn the end of the text, and the others go on with it
    "each-rank-draws-its-token": ((MISMATCH, MISSING), (("1",),)),
    # vllm-project/vllm#25906
    "graph-of-its-own-size": ((MISMATCH, MISSING), (("1",),)),
    # horovod/horovod#100: in a loop of its own all ranks take part, and the tensor is not the others'
    "tensor-of-another-name": ((MISMATCH, MISSING, OTHER), (("1",),)),
    # TRI-ML/prismatic-vlms#38, hiyouga/LlamaFactory#2424
    **dict.fromkeys(("waits-for-who-saves", "texts-mapped-before-the-others")),
}
_MPI = {
    # OpenMDAO/OpenMDAO#2596: the first rank alone makes it, and the others were to take part
    "report-with-collectives": ((MISMATCH, MISSING), (("0",), ("1", "2"))),
}
R, E, T = "seventeenth_ranks", "seventeenth_engines", "seventeenth_threads"
M, N = "seventeenth_mpi", "seventeenth_native"
_CHILD = ("main", "child")
_SERVER = ("main", "server")

SEVENTEENTH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # NVIDIA/Megatron-LM#5100: the last two stages send to each other
    Live(R, "stages-send-first", (MISMATCH, OTHER, LOCKS), (("2", "3"), ("2",), ("3",)), ("0", "1", "2", "3"),
         how="ranks", needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # gabime/spdlog#664: there is always one more message
    Live(N, "flush-until-all-is-written", (OTHER, LOCKS)),
    # nntrainer/nntrainer#4134
    Live(N, "parallel-inside-parallel", EITHER),
    # confluentinc/kafka-rest#928
    Live(N, "expiry-poll-and-handler", (LOCKS,)),
    # OpenMathLib/OpenBLAS#4080
    Live(N, "parallel-region-after-fork", (FORK,), (("child",),), _CHILD),
    # Kitware/kwiver#468
    Live(T, "interpreter-kept-by-who-waits", (GIL,)),
    # jaredrhod/backtalk#24: natively an event loop at rest, or a join
    Live(T, "loop-ends-and-its-threads-do-not", (*EITHER, EXIT, OPEN)),
    # siddhantgoel/tornado-sqlalchemy#88
    Live(T, "connection-awaited-in-the-loop", EITHER),
    # zeromq/libzmq#2312
    Live(T, "context-before-its-socket", (*EITHER, EXIT), needs="zmq"),
    # pytorch/pytorch#25158
    Live(E, "shared-cache-forked", (FORK,), (("worker",),), ("main", "worker"), needs="torch"),
    # celery/celery#502
    Live(E, "log-lock-of-a-new-worker", (FORK,), (("child",),), _CHILD),
    # NVIDIA/multi-storage-client#178
    Live(E, "batches-that-nobody-takes", (*EITHER, EXIT)),
    # ray-project/ray#43184
    Live(E, "tasks-keep-what-their-tasks-need", (OTHER, LOCKS, MISSING), (), ("main", "a", "b"), needs="ray"),
    # sgl-project/sglang#29670: natively an event loop at rest, and who asked it
    Live(E, "writer-behind-a-paused-reader", (*EITHER, OPEN), (("server",), _SERVER), _SERVER),
    # PaddlePaddle/Paddle#17798: it is stopped, as a machine that is down
    Live(E, "parameter-server-is-down", (MISSING, OTHER, "network-transport"), (("server",),), ("0", "1", "server")),
    # sgl-project/sglang#37806
    Live(E, "weights-paged-in-by-many", (HEALTHY,), needs="torch"),
    # aptos-labs/aptos-core#784
    Live(E, "first-compile-fetches-all", (HEALTHY,), roles=("main", "repository")),
    # Chuyu-Team/Dism-Multi-language#342
    Live(E, "cleans-many-files", (HEALTHY,)),
    # jalantechnologies/flask-react-template#30
    Live(E, "one-request-after-another", (HEALTHY,), roles=_SERVER),
    # pytorch/pytorch#123932
    Live(E, "tries-a-slow-kernel", (HEALTHY,), roles=("main", "tuner"), needs="torch"),
    # huggingface/huggingface_hub#4452
    Live(E, "one-file-is-most-of-it", (HEALTHY,), roles=("main", "hub")),
    # skypilot-org/skypilot#892
    Live(E, "third-job-waits-for-room", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
    # tenstorrent/tt-inference-server#4040
    Live(E, "answers-without-an-end", (HEALTHY,), roles=_SERVER),
)  # fmt: skip

SEVENTEENTH_BY_NAME: Dict[str, Live] = {row.id: row for row in SEVENTEENTH}
