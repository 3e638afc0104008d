"""What cuda-gdb shows of the GPU: which kernel a stack is of and what that waits for, and which kernels are listed."""

from __future__ import annotations

import re
from typing import Tuple

from gdbext.analysis.stacks.device_threads import device_of, wave_of
from gdbext.analysis.view.places import place
from gdbext.analysis.view.resident_kernels import collective_of
from gdbext.knowledge.device_code import (
    KERNEL_OF_NCCL,
    LISTED_KERNEL,
    PEERS,
    PROTOCOLS,
    WAITS_FOR_PEER,
)
from gdbext.model.job import RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex

_BETWEEN_TWO = "send-recv"
_OF_NCCL, _LISTED = map(regex, (KERNEL_OF_NCCL, LISTED_KERNEL))
_WAITS = tuple(map(regex, WAITS_FOR_PEER))


def shown_on_device(thread: ThreadStack) -> str:
    """`On device 1, cuda-gdb shows NCCL's all-gather kernel (ring, simple) in waitPeer (prims_simple.h:128): ...`"""
    named = [frame for frame in thread.calls if frame.function]
    kernel = kernel_of(thread)
    wave = wave_of(thread)
    if wave:  # its outermost frames may be missing, and with them the kernel
        shown = place(named[0]) if named else "a function without a name"
        caller = f", called by {place(named[1])}" if len(named) > 1 else ""
        return f"On the GPU, wavefront {wave} is in {shown}{caller}"
    told = f"On device {device_of(thread)}, cuda-gdb shows {kernel_in_words(kernel)}"
    if len(named) > 1 or (named and named[0].line):
        told += f" in {place(named[0])}"
    peer = _waited_for(kernel, named[0]) if named else ""
    return f"{told}: the GPU thread shown waits there for {peer}" if peer else told


def kernel_of(thread: ThreadStack) -> str:
    """The name of the kernel whose stack it is."""
    return next((frame.function for frame in reversed(thread.calls) if frame.function), "without a name")


def on_gpu(process: RankSnapshot) -> Tuple[str, str]:
    """A kernel that cuda-gdb shows or lists (`On device 0, cuda-gdb lists NCCL's all-reduce kernel (ring, LL) as
    running`), and its name; "" where the text has none."""
    shown = next((one for one in process.threads if device_of(one) is not None), None)
    if shown is not None:
        return shown_on_device(shown), kernel_of(shown)
    found = next(filter(None, map(_LISTED.match, process.said)), None)
    if found is None:
        return "", ""
    kernel = found["kernel"]
    return f"On device {found['device']}, cuda-gdb lists {kernel_in_words(kernel)} as running", kernel


def needs_all(kernel: str) -> bool:
    """Whether every rank of a communicator must launch it: sending and receiving are between two."""
    return collective_of(kernel) not in (None, _BETWEEN_TWO)


def kernel_in_words(kernel: str) -> str:
    """`NCCL's all-gather kernel (ring, simple)`, `the kernel scale<float>`."""
    collective, known = collective_of(kernel), _OF_NCCL.match(kernel)
    if collective is None:
        return f"the kernel {kernel}"
    owner = "NCCL's" if re.match(r"(?:void )?nccl", kernel) else "the"
    if known is None:
        return f"{owner} {collective} kernel {kernel}" if owner == "the" else f"{owner} {collective} kernel"
    protocol = next((word for part, word in PROTOCOLS.items() if part in kernel), "")
    how = ", ".join(filter(None, (known["algorithm"].lower(), protocol)))
    return f"{owner} {collective} kernel ({how})"


def _waited_for(kernel: str, inner: Frame) -> str:
    """`its neighbour in the ring`, where the GPU thread spins for a peer; "" where it does not."""
    if collective_of(kernel) is None or not any(one.match(inner.function or "") for one in _WAITS):
        return ""
    known = _OF_NCCL.match(kernel)
    return PEERS.get(known["algorithm"] if known else "", "another rank")
