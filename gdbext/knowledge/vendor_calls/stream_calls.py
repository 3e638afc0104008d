"""Functions that take a stream or an event, and those in which a thread waits for the device.

Arguments are numbered in the order of the words that integers and pointers take: the first ones are in registers (as
many as the machine has for it), the others on the stack. A dim3 of 12 bytes takes two of the words.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Tuple


class CallRow(NamedTuple):
    """One function, or several with the same arguments. `function` is matched against its whole name.

    `waits`: what a thread inside of it waits for: "stream" or "event" (the argument), "default" (the default stream),
    "device" (all streams of the device), "" (takes a stream, and returns before it is done).
    """

    function: str
    argument: Optional[int]  # of the stream, or of the event where `waits` or `takes` says so
    source: str
    waits: str = ""
    name: str = "stream"  # of the parameter, where there is debug information
    offset: int = -1  # the argument points to a struct that has the stream there
    takes: str = "stream"


_RUNTIME, _DRIVER = "cuda_runtime_api.h 12.9", "cuda.h 12.9"
_NCCL, _BLAS = "nccl.h 2.27", "cublas_api.h 12.9"
SUFFIX = r"(_v\d+)?(_ptsz|_ptds)?"

CALLS: Tuple[CallRow, ...] = (
    CallRow(r"cudaStreamSynchronize", 0, _RUNTIME, "stream"),
    CallRow(r"cuStreamSynchronize", 0, _DRIVER, "stream", "hStream"),
    CallRow(r"cudaStreamQuery", 0, f"{_RUNTIME}; polled in a loop: NVIDIA/nccl#1550", "stream"),
    CallRow(r"cuStreamQuery", 0, f"{_DRIVER}; polled in a loop: NVIDIA/nccl#1550", "stream", "hStream"),
    CallRow(r"cudaStream(IsCapturing|BeginCapture|EndCapture|Destroy|GetFlags|GetPriority|GetId)", 0, _RUNTIME),
    CallRow(r"cuStream(Destroy|BeginCapture|EndCapture)", 0, _DRIVER, name="hStream"),
    CallRow(r"cudaStreamWaitEvent", 0, _RUNTIME),
    CallRow(r"cuStreamWaitEvent", 0, _DRIVER, name="hStream"),
    CallRow(r"cudaStreamAddCallback|cudaLaunchHostFunc", 0, _RUNTIME),
    CallRow(r"cudaEventSynchronize", 0, _RUNTIME, "event", "event", takes="event"),
    CallRow(r"cuEventSynchronize", 0, _DRIVER, "event", "hEvent", takes="event"),
    CallRow(r"cudaEventQuery", 0, _RUNTIME, "event", "event", takes="event"),
    CallRow(r"cuEventQuery", 0, _DRIVER, "event", "hEvent", takes="event"),
    CallRow(r"cudaEventRecord(WithFlags)?", 1, _RUNTIME),
    CallRow(r"cuEventRecord(WithFlags)?", 1, _DRIVER, name="hStream"),
    CallRow(r"cuda(Device|Thread)Synchronize|cudaDeviceReset", None, _RUNTIME, "device"),
    CallRow(r"cuCtxSynchronize", None, _DRIVER, "device"),
    CallRow(r"cuda(MallocHost|HostAlloc|FreeHost|Free|FreeArray)", None, f"{_RUNTIME}; NVIDIA/nccl#48, #901", "device"),
    CallRow(r"cuMem(AllocHost|HostAlloc|FreeHost|Free)", None, f"{_DRIVER}; NVIDIA/nccl#48", "device"),
    CallRow(r"cuda(Memcpy|Memcpy2D|Memset)", None, _RUNTIME, "default"),
    CallRow(r"cuMemcpy(DtoH|HtoD)?", None, _DRIVER, "default"),
    CallRow(r"cudaMemcpyAsync", 4, _RUNTIME),
    CallRow(r"cudaMemcpyPeerAsync", 5, _RUNTIME),
    CallRow(r"cudaMemsetAsync", 3, _RUNTIME),
    CallRow(r"cudaMemPrefetchAsync", 3, f"{_RUNTIME}; another one in 13"),
    CallRow(r"cudaMallocAsync", 2, _RUNTIME, name="hStream"),
    CallRow(r"cudaFreeAsync", 1, _RUNTIME, name="hStream"),
    CallRow(r"cuMemcpy(DtoH|HtoD|DtoD)?Async", 3, _DRIVER, name="hStream"),
    # func, grid (2), block (2), args, sharedMem (stack 0), stream (stack 1)
    CallRow(r"cudaLaunch(Cooperative)?Kernel", 7, _RUNTIME),
    CallRow(r"cudaLaunchKernelExC?", 0, _RUNTIME, name="config", offset=32),
    CallRow(r"cuLaunch(Cooperative)?Kernel", 8, _DRIVER, name="hStream"),
    CallRow(r"cuLaunchKernelEx", 0, _DRIVER, name="config", offset=32),
    CallRow(r"cu(da)?GraphLaunch", 1, _RUNTIME),
    CallRow(r"p?nccl(AllReduce|ReduceScatter|Broadcast)", 6, _NCCL),
    CallRow(r"p?ncclReduce", 7, _NCCL),
    CallRow(r"p?nccl(AllGather|Bcast|Send|Recv)", 5, _NCCL),
    CallRow(r"cublas(Lt)?SetStream", 1, _BLAS, name="streamId"),
    CallRow(r"cudnnSetStream", 1, "cudnn_ops.h 9", name="streamId"),
)

_COMPILED = tuple((re.compile(rf"(?:{row.function}){SUFFIX}"), row) for row in CALLS)


def call_row(function: Optional[str]) -> Optional[CallRow]:
    """The row of a function, by its bare name."""
    if not function or not function.startswith(("cu", "nccl", "pnccl")):
        return None
    return next((row for pattern, row in _COMPILED if pattern.fullmatch(function)), None)
