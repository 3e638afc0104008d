"""Mapped object files that a reader of a snapshot wants to know of: torch, CUDA, collectives, engines."""

import re

TELLING = re.compile(
    r"/lib(?:nccl|rccl|cuda|cudart|cublas|cublasLt|torch_cuda|torch_cpu|mpi|nvinfer|ggml|llama|mindspore|nvshmem)\b"
    r"[^/]*\.so|_turbomind|tensorrt_llm|transformer-shared|rtp_llm|/vllm/|/sgl_kernel/"
)
"""Searched in the path."""

WAITING = re.compile(r"(libc|libpthread|libgomp|ld-linux)(-[-.\w]*)?\.so|\[v")
"""Matched on the file name: threads in these are mostly waiting to be woken; they come last when time is short."""
