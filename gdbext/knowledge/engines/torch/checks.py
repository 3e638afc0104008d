"""torch: what its checks throw, call or print when they fail, and what switches them on."""

from functools import partial
from typing import Tuple

from gdbext.knowledge.engines.engine_row_kinds import CalledRow, FailRow, MessageRow

_SOURCE = "pytorch"
_FAIL = f"{_SOURCE} Exception.h"

_message = partial(MessageRow, "torch")

MESSAGES: Tuple[MessageRow, ...] = (
    _message(
        "C10D_NCCL_CHECK",
        r"NCCL error in: (?P<file>[^\s:]+):(?P<line>\d+), (?P<text>[^\n]*)",
        f"{_SOURCE} NCCLUtils.hpp",
        library="ncclResult_t",
    ),
    _message(
        "c10::cuda::c10_cuda_check_implementation", r"^CUDA error: (?P<text>[^\n]*)", f"{_SOURCE} CUDAException.h"
    ),
    _message(
        "c10::cuda::CUDACachingAllocator",
        r"^CUDA (?P<text>out of memory)\. ",
        "message of torch.OutOfMemoryError, torch 2.9.1",
        library="cudaError_t",
    ),
    _message(
        "STD_TORCH_CHECK",
        r"^\w+, (?P<file>[^\s:]+\.(?:cu|cuh|cc|cpp|cxx|h|hpp)):(?P<line>\d+), (?P<text>.*)",
        "torch 2.9.1, headeronly/util/Exception.h (extensions on the stable ABI, vLLM's kernels)",
    ),
)

FAIL_FUNCTIONS: Tuple[FailRow, ...] = (
    FailRow("torch", "c10::detail::torchCheckFail", _FAIL, file="1", line="2", text="3", name="0"),
    FailRow("torch", "c10::detail::torchInternalAssertFail", _FAIL, file="1", line="2", text="3", name="0"),
)

CALLED: Tuple[CalledRow, ...] = (
    CalledRow(
        "c10::cuda::c10_cuda_check_implementation",
        1,
        3,
        f"{_SOURCE} CUDAException.h; libc10_cuda of torch 2.9.1",
        inner="CUDAException.cpp",
    ),
)
