"""What the rows of an engine's checks, time limits, streams and build say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional, Tuple


@dataclass(frozen=True)
class MessageRow:
    """A message of a failed check. Groups of `pattern` (searched anywhere): text, file, line, expression, number."""

    engine: str  # name of a profile; "" where several engines say it alike
    check: str  # the function or macro that fails, as people know it
    pattern: str
    source: str
    library: str = ""  # whose error numbers: cudaError_t, ncclResult_t, ...; "" when the text says it


@dataclass(frozen=True)
class FailRow:
    """A function that is called only when a check has failed: a breakpoint on it costs nothing.

    Says which of its arguments they are: by number, "this" counted, or behind the pointer that an argument is ("0+8");
    "" for one that it does not have. `text` is a C string, or a std::string that is passed by reference; `stream` a
    std::ostringstream that the text was written to: then the object that it is a member of lies in the caller's frame,
    and is found there after an abort as well.
    """

    engine: str
    function: str  # as gdb's `break -function` takes it
    source: str
    library: str = ""
    code: str = ""
    file: str = ""
    line: str = ""
    text: str = ""
    stream: str = ""
    said: str = "{}"  # the message that the engine makes of the text
    name: str = ""  # a C string that names the checking function
    within: Tuple[str, ...] = ()  # functions that call this one after they were seen themselves: no failure of its own
    aborts: bool = False  # ends the process itself


@dataclass(frozen=True)
class CalledRow:
    """A check whose message does not name its caller's file and line, or that is not at hand any more: its caller's
    code hands them over as these arguments, by number."""

    function: str
    file: int
    line: int
    source: str
    inner: str = ""  # a file that the failure names instead of the caller's: the check's own


@dataclass(frozen=True)
class SwitchRow:
    """What switches an engine's own debug check on. Symbols are tried in this order."""

    engine: str
    function: str  # the check that becomes active
    variable: str  # environment variable and value that do it at start
    source: str
    level_name: str = ""  # mangled: `char*`, read once from the variable
    level: str = ""  # mangled: std::string, constructed from level_name at the first check
    level_guard: str = ""
    name_guard: str = ""
    logger: str = ""  # mangled: the logger object, of which `field` is set
    type: str = ""  # of the logger
    field: str = ""
    setter: str = ""  # mangled: a function that sets the field
    value: int = 0
    highest: int = 0  # level that there is


class TimeoutRow(NamedTuple):
    """`library` or `engine` says where it applies; `variable` holds it, else it is the default."""

    what: str  # that happens then
    seconds: Optional[float]  # the default; None: only where the variable is set
    source: str
    variable: str = ""
    unit: float = 1.0  # of the variable, in seconds; with `factor` the variable multiplies the default
    factor: bool = False
    off: Tuple[str, str] = ("", "")  # variable and value that switch it off
    library: str = ""  # how the name of a mapped file begins
    engine: str = ""


class Holder(NamedTuple):
    """A class that holds a stream. `path` leads to it, through pointers; `device` to its device's number.

    `torch_id`: what the path ends at is torch's stream id.
    """

    type: str  # a regular expression on the name without template arguments
    path: str
    source: str
    device: str = ""
    torch_id: bool = False


class Current(NamedTuple):
    """A thread-local variable with the stream that an engine uses on that thread."""

    function: str  # a regular expression: threads with a frame of such a function are looked at
    expression: str  # in C++; needs debug information
    what: str
    source: str


def sync_and_check_statics(namespace: str) -> Tuple[str, str, str, str]:
    """Mangled names of `static char* level_name`, `static std::string level` and their guards in syncAndCheck."""
    function = f"ZZN{namespace}12syncAndCheckEPKciE"
    return (
        f"_{function}10level_name",
        f"_{function}5levelB5cxx11",
        f"_ZGV{function[1:]}5levelB5cxx11",
        f"_ZGV{function[1:]}10level_name",
    )


class DebugCheckRow(NamedTuple):
    """A check that a variable switches on when the program starts. It is compiled in where `text` stands in a file."""

    engine: str
    function: str
    text: bytes  # the variable's name, or that of the function
    variable: str
    values: Tuple[str, ...]  # that switch it on; the first is what we recommend
    source: str
    absent: str = ""  # which builds do not have it
    besides: str = ""  # what else switches it on


class BuildRow(NamedTuple):
    """How an engine is built so that frames have names, files, lines and arguments, and kernels have lines."""

    engine: str
    commands: Tuple[str, ...]  # as typed in its source folder
    gives: str
    source: str
    notes: Tuple[str, ...] = ()
