"""What the events of profilers mean: files and their ranks, collectives, steps, and host work that delays a launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple

GPU_CATEGORIES: Mapping[str, str] = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "copy",
    "memcpy": "copy",
    "memset": "copy",
    "mtia_workloadd": "kernel",
    "privateuse1_kernel": "kernel",
    "xpu_kernel": "kernel",
}
"""Categories, in lower case, of work on a device. torch 1.8 wrote `Kernel` and `Memcpy` (Kineto, output_json.cpp)."""

DEVICE_SPANS = ("gpu_user_annotation", "cuda_sync")
"""Categories of slices over the kernels of a stream: a range that the user marked, and a wait for the stream, which
begins before what it waits for and ends after it (Kineto, CuptiActivity.h; seen in traces of 2023)."""

HOST_CATEGORIES = ("cpu_op", "operator", "cuda_runtime", "runtime", "cuda_driver", "user_annotation", "python_function")

ORDER = ("dp", "ep", "pp", "cp", "tp")
"""Parallelism in the order in which ranks are shown (SGLang, profile_merger.py: DP, EP, PP, TP)."""


@dataclass(frozen=True)
class FileName:
    """How the rank stands in the name of a file. `pattern` has the groups `label` and `number`, or `rank` alone."""

    writer: str
    pattern: str
    source: str


FILE_NAMES: Tuple[FileName, ...] = (
    FileName(
        "sglang, vllm",
        r"(?:^|[-_.\[])(?P<label>dp|ep|pp|cp|tp)[-_]?(?P<number>\d+)(?!\d)",
        "sglang profile_merger.py (ID-TP-0-DP-1.trace.json.gz); vllm worker names (dp0_pp0_tp1_ep0_rank1)",
    ),
    FileName(
        "torch, vllm, TensorRT-LLM, Megatron",
        r"(?:^|[-_.])(?:rank|profiler_info)[-_]?(?P<rank>\d+)(?!\d)",
        "HolisticTraceAnalysis tests (rank-0.json.gz); vllm (ID-rank-3.TIME.pt.trace.json.gz); TensorRT-LLM",
    ),
)

HOST_NAME = r"^(?P<host>[A-Za-z][\w.-]*?)_(?P<pid>\d+)\.\d{10,}\.pt\.trace\.json"
"""torch.profiler.tensorboard_trace_handler: HOST_PID.TIME.pt.trace.json.gz."""


@dataclass(frozen=True)
class Collective:
    """Events that are one collective. `name` is searched in the name of work on a device (`on`: "device"), or of an
    annotation of a CPU backend ("host"). `together`: it ends at the same moment on all of its ranks."""

    kind: str
    name: str
    on: str
    source: str
    together: bool = True


_NCCL = r"^(?:void )?(?:nccl|rccl|mscclpp?|mccl|hccl|xccl)\w*(?:[Kk]ernel|Func(?:tion)?_)\w*?_?"
COLLECTIVES: Tuple[Collective, ...] = (
    Collective("send-recv", _NCCL + r"(?:Send|Recv)", "device", "NCCL device/generate.py", together=False),
    Collective("reduce-scatter", _NCCL + r"ReduceScatter", "device", "NCCL device/generate.py"),
    Collective("all-reduce", _NCCL + r"AllReduce", "device", "NCCL device/generate.py"),
    Collective("all-gather", _NCCL + r"AllGather", "device", "NCCL device/generate.py"),
    Collective("all-to-all", _NCCL + r"All_?[Tt]o_?[Aa]ll", "device", "RCCL"),
    Collective("broadcast", _NCCL + r"(?:Broadcast|Bcast)", "device", "NCCL device/generate.py"),
    Collective("reduce", _NCCL + r"Reduce(?!Scatter)", "device", "NCCL device/generate.py"),
    Collective("collective", r"^(?:nccl|rccl)(?:Dev)?Kernel", "device", "NCCL device/generate.py, generic kernels"),
    Collective(
        "all-reduce",
        r"cross_device_reduce_[12]stage|(?:one|two)[_]?shot_?all_?reduce|allreduce_fusion_kernel|multimem_all_reduce"
        r"|oneShotAllReduce|twoShotAllReduce|lamport_style_one_shot",
        "device",
        "vllm custom_all_reduce.cuh; sglang; TensorRT-LLM allReduceFusionKernels.cu; torch symmetric memory",
    ),
    Collective("all-reduce", r"^hcom_allReduce", "device", "CANN, trace_view.json"),
    Collective("all-gather", r"^hcom_allGather", "device", "CANN, trace_view.json"),
    Collective("reduce-scatter", r"^hcom_reduceScatter", "device", "CANN, trace_view.json"),
    Collective("all-to-all", r"^hcom_all[Tt]o[Aa]ll", "device", "CANN, trace_view.json"),
    Collective("broadcast", r"^hcom_broadcast", "device", "CANN, trace_view.json"),
    Collective("send-recv", r"^hcom_(?:send|receive)", "device", "CANN, trace_view.json", together=False),
    Collective("all-reduce", r"^gloo:all_?reduce", "host", "torch ProcessGroupGloo.cpp"),
    Collective("all-gather", r"^gloo:_?all_?gather", "host", "torch ProcessGroupGloo.cpp"),
    Collective("reduce-scatter", r"^gloo:_?reduce_scatter", "host", "torch ProcessGroupGloo.cpp"),
    Collective("all-to-all", r"^gloo:all_?to_?all", "host", "torch ProcessGroupGloo.cpp"),
    Collective("barrier", r"^gloo:barrier", "host", "torch ProcessGroupGloo.cpp"),
    Collective("broadcast", r"^gloo:broadcast", "host", "torch ProcessGroupGloo.cpp", together=False),
    Collective("send-recv", r"^gloo:(?:send|recv)", "host", "torch ProcessGroupGloo.cpp", together=False),
)
"""The first that matches counts."""

STEP = r"^(?:ProfilerStep#|step[ _#\[]?|execute_(?:model_)?|Iteration )(?P<number>\d+)"
"""Annotations around one step: torch.profiler's own, and those of engines."""

