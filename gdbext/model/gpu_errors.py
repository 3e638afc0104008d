"""Kernel errors as a sanitizer of GPU code reports them, and the same ones of many launches and ranks as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.stack import Frame
from gdbext.model.text.ranges import counted

SANITIZER = "text:compute-sanitizer"
"""Source of a process that only a sanitizer's report tells of."""

SIDES = ("after", "before", "inside")
"""Where an address lies, seen from the nearest allocation."""


@dataclass(frozen=True)
class DevicePlace:
    """Code on the device. `thread` and `block` are of the first report of equal ones: "(3,0,0)"."""

    function: str  # demangled, as it is printed
    file: str = ""
    line: Optional[int] = None
    offset: Optional[int] = None  # of the instruction in the function
    access: str = ""  # "read", "write", "atomic": one side of a race
    thread: str = ""
    block: str = ""


@dataclass(frozen=True)
class NearestAllocation:
    """The allocation that lies nearest to a bad address."""

    side: str  # one of `SIDES`
    distance: Optional[int] = None  # bytes; None inside of it
    address: Optional[int] = None
    size: Optional[int] = None

    @property
    def words(self) -> str:
        """`16 bytes after the nearest allocation of 64 bytes`."""
        size = f" of {counted(self.size, 'byte')}" if self.size is not None else ""
        far = f"{counted(self.distance, 'byte')} {self.side}" if self.distance is not None else self.side
        return f"{far} the nearest allocation{size}"


@dataclass(frozen=True)
class GpuError:
    """One error, or equal ones of one process: they differ in thread, block, address and launch."""

    kind: str  # of knowledge/errors/compute_sanitizer.py
    text: str  # its first line, as it is printed
    tool: str = ""  # "memcheck", ... where the report tells
    space: str = ""  # "global", "shared", "local"
    access: str = ""
    size: Optional[int] = None  # bytes
    address: Optional[int] = None
    problem: str = ""  # "out of bounds", "misaligned"
    kernel: str = ""  # the outermost function on the device, as it is printed
    places: Tuple[DevicePlace, ...] = ()  # where it happened; the two sides of a race
    nearest: Optional[NearestAllocation] = None
    call: str = ""  # of CUDA's API, that failed
    error: str = ""  # its name: cudaErrorInvalidValue
    hazards: Optional[int] = None
    device_frames: Tuple[Frame, ...] = ()  # callers on the device
    host_thread: Optional[int] = None  # that launched the kernel, where nothing tells its frames at that moment
    host_frames: Tuple[Frame, ...] = ()  # of the launch or the call, innermost first
    count: int = 1


@dataclass(frozen=True)
class SeenIn:
    """How often one process had an error."""

    process: int  # index
    count: int


@dataclass(frozen=True)
class GpuFinding:
    """Equal errors of all processes together, and whose code launched the kernel."""

    error: GpuError
    seen: Tuple[SeenIn, ...]
    engine_frame: Optional[Frame] = None  # the first native host frame that is no library's
    python_frame: Optional[Frame] = None  # the first Python frame that is no library's
    text: str = ""  # all of that as a sentence

    @property
    def count(self) -> int:
        return sum(one.count for one in self.seen)
