"""Kernels that a GPU core shows on the device of a rank: what a wait for that device is a wait for."""

from __future__ import annotations

import os
import re
from typing import List, Optional

from gdbext.knowledge.traces import COLLECTIVES
from gdbext.model.gpu_core import ResidentKernel
from gdbext.model.job import RankSnapshot
from gdbext.model.text.ranges import counted

_COLLECTIVES = tuple((re.compile(row.name), row.kind) for row in COLLECTIVES if row.on == "device")
_LONGEST = 80


def collective_of(kernel: str) -> Optional[str]:
    """`all-reduce` for a kernel that waits for the other ranks; None for any other."""
    return next((kind for pattern, kind in _COLLECTIVES if pattern.search(kernel)), None)


def running_kernels(process: RankSnapshot) -> List[ResidentKernel]:
    """Those with a block on the device: collectives first, as they are what others wait for."""
    found = [one for one in process.kernels or () if one.blocks]
    return sorted(found, key=lambda one: (collective_of(one.name) is None, -one.warps))


def label(process: RankSnapshot) -> str:
    """Behind the GPU of a rank: which kernel it is in, where that is known."""
    kernels = running_kernels(process)
    if kernels:
        return f", in {kernel_name(kernels[0])}"
    return "" if process.kernels is None else ", idle"


def kernel_name(kernel: ResidentKernel) -> str:
    """Its name in a sentence."""
    name = kernel.name or "a kernel without a name"
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def kernel_text(kernel: ResidentKernel) -> str:
    """`ncclDevKernel_... (24 blocks on 24 SMs, most warps at prims_ll.h:60)`."""
    at = kernel.places[0].frames[0] if kernel.places and kernel.places[0].frames else None
    line = f", most warps at {os.path.basename(at.file)}:{at.line}" if at is not None and at.file else ""
    return f"{kernel_name(kernel)} ({counted(kernel.blocks, 'block')} on {counted(len(kernel.sms), 'SM')}{line})"