DTYPE_BYTES: Mapping[str, int] = {
    **{"float": 4, "int": 4, "long": 8, "double": 8, "half": 2, "bfloat16": 2, "char": 1, "byte": 1, "bool": 1},
    **{"short": 2, "float8_e4m3fn": 1, "float8_e5m2": 1},
}
"""Names of `dtype` in the arguments of NCCL kernels (torch, ParamCommsUtils.cpp), in lower case."""


@dataclass(frozen=True)
class HostWork:
    """Work of the host that leaves the device without a kernel. `doing` completes "before it, rank 3 ..."."""

    id: str
    doing: str
    name: str
    action: str
    source: str


HOST_WORK: Tuple[HostWork, ...] = (
    HostWork(
        "data",
        "waited for its data",
        r"DataLoader|dataloader|__next__|fetch_batch|get_batch|load_data|tokeni[sz]e",
        "Give its data loader more workers or prefetch, or a disk of its own",
        "torch/utils/data/dataloader.py: enumerate(DataLoader)#...__next__",
    ),
    HostWork(
        "compile",
        "compiled kernels",
        r"[Cc]ompile|[Ii]nductor|dynamo|triton.*(?:jit|autotun)|nvrtc|AsyncCompile|autotune",
        "Warm the shapes up before the traffic, or share a compile cache between the ranks",
        "torch/_dynamo, torch/_inductor; triton",
    ),
    HostWork(
        "first-use",
        "loaded a kernel for the first time",
        r"cu(?:da)?(?:Module|Library)(?:Load|GetFunction)|cuModuleLoadData|cuLibraryLoadData",
        "Set CUDA_MODULE_LOADING=EAGER, or run each kernel once before the traffic",
        "CUDA programming guide, lazy loading",
    ),
    HostWork(
        "allocation",
        "allocated or freed device memory",
        r"cuda(?:Malloc|Free|HostAlloc|FreeHost|MallocHost)\b|cuMem(?:Create|Map|Alloc|Free)",
        "Reserve the memory before the traffic; a caching allocator that is short of memory frees and asks again",
        "CUDA programming guide, implicit synchronization",
    ),
    HostWork(
        "gc",
        "collected Python's garbage",
        r"\bgc[.:_ ]|garbage",
        "Call gc.freeze() after the start, or collect at the same step on all ranks",
        "sglang and vllm freeze the garbage collector after warm-up",
    ),
    HostWork(
        "sync",
        "waited for its own device",
        r"cuda(?:Stream|Device|Event)Synchronize|cu(?:Stream|Ctx|Event)Synchronize",
        "Leave out what waits for the device between two launches (.item(), .cpu(), printing a tensor)",
        "torch performance tuning guide: avoid unnecessary CPU-GPU synchronization",
    ),
    HostWork(
        "copy",
        "copied memory",
        r"cudaMemcpy|aten::(?:to|_to_copy|copy_|item|_local_scalar_dense)$",
        "Pin the host memory and copy asynchronously",
        "torch performance tuning guide",
    ),
)
"""The first that matches counts."""

PLAIN_HOST = "did nothing that the profiler saw: its process slept, computed outside of torch, or was off the processor"
NO_KERNEL = "had no kernel to run"
