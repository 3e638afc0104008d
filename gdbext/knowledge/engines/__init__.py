"""One file per engine: how it looks in /proc and on stacks."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines import (
    fastertransformer,
    llama_cpp,
    mindspore,
    mpi,
    rtp_llm,
    sglang,
    tensorrt_llm,
    torch,
    turbomind,
    vllm,
)
from gdbext.knowledge.schema import EngineProfile

PROFILES: Tuple[EngineProfile, ...] = (
    rtp_llm.PROFILE,
    vllm.PROFILE,
    sglang.PROFILE,
    tensorrt_llm.PROFILE,
    turbomind.PROFILE,
    fastertransformer.PROFILE,
    llama_cpp.PROFILE,
    mindspore.PROFILE,
    torch.PROFILE,
    mpi.PROFILE,
)
"""Most specific first: torch lies below several engines, MPI and NCCL below torch."""

GENERIC: Tuple[str, ...] = ("torch", "mpi")
"""Names of profiles that stand for "no known engine"."""
