"""What a line can say. The rows of the formats make these, the assembler builds processes from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple, Union

from gdbext.model.stack import Frame

LONGEST_PROBLEM = 300
"""Characters that are kept of a line that a process says."""


@dataclass(frozen=True)
class ProcessHead:
    """What follows is of this process. A head that is not `firm` only adds what it knows to the process at hand."""

    title: str = ""
    pid: Optional[int] = None
    rank: Optional[int] = None
    host: Optional[str] = None
    python: Optional[str] = None
    writer: str = ""  # who wrote the line, where that may be another process
    firm: bool = True
    ends: bool = False  # said at the end: what follows is of another process
    task: bool = False  # of the kernel's log, which numbers threads: `pid` may be that of any thread of a process


@dataclass(frozen=True)
class ThreadHead:
    """A thread begins. `id` None: the text does not number it.

    A head that is not `firm` is a mention in prose: it names the stack that follows at once, if one does. A
    `selected` thread may have been shown before. `only` is the one frame that a list of threads has on its lines.
    """

    id: Optional[str] = None
    lwp: Optional[int] = None
    pthread: Optional[int] = None  # what pthread_self() returns in it
    name: Optional[str] = None
    gil: Optional[bool] = None
    state: Optional[str] = None
    group: Optional[str] = None  # number of the inferior, where there are several
    outermost_first: Optional[bool] = None  # None: as the frames themselves say
    firm: bool = True
    selected: bool = False
    starred: Optional[bool] = None  # whether gdb's list marks it: a stack without a head is of that one; None: no list
    current: bool = False  # the thread that the error message before is about
    only: Optional[Frame] = None
    problem: str = ""  # what the same line says of it: a signal
    stop: Optional[str] = None  # how a debugger has stopped the process, "" for a signal; None: the line tells nothing
    marks_lines: bool = False  # of IPython, which marks the line of each frame among its neighbours
    recurs: bool = False  # the tool shows one thread at several moments: the same id is no second process


@dataclass(frozen=True)
class Runs:
    """C code that runs a frame of Python, and the address of that frame."""

    code: Frame
    address: str


@dataclass(frozen=True)
class FrameLine:
    """One frame, and how frames of its kind are listed."""

    frame: Frame
    number: Optional[int] = None
    outermost_first: bool = False
    addressed: bool = False  # from gdb, which leaves the address out where a frame's callee is inlined
    runs: Optional[Runs] = None  # where C code has `frame`, of Python, among its arguments


@dataclass(frozen=True)
class Chain:
    """A whole stack on one line, innermost frame first."""

    frames: Tuple[Frame, ...]


@dataclass(frozen=True)
class Standing:
    """The frame in which gdb finds a process when it attaches or stops; the whole stack mostly follows."""

    frame: Frame


@dataclass(frozen=True)
class DeviceFocus:
    """cuda-gdb says that it has selected a thread on the GPU, whose frames follow; "": one of the host again."""

    text: str


@dataclass(frozen=True)
class Stopped:
    """A debugger has stopped the process at hand: at a breakpoint, or "" for any other reason."""

    how: str
    frame: Optional[Frame] = None


@dataclass(frozen=True)
class Raised:
    """An exception of torch, whose stack follows: `function` has made it."""

    text: str
    function: str


@dataclass(frozen=True)
class Location:
    """The source position of the frame before, on a line of its own (eu-stack); "": in the same file (IPython)."""

    file: str
    line: Optional[int]


@dataclass(frozen=True)
class Interrupted:
    """Somebody typed Ctrl-C: tracebacks show where their processes were, alive."""


@dataclass(frozen=True)
class LogMessage:
    """A log line that is evidence: an error, a watchdog, a signal. `pid` and `rank` say of whom, if known.

    `about` tells which thread it belongs to: the one "before" it, the one "next", else its process.
    A "stack" is said in pieces, of the thread whose stack comes next, whatever is fatal. "again" is what its writer
    says over and over, of which only the last line counts.
    """

    text: str
    pid: Optional[int] = None
    rank: Optional[int] = None
    about: str = ""
    fatal: bool = False  # a process says it once: one whose dying thread was read is another


@dataclass(frozen=True)
class Passed:
    """All have joined that some were said to wait for at that key of torch's store."""

    key: str
    rank: int


@dataclass(frozen=True)
class Chained:
    """A second traceback of the same thread follows: an exception raised while the first was handled."""


@dataclass(frozen=True)
class OtherStack:
    """Frames follow that are not where the thread stands: where it was created, where what it uses was allocated.
    `about`: with what the place of the first one is told; the others are counted only."""

    about: str = ""


@dataclass(frozen=True)
class Trace:
    """A call as a log of calls has it, innermost frame first: the thread stands in the last one."""

    frames: Tuple[Frame, ...]


@dataclass(frozen=True)
class Several:
    """What one line says of several things, in order."""

    events: Tuple[Event, ...]


@dataclass(frozen=True)
class FramesMissing:
    """The tool says that frames are missing here."""

    reason: str


@dataclass(frozen=True)
class Prompt:
    """A command typed into a debugger. `fresh`: what follows is a whole stack, else maybe one frame of it again."""

    fresh: bool
    asks: bool = False  # which thread is selected
    debugger: str = ""  # whose prompt it is; "": the command lets the process go


@dataclass(frozen=True)
class Detail:
    """Belongs to a format and says nothing that is kept: source text, locals, a debugger's chatter."""


@dataclass(frozen=True)
class Code:
    """The source line of the frame before it. `marked`: of several lines shown it is the one."""

    text: str
    marked: bool = False


Event = Union[
    ProcessHead,
    ThreadHead,
    FrameLine,
    Interrupted,
    Chain,
    Trace,
    Standing,
    DeviceFocus,
    Stopped,
    Raised,
    Location,
    LogMessage,
    Passed,
    Chained,
    OtherStack,
    Several,
    FramesMissing,
    Prompt,
    Detail,
    Code,
]
