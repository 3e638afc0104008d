"""What a build will show of itself: what was left in its files, and what they would have with other options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.checkup import Point


@dataclass(frozen=True)
class DeviceCode:
    """The GPU code of one file. Numbers are of cubins: machine code for one GPU."""

    sass: Tuple[str, ...]  # "sm_90a": what there is machine code for
    ptx: Tuple[str, ...]  # "compute_90": what the driver compiles for any newer GPU
    cubins: int
    packed: int  # compressed ones
    looked_into: int  # a compressed one can be looked into where the host has the library for it
    with_lines: int  # that say which line an instruction is of: -lineinfo, or -G
    with_debug: int  # -G: variables too, and no optimisation
    problem: str = ""  # what could not be read

    @property
    def lines(self) -> str:
        """Whether a fault in a kernel gets its line: "yes", "no", "some", "unknown"; "none": there is no cubin."""
        if not self.cubins:
            return "unknown" if self.problem else "none"
        if not self.looked_into:
            return "unknown"
        if not self.with_lines:
            return "no" if self.looked_into == self.cubins and not self.problem else "unknown"
        return "yes" if self.with_lines == self.cubins and not self.problem else "some"


@dataclass(frozen=True)
class DebugCheck:
    """A check of an engine that waits for each kernel, or looks closer, when a variable says so."""

    engine: str
    function: str
    variable: str  # "FT_DEBUG_LEVEL=DEBUG" switches it on at start
    on: Optional[bool]  # when the process started; None: nobody knows, or there is none
    note: str = ""  # what else switches it on


@dataclass(frozen=True)
class BuiltFile:
    """One object file. Words are of the tables below."""

    path: str
    build_id: str = ""
    symbols: str = "unknown"  # one of SYMBOLS
    debug: str = "unknown"  # one of DEBUG
    debug_file: str = ""  # where it is, when not in the file itself
    compilers: Tuple[str, ...] = ()  # "GNU C++17 12.2.0": as the debug information has it
    optimised: Tuple[str, ...] = ()  # "-O2": levels that units of it were compiled with
    inlined: Optional[bool] = None
    lines_only: bool = False  # -g1: its debug information has no variables
    frame_pointers: str = "unknown"  # "yes", "no", "some"
    device_code: Optional[DeviceCode] = None
    checks: Tuple[DebugCheck, ...] = ()
    problem: str = ""  # why it was not read, or not to its end
    points: Tuple[Point, ...] = ()  # what that comes to


SYMBOLS = ("all", "functions", "exported", "none", "unknown")
"""Which names it has: all; functions alone (.gnu_debugdata); what other files may call; none."""
DEBUG = ("inside", "apart", "cached", "objects", "none", "unknown")
"""Where its debug information is: in it; in a file of its own; in debuginfod's cache; in .dwo files; nowhere."""


@dataclass(frozen=True)
class BuildWay:
    """How an engine is built so that it shows all it can."""

    engine: str
    gives: str
    commands: Tuple[str, ...]  # as typed in its source folder
    notes: Tuple[str, ...]
    source: str


@dataclass(frozen=True)
class BuildReport:
    """The answer about a file or a process, or about nothing but how an engine is built."""

    target: str  # the path, or the process with its pid and title; "" for `--how`
    engine: str  # as far as it is known
    files: Tuple[BuiltFile, ...] = ()
    points: Tuple[Point, ...] = ()  # about the process, and the report as a whole
    others: int = 0  # files of the process that are not shown: the system's and NVIDIA's
    ways: Tuple[BuildWay, ...] = ()

    @property
    def lacking(self) -> bool:
        points = [*self.points, *(point for file in self.files for point in file.points)]
        return any(point.state != "ok" for point in points)

    @property
    def read(self) -> bool:
        """Something could be read of it."""
        return not self.target or bool(self.points) or any(file.symbols != "unknown" for file in self.files)
