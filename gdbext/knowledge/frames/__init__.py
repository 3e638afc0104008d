"""What a frame says about its thread: rows by library, in the order in which they are tried on one frame."""

from typing import Tuple

from gdbext.knowledge import vendor_calls
from gdbext.knowledge.engines.engine_list import rows
from gdbext.knowledge.frames import failures, helper_threads, idle, other_engines, unknown_libraries
from gdbext.knowledge.frames.devices import ascend, cublas, cuda_internals, other_devices, rocm
from gdbext.knowledge.frames.networks import fabrics, gloo, gpu_transfers, mpi, nccl
from gdbext.knowledge.frames.python import (
    interpreter,
    python_helpers,
    python_libraries,
    standard_library,
    training_libraries,
)
from gdbext.knowledge.frames.system import libc, library_locks, linux_kernel
from gdbext.knowledge.log_lines import last_words
from gdbext.knowledge.row_kinds import EmptyName, FrameRule, MessageRule, ThreadName

RULES: Tuple[FrameRule, ...] = (
    *vendor_calls.RULES,
    *cuda_internals.RULES,
    *rocm.RULES,
    *cublas.RULES,
    *nccl.RULES,
    *ascend.RULES,
    *mpi.RULES,
    *fabrics.RULES,
    *gpu_transfers.RULES,
    *gloo.RULES,
    *failures.RULES,
    *rows("frames", "RULES"),
    *other_engines.RULES,
    *idle.RULES,
    *training_libraries.RULES,
    *standard_library.RULES,
    *python_helpers.RULES,
    *python_libraries.RULES,
    *interpreter.RULES,
    *python_libraries.INNERMOST,
    *other_devices.RULES,
    *library_locks.RULES,
    *libc.RULES,
    *linux_kernel.RULES,
    *helper_threads.RULES,
    *vendor_calls.UNLISTED,
    *unknown_libraries.RULES,
)
"""All frame rules. On one frame the first that matches decides."""

EMPTY_NAMES: Tuple[EmptyName, ...] = cuda_internals.EMPTY
"""Names that count as no name."""

THREAD_NAMES: Tuple[ThreadName, ...] = helper_threads.NAMES
"""Hints from thread names."""

MESSAGES: Tuple[MessageRule, ...] = last_words.RULES
"""Error lines beside stacks."""
