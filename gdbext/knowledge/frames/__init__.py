"""What a frame says about its thread: rows by library, in the order in which they are tried on one frame."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge import api
from gdbext.knowledge.frames import (
    ascend,
    by_name,
    cublas,
    cuda,
    engines,
    fabrics,
    failures,
    gloo,
    helpers,
    idle,
    kernel,
    library_locks,
    messages,
    mpi,
    nccl,
    os,
    other_devices,
    python,
    python_helpers,
    python_libraries,
    rocm,
    torch,
)
from gdbext.knowledge.schema import EmptyName, FrameRule, MessageRule, ThreadName

RULES: Tuple[FrameRule, ...] = (
    *api.RULES,
    *cuda.RULES,
    *rocm.RULES,
    *cublas.RULES,
    *nccl.RULES,
    *ascend.RULES,
    *mpi.RULES,
    *fabrics.RULES,
    *gloo.RULES,
    *torch.RULES,
    *failures.RULES,
    *engines.RULES,
    *idle.RULES,
    *python_helpers.RULES,
    *python_libraries.RULES,
    *python.RULES,
    *python_libraries.INNERMOST,
    *other_devices.RULES,
    *library_locks.RULES,
    *os.RULES,
    *kernel.RULES,
    *helpers.RULES,
    *api.UNLISTED,
    *by_name.RULES,
)
"""All frame rules. On one frame the first that matches decides."""

EMPTY_NAMES: Tuple[EmptyName, ...] = cuda.EMPTY
"""Names that count as no name."""

THREAD_NAMES: Tuple[ThreadName, ...] = helpers.NAMES
"""Hints from thread names."""

MESSAGES: Tuple[MessageRule, ...] = messages.RULES
"""Error lines beside stacks."""
