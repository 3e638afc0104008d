"""Errors of cuBLAS and NCCL."""

from functools import partial
from typing import Tuple

from gdbext.knowledge.errors.cuda import BLOCKING, SANITIZER
from gdbext.knowledge.errors.error_row_kinds import ErrorRow

_cublas = partial(ErrorRow, source="cublas_api.h 12.9")
_nccl = partial(ErrorRow, source="nccl.h 2.32.3")
_DEBUG = "run again with NCCL_DEBUG=WARN, which prints the reason; torch prints the last one as `Last error:`"
_HIDES = "it often hides an earlier CUDA error of the process: look for the first failed check"

CUBLAS: Tuple[ErrorRow, ...] = (
    _cublas(0, "no error"),
    _cublas(
        1,
        "cuBLAS could not be initialised, or the handle was never created",
        sticky=None,
        causes=("the GPU's memory was already full when the handle was created", "an earlier CUDA error"),
        steps=(_HIDES, "nvidia-smi shows the free memory of this GPU"),
    ),
    _cublas(
        3,
        "cuBLAS could not allocate its workspace",
        causes=("the KV cache took all of the GPU before the first product",),
        steps=("lower the engine's memory fraction; CUBLAS_WORKSPACE_CONFIG can make the workspace smaller",),
    ),
    _cublas(
        7,
        "an argument of the product is wrong",
        causes=("m, n, k or a leading dimension computed from a wrong shape or of the wrong tensor-parallel share",),
        steps=(
            "compare m, n, k, lda, ldb, ldc with the shapes of the tensors of the frame",
            "CUBLASLT_LOG_LEVEL=5 logs the request",
        ),
    ),
    _cublas(8, "this GPU lacks a feature that the product needs", causes=("FP8 or BF16 on an older GPU",)),
    _cublas(11, "memory of the GPU could not be mapped", sticky=None, steps=(_HIDES,)),
    _cublas(
        13,
        "the cuBLAS kernel failed on the GPU",
        sticky=None,
        causes=("an earlier kernel failed on the same GPU", "a pointer to freed or foreign memory"),
        steps=(_HIDES, BLOCKING, SANITIZER),
    ),
    _cublas(
        14,
        "an internal error of cuBLAS: often a kernel launch that failed",
        sticky=None,
        causes=("an earlier kernel failed on the same GPU", "memory is full"),
        steps=(_HIDES, BLOCKING),
    ),
    _cublas(
        15,
        "this combination of types, layouts and sizes is not supported",
        causes=("alignment of a dimension that FP8 or INT8 products need (mostly 16)",),
        steps=("CUBLASLT_LOG_LEVEL=5 logs the request",),
    ),
    _cublas(16, "the licence of a feature could not be checked"),
)

NCCL: Tuple[ErrorRow, ...] = (
    _nccl(0, "no error", prints="no error"),
    _nccl(
        1,
        "a CUDA call inside NCCL failed",
        sticky=None,
        causes=(
            "an earlier kernel failed on this GPU",
            "no memory left for NCCL's buffers",
            "peer access between the GPUs fails",
        ),
        steps=(_DEBUG, _HIDES),
        prints="unhandled cuda error",
    ),
    _nccl(
        2,
        "a system call or a network call failed",
        sticky=None,
        causes=("the container's /dev/shm is full or too small", "a network interface that cannot be reached"),
        steps=(
            _DEBUG,
            "df -h /dev/shm in the container (--shm-size, --ipc=host)",
            "set NCCL_SOCKET_IFNAME to the interface that all hosts share",
        ),
        prints="unhandled system error",
    ),
    _nccl(
        3, "a fault inside NCCL, or memory that was overwritten", sticky=None, steps=(_DEBUG,), prints="internal error"
    ),
    _nccl(
        4,
        "an argument of a collective is wrong",
        causes=("a null or host pointer", "a root or peer that is not in the communicator"),
        steps=(_DEBUG,),
        prints="invalid argument",
    ),
    _nccl(
        5,
        "the program used NCCL in a way that NCCL does not allow",
        causes=(
            "two ranks on one GPU (wrong device or CUDA_VISIBLE_DEVICES)",
            "ranks with different releases or calls",
        ),
        steps=(_DEBUG, "compare the device of every rank"),
        prints="invalid usage",
    ),
    _nccl(
        6,
        "a peer ended, or the connection to it broke; this communicator cannot be used any more",
        sticky=None,
        causes=("another rank crashed first",),
        steps=("find the rank that died first: its log, dmesg (oom, Xid), gdbext ranks",),
        prints="remote process exited or there was a network error",
    ),
    _nccl(7, "a call of a non-blocking communicator has not finished: no error", prints="NCCL operation in progress"),
    _nccl(8, "an operation took longer than its limit", sticky=None, steps=("gdbext diagnose on all ranks",)),
)
