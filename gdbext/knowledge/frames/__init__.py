"""What a frame says about its thread: rows by library, in the order in which they are tried on one frame."""

from typing import Tuple

from gdbext.knowledge import vendor_calls
from gdbext.knowledge.engines import rows
from gdbext.knowledge.frames import failures, helper_threads, idle, other_engines
from gdbext.knowledge.frames import unknown_libraries as by_name
from gdbext.knowledge.frames.devices import ascend, cublas, other_devices, rocm
from gdbext.knowledge.frames.devices import cuda_internals as cuda
from gdbext.knowledge.frames.networks import fabrics, gloo, mpi, nccl
from gdbext.knowledge.frames.python import interpreter, python_helpers, python_libraries
from gdbext.knowledge.frames.system import libc, library_locks, linux_kernel
from gdbext.knowledge.log_lines import last_words as messages
from gdbext.knowledge.row_kinds import EmptyName, FrameRule, MessageRule, ThreadName

RULES: Tuple[FrameRule, ...] = (
    *vendor_calls.RULES,
    *cuda.RULES,
    *rocm.RULES,
    *cublas.RULES,
    *nccl.RULES,
    *ascend.RULES,
    *mpi.RULES,
    *fabrics.RULES,
    *gloo.RULES,
    *failures.RULES,
    *rows("frames", "RULES"),
    *other_engines.RULES,
    *idle.RULES,
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
    *by_name.RULES,
)
"""All frame rules. On one frame the first that matches decides."""

EMPTY_NAMES: Tuple[EmptyName, ...] = cuda.EMPTY
"""Names that count as no name."""

THREAD_NAMES: Tuple[ThreadName, ...] = helper_threads.NAMES
"""Hints from thread names."""

MESSAGES: Tuple[MessageRule, ...] = messages.RULES
"""Error lines beside stacks."""
