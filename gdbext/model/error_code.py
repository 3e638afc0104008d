"""What an error number of CUDA, cuBLAS or NCCL means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class ErrorCode:
    """One number of one library. `sticky`: every later call of the process fails too; None where nothing is known."""

    library: str  # the name of its type: cudaError_t, CUresult, cublasStatus_t, ncclResult_t
    number: int
    name: str
    meaning: str
    sticky: Optional[bool]
    causes: Tuple[str, ...] = ()  # what is usually behind it in an inference engine
    steps: Tuple[str, ...] = ()  # what to do next
    read_from: str = ""  # release of the header that has the name
    source: str = ""


@dataclass(frozen=True)
class ErrorAnswer:
    """The answer of `llm-error`: a number alone means something else in each library."""

    asked: str
    codes: Tuple[ErrorCode, ...]
