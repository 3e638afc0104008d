"""torch: which member of an object holds a stream, how its stream ids are numbered, and where its pools lie."""

import re
from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import Holder

HOLDERS: Tuple[Holder, ...] = (
    Holder(
        r"(c10|at)::cuda::CUDAStream", "stream_.id_", "pytorch c10/cuda/CUDAStream.h", "stream_.device_.index_", True
    ),
    Holder(r"c10::Stream", "id_", "pytorch c10/core/Stream.h", "device_.index_", True),
)

EVENT_HOLDERS: Tuple[Holder, ...] = (
    Holder(r"at::cuda::CUDAEvent", "event_", "pytorch ATen/cuda/CUDAEvent.h", "device_index_"),
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
