"""Engines and frameworks: their own waits, the frames that name a collective, and where an idle worker sits."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.precedence import LEAF, LOCK, PYTHON, SILENT, STEP
from gdbext.knowledge.schema import FrameRule

_NAMES = (
    (r"\w*[Aa]ll_?[Rr]educe\w*", "all_reduce"),
    (r"\w*[Aa]ll_?[Gg]ather\w*", "all_gather"),
    (r"\w*[Bb]road_?[Cc]ast\w*", "broadcast"),
    (r"\w*[Rr]educe_?[Ss]catter\w*", "reduce_scatter"),
    (r"\w*[Aa]ll_?2?[Tt]o_?[Aa]ll\w*", "all_to_all"),
)
# Where an engine keeps its collectives: (id, prefix before the collective's name, facts).
_HOMES = (
    (
        "ft",
        r"fastertransformer::(ftNccl|CudaDevice::|\w+CommBase<\w+>::|CustomAllReduceComm<\w+>::)",
        "FasterTransformer, RTP-LLM v0",
    ),
    ("rtp", r"rtp_llm::(exec|CudaDevice::|CustomAllReduceComm::)", "RTP-LLM ExecOps.cc"),
    ("turbomind", r"turbomind::(comm::)?(NcclCommImpl|CudaIpcCommImpl|HostCommImpl|\w+Comm\w*)::", "TurboMind comm"),
    ("trt", r"tensorrt_llm::(plugins|kernels|torch_ext|_v1::\w+)::", "TensorRT-LLM plugins; NVIDIA/nccl#1550"),
    ("xla", r"xla::gpu::", "openxla/xla#15144"),
    ("horovod", r"horovod::common::", "Horovod operations"),
)


# What FasterTransformer's wrappers are called with: NcclParam comes by value.
_NCCL_PARAM = (
    "data_size",
    "nccl_param.rank_",
    "nccl_param.world_size_",
    "nccl_param.nccl_comm_",
    "nccl_param.nccl_comm_->commHash",
    "nccl_param.nccl_comm_->opCount",
)


def _homes() -> Tuple[FrameRule, ...]:
    return tuple(
        FrameRule(
            f"{home}-{collective}",
            "nccl-group-launch",
            prefix + f"({names})",
            source,
            rank=LOCK,
            collective=collective,
            captures=_NCCL_PARAM if home == "ft" else (),
        )
        for home, prefix, source in _HOMES
        for names, collective in _NAMES
    )


def _python(
    id: str, kind: str, function: str, file: str, source: str, rank: int = PYTHON, idle: bool = False
) -> FrameRule:
    return FrameRule(id, kind, rf"({function})$", source, file=file, language="python", rank=rank, idle=idle)


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
        for names, collective in _NAMES
    )


_IDLE_WORKERS = (
    _python(
        "vllm-dequeue",
        "ipc-queue",
        r"acquire_read|dequeue",
        r"(shm_broadcast|shm_object_storage)\.py$",
        "workers wait here for the next step: normal",
        rank=PYTHON + 5,
        idle=True,
    ),
    _python(
        "vllm-enqueue",
        "ipc-queue",
        r"acquire_write|enqueue",
        r"shm_broadcast\.py$",
        "a reader does not take the block; vllm#27313",
        rank=PYTHON + 5,
    ),
    _python(
        "vllm-core-input",
        "ipc-queue",
        r"_process_input_queue|process_input_sockets|process_output_sockets",
        r"vllm/v1/engine/core\w*\.py$",
        "the engine core waits for requests: normal",
        rank=PYTHON + 5,
        idle=True,
    ),
    _python(
        "sglang-recv",
        "ipc-queue",
        r"recv_requests|_recv_requests|recv_reqs|process_input_requests",
        r"(scheduler|request_receiver)\w*\.py$",
        "schedulers wait here for requests, followers in a Gloo broadcast: normal",
        rank=STEP + 20,
        idle=True,
    ),
    _python(
        "sglang-result",
        "ipc-queue",
        r"resolve_last_batch_result|resolve_batch_result",
        r"tp_worker_overlap_thread\.py$",
        "waits for the forward thread; sgl-project/sglang#7254",
        rank=PYTHON + 4,
    ),
    FrameRule(
        "rtp-follower",
        "io",
        r"rtp_llm::(CpuTpBroadcaster|\w*Broadcaster)::(broadcast|recv|read\w*)",
        "followers read the next request from a unix socket: normal",
        rank=STEP,
        idle=True,
        collective=None,
    ),
    FrameRule(
        "rtp-scheduler",
        "condvar-idle",
        r"rtp_llm::\w*Scheduler\w*::(wait|schedule)\w*",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    FrameRule(
        "turbomind-gateway",
        "condvar-idle",
        r"turbomind::(Gateway|RequestQueue)::(pop|dequeue|wait)\w*",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    FrameRule(
        "trt-idle",
        "condvar-idle",
        r"tensorrt_llm::(executor::Executor::Impl::(fetchNewRequests|getNewReqWithIds)|batch_manager::\w+::waitFor\w+)",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    FrameRule(
        "triton-idle",
        "condvar-idle",
        r"triton::core::\w+::(\w*BatcherThread|WaitForNext|BackendThread)\w*",
        "Triton backends wait for requests",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
)

_WAITS = (
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
        "nccl-tests-poll",
        "stream-sync",
        r"(TimeTest|BenchTime|testStreamSynchronize|startColl|completeColl|CheckData)\b",
        "NVIDIA/nccl-tests common.cu: polls cudaStreamQuery and yields",
        rank=LEAF + 5,
        leaf=True,
    ),
    FrameRule(
        "llama-barrier",
        "condvar-idle",
        r"ggml_(barrier|graph_compute_(poll|check)_for_work\w*)",
        "ggml's pool",
        helper="thread pool",
        leaf=True,
    ),
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

RULES = (*_IDLE_WORKERS, *_WAITS, *_homes(), *_python_collectives(), *_STEPS)
