"""What the GPU was doing when the driver wrote a GPU core: kernels, where their warps are, and what failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.stack import Frame


@dataclass(frozen=True)
class WarpPlace:
    """Where some warps of a kernel are."""

    warps: int
    frames: Tuple[Frame, ...]  # innermost first; inlined calls and callers on the device
    pc: int


@dataclass(frozen=True)
class ResidentKernel:
    """A grid that was on the device."""

    device: int
    grid: int
    name: str  # demangled; "" where nothing names it
    symbol: str  # as the linker knows it
    status: str  # a word of knowledge/runtimes/gpu_core_format.py
    grid_size: Tuple[int, ...]
    block_size: Tuple[int, ...]
    host_tid: Optional[int] = None  # the thread of the process that launched it
    parent: Optional[int] = None  # the grid that launched it, from the device
    cluster_size: Tuple[int, ...] = ()
    sms: Tuple[int, ...] = ()  # numbers of those that have a block of it
    blocks: int = 0  # of them on the device
    warps: int = 0
    places: Tuple[WarpPlace, ...] = ()  # the first few, those of most warps first


@dataclass(frozen=True)
class GpuException:
    """Equal exceptions of many threads: the same instruction of the same grid."""

    device: int
    number: int
    name: str  # CUDBG_EXCEPTION_..., without that
    means: str
    advice: str
    kernel: str  # demangled; "" when the warps were gone and nothing tells
    grid: Optional[int] = None
    sm: Optional[int] = None  # of the first
    warp: Optional[int] = None
    block: str = ""  # "(3,0,0)", of the first
    thread: str = ""
    blocks: int = 0
    warps: int = 0
    lanes: int = 0
    lane_mask: Optional[int] = None  # of the first warp
    pc: Optional[int] = None
    pc_told: bool = False  # by the hardware as the one that failed; else it is where the warp was found
    frames: Tuple[Frame, ...] = ()  # innermost first
    host_tid: Optional[int] = None


@dataclass(frozen=True)
class GpuOfCore:
    """One device that the process could see."""

    number: int
    name: str
    architecture: str  # "sm_90"
    pci: str  # "0000:1b:00"-like: bus and device
    sm_count: int
    busy_sms: int
    kernels: Tuple[ResidentKernel, ...]


@dataclass(frozen=True)
class GpuCoreState:
    """One GPU core file."""

    path: str
    size: int
    devices: Tuple[GpuOfCore, ...]
    exceptions: Tuple[GpuException, ...]
    pid: Optional[int] = None  # by the file's name: the format has no field for it
    host: Optional[str] = None  # the same
    rank: Optional[int] = None  # of the process that it was joined with
    host_tids: Tuple[int, ...] = ()  # threads that own a context or have launched a kernel
    driver: Optional[str] = None
    cuda: Optional[str] = None
    written_at: Optional[float] = None
    flags: Tuple[str, ...] = ()  # that it was written with; () may also mean that it does not tell
    has_lines: Optional[bool] = None  # the kernels' code was built with line information; None: no code in the file
    problems: Tuple[str, ...] = ()

    @property
    def kernels(self) -> Tuple[ResidentKernel, ...]:
        return tuple(kernel for device in self.devices for kernel in device.kernels)


@dataclass(frozen=True)
class GpuCoreListing:
    """Several files together."""

    cores: Tuple[GpuCoreState, ...]
    unread: Tuple[str, ...] = ()  # a line for each file that could not be read
