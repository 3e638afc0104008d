"""The profiles of all engines: how they look in /proc and on stacks."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines.fastertransformer import profile as fastertransformer
from gdbext.knowledge.engines.llama_cpp import profile as llama_cpp
from gdbext.knowledge.engines.mindspore import profile as mindspore
from gdbext.knowledge.engines.mpi import profile as mpi
from gdbext.knowledge.engines.rtp_llm import profile as rtp_llm
from gdbext.knowledge.engines.sglang import profile as sglang
from gdbext.knowledge.engines.tensorrt_llm import profile as tensorrt_llm
from gdbext.knowledge.engines.torch import profile as torch
from gdbext.knowledge.engines.turbomind import profile as turbomind
from gdbext.knowledge.engines.vllm import profile as vllm
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
