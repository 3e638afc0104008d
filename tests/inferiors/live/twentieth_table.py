"""The twentieth set of live programs: each imitates one public report, even numbers only. Each search of reports gave
the first one that tells its root cause.

As `table.py`; played by `scripts/bench accuracy --family live-20` alone. Each truth was written before gdbext looked,
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
    OTHER,
    RANKS,
    Live,
    _ranks,
)

_JOBS = {
    # NVIDIA/TensorRT-LLM#14020: no request fits on one rank, and it asks for the state of the transfers
    "capacity-per-rank": ((MISMATCH, MISSING), (("1",),)),
    # NVIDIA/Megatron-LM#1444: the first stage has no layer of experts
    "losses-of-moe-layers": ((MISMATCH, MISSING), (("0",),)),
    # pytorch/pytorch#196082: it was not in the subgroup, and counts otherwise
    "rendezvous-twice": ((INIT, MISMATCH, MISSING), (("2",),)),
    # AgileRL/AgileRL#658: it uses more experts, and gathers once more for each
    "weights-gathered-per-expert": ((MISMATCH, MISSING), (("1",),)),
    # huggingface/accelerate#1940
    "early-stopping": ((MISMATCH, MISSING), (("0",),)),
}
_MPI = {
    # openucx/ucc#1300: its datatype is not taken by the library, and it falls back alone
    "scatter-of-blocks": ((MISMATCH, MISSING), (("1",),)),
}
R, E, T = "twentieth_ranks", "twentieth_engines", "twentieth_threads"
M, N = "twentieth_mpi", "twentieth_native"
_WORKER = ("main", "worker")
_SERVER = ("main", "server")

TWENTIETH: Tuple[Live, ...] = (
    *_ranks(R, "ranks", "torch", _JOBS),
    # intel/torch-ccl#72: what is sent and received goes one after the other, on both
    Live(R, "exchange-with-peer", (MISMATCH, OTHER, LOCKS), (("0", "1"), ("0",), ("1",)), ("0", "1"), how="ranks",
         needs="torch"),
    *_ranks(M, "mpirun", "mpi4py", _MPI),
    # ggml-org/llama.cpp#25358: joins a thread that wants the lock
    Live(N, "removes-a-download", EITHER),
    # tensorflow/tensorflow#4064: a wait that only a later notification would end
    Live(N, "notification-of-a-step", EITHER),
    # triton-inference-server/core#156: the lock of the loader and that of the runtime
    Live(N, "backend-and-runtime", EITHER),
    # ml-explore/mlx#1976: memory is waited for by who would start what gives it back
    Live(N, "memory-limit", EITHER),
    # pytorch/pytorch#58382
    Live(T, "future-of-python", (GIL,)),
    # ollama/ollama#17408
    Live(T, "evicts-a-runner", EITHER),
    # verl-project/verl#7990: natively an event loop at rest, and who asked it
    Live(E, "weight-update-of-a-server", (*EITHER, MISSING, OPEN), (("server",), _SERVER), _SERVER, needs="ray"),
    # huggingface/tokenizers#258
    Live(E, "tokenizer-in-loader", (FORK,), (("worker",),), _WORKER, needs="torch"),
    # vllm-project/vllm#45224: the message is in the memory, and the notice of it is lost
    Live(E, "message-queue-of-workers", (*EITHER, MISSING), (("worker",), _WORKER), _WORKER, needs="zmq"),
    # pytorch/pytorch#189290: the one to blame does not run
    Live(E, "compile-sidecar", (*EITHER, MISSING), (), _WORKER),
    # pytorch/pytorch#48666
    Live(E, "loader-raises", (*EITHER, EXIT)),
    # sgl-project/sglang#33858: natively, all are at rest
    Live(E, "queue-is-full", (*EITHER, MISSING, OPEN), (("router",), ("scheduler",), ("router", "scheduler")),
         ("main", "router", "scheduler"), needs="zmq"),
    # pytorch/pytorch#53860: its store counts only the keys that come after the question
    Live(E, "store-of-keys", (*EITHER, INIT, MISSING), (("0",),), RANKS, how="ranks"),
    # flashinfer-ai/flashinfer#3556
    Live(E, "builds-kernels", (HEALTHY,), roles=("main", "child")),
    # ml-explore/mlx-lm#1500
    Live(T, "polls-for-requests", (HEALTHY,)),
    # intelligent-machine-learning/dlrover#1092
    Live(E, "saver-before-exit", (HEALTHY,), roles=("main", "saver")),
    # ollama/ollama#1736
    Live(E, "last-percent-of-a-layer", (HEALTHY,), roles=("main", "registry")),
    # hiyouga/EasyR1#340
    Live(E, "validates-on-all", (HEALTHY,), roles=("main", "a", "b"), needs="ray"),
    # ModelCloud/GPTQModel#2700
    Live(T, "quantizes-layer-by-layer", (HEALTHY,), needs="torch"),
    # sgl-project/sglang#34740
    Live(E, "detokenizes-all-again", (HEALTHY,), roles=("main", "scheduler", "detokenizer"), needs="zmq"),
    # safetensors/safetensors#562
    Live(E, "maps-weights-page-by-page", (HEALTHY,)),
    # vllm-project/vllm#11138
    Live(E, "waits-for-a-node", (HEALTHY,), roles=("main", "node", "registry"), needs="ray"),
    # sambanova/generative_data_prep#36
    Live(E, "tokenizes-in-shards", (HEALTHY,), roles=("main", "a", "b")),
)  # fmt: skip

TWENTIETH_BY_NAME: Dict[str, Live] = {row.id: row for row in TWENTIETH}
