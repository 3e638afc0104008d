"""Rows that several engines share, and those of engines and frameworks that have no folder in knowledge/engines."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import COLLECTIVE_NAMES, collectives
from gdbext.knowledge.frame_precedence import LOCK, PYTHON, SILENT, STEP
from gdbext.knowledge.row_kinds import FrameRule


def _python_collectives() -> Tuple[FrameRule, ...]:
    """Communicators of vLLM and SGLang in Python; deeper torch frames are more exact, so these speak softly."""
    return tuple(
        FrameRule(
            f"engine-{collective}",
            "nccl-group-launch",
            rf"({names})$",
            "vLLM and SGLang parallel_state.py, device_communicators",
            file=r"(vllm|sglang|rtp_llm|deepspeed|megatron)/.*(parallel_state|communic\w*|pynccl\w*|custom_all_reduce\w*|comm/\w+|collective_torch"
            r"|tensor_parallel/\w+)\.py$|device_communicators/",
            language="python",
            rank=PYTHON - 1,
            collective=collective,
        )
        for names, collective in COLLECTIVE_NAMES
    )


_WAITS = (
    FrameRule(
        "triton-idle",
        "condvar-idle",
        r"triton::core::\w+::(\w*BatcherThread|WaitForNext|BackendThread)\w*",
        "Triton backends wait for requests",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    FrameRule(
        "horovod-events",
        "event-sync",
        r"horovod::common::GPUContext::(impl::)?WaitForEvents",
        "horovod#2601: polls events and yields",
        rank=STEP,
    ),
    FrameRule(
        "ft-stream",
        "stream-sync",
        r"(fastertransformer|rtp_llm|turbomind)::ftNcclStreamSynchronize",
        "spins on cudaStreamQuery",
        rank=STEP,
    ),
    FrameRule(
        "sync-check",
        "device-sync",
        r"(fastertransformer|turbomind|rtp_llm|tensorrt_llm::common)::syncAndCheck\w*",
        "debug level DEBUG",
        rank=STEP,
    ),
    FrameRule(
        "xla-stream",
        "stream-sync",
        r"(xla|stream_executor)::\w*(::\w+)*::(BlockHostUntilDone\w*|SynchronizeStream)",
        "openxla/xla#15144",
        rank=STEP,
    ),
    FrameRule(
        "xla-rendezvous",
        "nccl-init",
        r"xla::(\w+::)*(Rendezvous\w*|AcquireNcclClique|InitializeNcclClique)",
        "XLA cliques meet on the CPU",
        rank=LOCK,
    ),
    FrameRule(
        "tensorflow-idle",
        "condvar-idle",
        r"(tensorflow|tsl)::\w*(::\w+)*::(WorkerLoop|Schedule)",
        "pools",
        helper="thread pool",
        leaf=True,
    ),
    FrameRule(
        "mxnet-var",
        "condvar-idle",
        r"mxnet::engine::ThreadedEngine\w*::(WaitFor\w+)",
        "the worker that computes is another thread; mxnet#8695",
        rank=LOCK,
    ),
    FrameRule(
        "paddle-stream",
        "stream-sync",
        r"(paddle|phi)::(\w+::)*Gpu(StreamSync|StreamWaitEvent|MemcpySync)",
        "Paddle gpu_info.h",
        rank=LOCK,
    ),
    FrameRule("paddle-device", "device-sync", r"(paddle|phi)::(\w+::)*GpuDeviceSync", "Paddle gpu_info.h", rank=LOCK),
    FrameRule(
        "nvshmem",
        "nccl-group-launch",
        r"(nvshmem\w+|nvshmemi_\w+|deep_ep::\w+::\w+)",
        "NVSHMEM and DeepEP; vllm#46509",
        rank=LOCK,
    ),
)

_STEPS = (
    FrameRule(
        "engine-step",
        "native-compute",
        r"(\w+(<.*>)?::)+(forward|decode|step|generate|run|infer)$",
        "engines' loops over tokens: a step that changes between two looks is progress",
        rank=SILENT,
        captures=("step", "step_", "ite"),
    ),
)

RULES = (
    *_WAITS,
    *collectives("xla", r"xla::gpu::", "openxla/xla#15144"),
    *collectives("horovod", r"horovod::common::", "Horovod operations"),
    *_python_collectives(),
    *_STEPS,
)
