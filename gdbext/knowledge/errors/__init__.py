"""Error numbers of CUDA, cuBLAS and NCCL: names from the headers, meanings in our words."""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from gdbext.knowledge.errors import numbers
from gdbext.knowledge.errors.cuda import CUDA
from gdbext.knowledge.errors.error_row_kinds import ErrorRow
from gdbext.knowledge.errors.library_errors import CUBLAS, NCCL
from gdbext.knowledge.word_tables import numbered


class Library(NamedTuple):
    """The error numbers of one library."""

    type: str
    names: Dict[int, Tuple[str, str]]  # number: name, release of the header
    rows: Tuple[ErrorRow, ...]
    prefixes: Tuple[str, ...]  # what its names begin with


def _by_number(releases: Dict[str, str]) -> Dict[int, Tuple[str, str]]:
    found = {release: numbered(text) for release, text in releases.items()}
    return {number: (name, release) for release, names in found.items() for number, name in names.items()}


LIBRARIES: Tuple[Library, ...] = (
    Library("cudaError_t", _by_number(numbers.CUDA_RUNTIME), CUDA, ("cudaError", "cuda")),
    Library("CUresult", _by_number(numbers.CUDA_DRIVER), CUDA, ("CUDA_ERROR_", "CUDA_")),
    Library("cublasStatus_t", _by_number(numbers.CUBLAS), CUBLAS, ("CUBLAS_STATUS_",)),
    Library("ncclResult_t", _by_number(numbers.NCCL), NCCL, ("nccl",)),
)
NAMES: Tuple[str, ...] = tuple(dict.fromkeys(name for library in LIBRARIES for name, _ in library.names.values()))
"""The names of all errors."""

TEXT_FUNCTIONS: Dict[str, str] = {
    "cudaGetErrorString": "cudaError_t",
    "cudaGetErrorName": "cudaError_t",
    "cuGetErrorString": "CUresult",
    "cuGetErrorName": "CUresult",
    "cublasGetStatusString": "cublasStatus_t",
    "cublasGetStatusName": "cublasStatus_t",
    "ncclGetErrorString": "ncclResult_t",
}
"""Functions that a check calls for the text of an error, with the number as first argument."""

__all__ = ["LIBRARIES", "NAMES", "TEXT_FUNCTIONS", "ErrorRow", "Library"]
