"""What is known of the moment in which a check of CUDA failed, or a rank got a fatal signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.error_code import ErrorCode
from gdbext.model.stack import Frame
from gdbext.model.tensor import TensorList


@dataclass(frozen=True)
class Failure:
    """What failed, as the check or the kernel says it."""

    kind: str  # "check" or "signal"
    what: str  # the check's function, or the signal: SIGBUS
    message: str = ""  # of the exception, as a whole
    text: str = ""  # of the error in it
    error: Optional[ErrorCode] = None
    expression: str = ""
    file: str = ""
    line: Optional[int] = None
    raised: str = ""  # "throws std::runtime_error", "calls exit(1)"; of a signal: what led to it
    engine: str = ""  # whose check it is; "" when several engines spell it like that
    details: Tuple[str, ...] = ()  # sentences: where the bad address lies, what that file system has left


@dataclass(frozen=True)
class SourceLine:
    number: int
    text: str


@dataclass(frozen=True)
class CheckReport:
    """One failure in one rank, at the moment it happened."""

    failure: Failure
    taken_at: float
    pid: int
    rank: Optional[int] = None
    host: Optional[str] = None
    engine: Optional[str] = None
    thread: str = ""  # as gdb prints it
    lwp: Optional[int] = None
    thread_name: str = ""
    frames: Tuple[Frame, ...] = ()
    engine_frame: Optional[int] = None  # the first frame of the engine's own code that is no check
    check_frame: Optional[int] = None
    source: Tuple[SourceLine, ...] = ()
    tensors: Optional[TensorList] = None
    streams: Tuple[Tuple[str, str], ...] = ()  # name of the variable with its frame, and the handle
    timing: str = ""  # what asynchronous means here
    steps: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchedRank:
    """What `llm-check on` set in one rank."""

    number: int  # of the inferior
    pid: int
    rank: Optional[int]
    engine: Optional[str]
    functions: Tuple[str, ...]  # called only after a failure
    sites: int  # `throw`s of the engines' own code
    files: Tuple[str, ...]  # object files they are in
    passed: int = 0  # exceptions looked at that were no failed check
    failures: int = 0
    problems: Tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckStatus:
    """The answer of `llm-check on|off|status`."""

    on: bool
    action: str = "stop"
    log: Optional[str] = None
    ranks: Tuple[WatchedRank, ...] = ()
    notes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckKind:
    """One row of `llm-check list`."""

    engine: str
    check: str
    seen: str  # at what
    source: str


@dataclass(frozen=True)
class CheckKinds:
    """The answer of `llm-check list`."""

    kinds: Tuple[CheckKind, ...]


@dataclass(frozen=True)
class SwitchResult:
    """What `llm-check enable|disable` did in one rank."""

    pid: int
    rank: Optional[int]
    function: str
    done: bool
    text: str  # what was written and read back, or why it could not be


@dataclass(frozen=True)
class SwitchResults:
    results: Tuple[SwitchResult, ...]
    notes: Tuple[str, ...] = ()
