"""What the handles of CUDA streams mean, and which member of an engine's object holds one."""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Tuple


class SpecialHandle(NamedTuple):
    """A number that is no pointer."""

    kind: str
    meaning: str
    source: str


class Holder(NamedTuple):
    """A class that holds a stream. `path` leads to it, through pointers; `device` to its device's number.

    `torch_id`: what the path ends at is torch's stream id.
    """

    type: str  # a regular expression on the name without template arguments
    path: str
    source: str
    device: str = ""
    torch_id: bool = False


LEGACY, PER_THREAD = 1, 2
SPECIAL: Dict[int, SpecialHandle] = {
    0: SpecialHandle(
        "default",
        "the default stream: the legacy one, or the calling thread's own where the caller was compiled with "
        "--default-stream per-thread",
        "CUDA 12 driver_types.h",
    ),
    LEGACY: SpecialHandle("legacy", "cudaStreamLegacy", "CUDA 12 driver_types.h"),
    PER_THREAD: SpecialHandle(
        "per-thread",
        "cudaStreamPerThread: each thread has its own, so it means something on the calling thread only",
        "CUDA 12 driver_types.h",
    ),
}

NON_BLOCKING = 1  # cuda.h: CU_STREAM_NON_BLOCKING
CAPTURE_STATES = {0: "", 1: "capturing", 2: "capturing, and the capture is spoiled already"}
"""CUstreamCaptureStatus of CUDA 12 cuda.h."""

INVALID = frozenset((400, 709))  # what the driver says of a handle that is no stream (any more)

STREAM_TYPE = r"(struct )?CUstream_st"
EVENT_TYPE = r"(struct )?CUevent_st"

HOLDERS: Tuple[Holder, ...] = (
    Holder(
        r"(c10|at)::cuda::CUDAStream", "stream_.id_", "pytorch c10/cuda/CUDAStream.h", "stream_.device_.index_", True
    ),
    Holder(r"c10::Stream", "id_", "pytorch c10/core/Stream.h", "device_.index_", True),
    Holder(r"tensorrt_llm::runtime::CudaStream", "mStream", "TensorRT-LLM runtime/cudaStream.h", "mDevice"),
    Holder(r"turbomind::core::Stream", "impl_.stream_", "TurboMind core/stream.h"),
    Holder(r".*", "stream_", "FasterTransformer BaseLayer.h, TurboMind core/stream.h"),
)
"""The first one that fits counts. The last is about any class; the others are streams by themselves."""

EVENT_HOLDERS: Tuple[Holder, ...] = (
    Holder(r"at::cuda::CUDAEvent", "event_", "pytorch ATen/cuda/CUDAEvent.h", "device_index_"),
    Holder(r"tensorrt_llm::runtime::CudaEvent", "mEvent", "TensorRT-LLM runtime/cudaEvent.h"),
    Holder(r"turbomind::core::Event", "impl_.event_", "TurboMind core/stream.h"),
)


class Current(NamedTuple):
    """A thread-local variable with the stream that an engine uses on that thread."""

    function: str  # a regular expression: threads with a frame of such a function are looked at
    expression: str  # in C++; needs debug information
    what: str
    source: str


CURRENT: Tuple[Current, ...] = (
    Current(
        r"turbomind::",
        "*('turbomind::core::(anonymous namespace)::ContextStorage::instance()'::inst"
        ".stream_.c._M_impl._M_finish._M_cur - 1)",
        "TurboMind's current stream",
        "TurboMind core/context.cc since 0.8: a std::stack, whose top lies before its end",
    ),
)

# c10/cuda/CUDAStream.cpp at 8be3e9f, the encoding since torch 1.13.
TORCH_TYPE_SHIFT, TORCH_TYPE_MASK = 1, 0xF
TORCH_INDEX_SHIFT, TORCH_INDEX_MASK = 5, 0x1F
TORCH_EXTERNAL = 0xF
TORCH_ENCODING = "decoded as torch 1.13 and later encode it; older releases do it otherwise"
TORCH_LIBRARY = re.compile(r"libc10_cuda\.so")
TORCH_POOL = "c10::cuda::(anonymous namespace)::streams"  # [priority][device][index]
TORCH_CURRENT = "c10::cuda::(anonymous namespace)::current_streams"  # thread-local unique_ptr<StreamId[]> by device
TORCH_DEVICES = "c10::cuda::(anonymous namespace)::num_gpus"
TORCH_PER_POOL = 32
