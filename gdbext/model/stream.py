"""CUDA streams and events of the program: what memory tells of them, and what the driver says when it may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.codes import Code
from gdbext.model.error_code import ErrorCode
from gdbext.model.missing import Maybe, Missing

NOT_ASKED = Missing("only the driver knows it, and it is not called", Code.NOT_ASKED)
NOT_IN_HANDLE = Missing("the handle does not say it")
NOT_MAPPED = Missing("nothing is mapped at the handle: destroyed, of another process, or not set yet")
NO_STREAM = Missing("what lies at the handle is code, constant or a stack: no stream, or not set yet")
MAYBE_NO_STREAM = Missing("the driver is not given a number that may not be a stream")
AFTER_ERROR = Missing("not asked after the error")
NO_KERNELS = Missing("only cuda-gdb sees the kernels on the device")


@dataclass(frozen=True)
class Asked:
    """What the driver said of one stream or event."""

    state: Maybe[str]  # idle, busy, capturing, failed, invalid; of an event done or pending instead of idle or busy
    error: Optional[ErrorCode] = None  # of a failed one
    blocking: Maybe[bool] = NOT_ASKED  # whether it and the legacy default stream wait for each other
    priority: Maybe[int] = NOT_ASKED
    id: Maybe[int] = NOT_ASKED  # unique in the process, as profilers print it
    device: Maybe[int] = NOT_ASKED


@dataclass(frozen=True)
class StreamInfo:
    """One handle. `kind`: default, legacy, per-thread, pool, user, event, or unverified for a bare number."""

    expression: str
    type_name: str
    kind: str
    handle: Maybe[int]
    device: Maybe[int] = NOT_IN_HANDLE
    pool_index: Optional[int] = None  # in torch's pool
    priority: Optional[int] = None  # torch's: 0 is the lowest, -1 goes before it
    state: Maybe[str] = NOT_ASKED
    notes: Tuple[str, ...] = ()
    asked: Optional[Asked] = None


@dataclass(frozen=True)
class StreamUse:
    """A place that holds a stream, or is given one."""

    expression: str  # "this->stream_", "argument 7 of ncclAllReduce"
    owner: str = ""  # type of the object that holds it; "" for a variable of its own
    thread: str = ""  # as gdb prints it; "" for what belongs to no thread
    frame: Optional[int] = None
    function: str = ""
    waits: str = ""  # of a thread that waits here: stream, event, device; "" of one that does not
    argument: bool = False  # of a call, not a variable


@dataclass(frozen=True)
class KnownStream:
    """One stream of a process with everything that leads to it."""

    kind: str
    handle: Maybe[int]
    device: Maybe[int] = NOT_IN_HANDLE
    pool_index: Optional[int] = None
    priority: Optional[int] = None
    uses: Tuple[StreamUse, ...] = ()
    more_uses: int = 0
    asked: Maybe[Asked] = NOT_ASKED
    kernels: Tuple[str, ...] = ()  # on its device
    notes: Tuple[str, ...] = ()
    unmapped: bool = False  # nothing can be at the handle; a note says so


@dataclass(frozen=True)
class StreamWait:
    """A thread inside of a call that waits for the device."""

    thread: str
    lwp: Optional[int]
    name: str
    call: str  # cudaStreamSynchronize
    waits: str  # stream, event, device
    frame: int
    handle: Maybe[int]  # of the stream or event
    how: str = ""  # how the handle is known
    engine_function: str = ""  # the engine's own code that made the call
    file: Optional[str] = None
    line: Optional[int] = None


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel on a device, as `info cuda kernels` prints it. No cuda-gdb says which stream it was launched in."""

    kernel: int
    device: int
    grid: int
    status: str
    parent: Optional[int] = None
    focus: bool = False
    grid_size: str = ""  # "(4,1,1)"
    block_size: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class RankStreams:
    """The streams of one process."""

    number: int  # of the inferior
    pid: int
    rank: Optional[int]
    streams: Tuple[KnownStream, ...] = ()
    events: Tuple[KnownStream, ...] = ()
    waits: Tuple[StreamWait, ...] = ()
    kernels: Maybe[Tuple[DeviceKernel, ...]] = NO_KERNELS
    problems: Tuple[str, ...] = ()  # what could not be had, and why
    unasked: bool = False  # the driver was asked for none of them; a problem says why


@dataclass(frozen=True)
class StreamTable:
    """The answer of `llm-stream list`."""

    ranks: Tuple[RankStreams, ...]
    notes: Tuple[str, ...] = ()
