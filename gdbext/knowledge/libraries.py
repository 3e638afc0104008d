"""Mapped object files that a reader of a snapshot wants to know of: torch, CUDA, collectives, engines."""

from __future__ import annotations

import re

TELLING = re.compile(
    r"/lib(?:nccl|rccl|cuda|cudart|cublas|cublasLt|torch_cuda|torch_cpu|mpi|nvinfer|ggml|llama|mindspore|nvshmem)\b"
    r"[^/]*\.so|_turbomind|tensorrt_llm|transformer-shared|rtp_llm|/vllm/|/sgl_kernel/"
)
"""Searched in the path."""
