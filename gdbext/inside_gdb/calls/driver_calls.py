"""Calls into the CUDA driver of the selected process, in the order that disturbs nobody.

Only functions that libcuda itself exports: there is one of it, while a process may have several runtimes, of which some
were never used and would initialise themselves. A process that has not initialised CUDA is not asked, nor is a thread
without a context, which would be given one. Before anything that a capture forbids, `relax` keeps this thread's calls
from spoiling the captures of others. What is changed is put back. What may block: NVIDIA's documentation of the calls.
"""

from __future__ import annotations

import mmap
import re
from contextlib import ExitStack
from typing import Callable, Dict, Optional

import gdb

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base.functions import exported_functions
from gdbext.inside_gdb.calls.target_calls import SECONDS, Argument, Caller
from gdbext.knowledge.frames.helper_threads import NAMES
from gdbext.model.missing import Maybe, Missing

PAGE = mmap.PAGESIZE
ANSWERS = 0
"""Where in the scratch memory the calls of users of this may answer: up to `_CONTEXT`."""
NOT_LOADED = Missing("the process has no CUDA: no driver is loaded")
NOT_INITIALISED = Missing("the process has not initialised CUDA, and gdbext does not do that")
BUSY, CAPTURED = 600, 906
CAPTURE_ERRORS = range(900, 909)
# driver_types.h says of these that the process must be started again; 214 and 220 (hardware) are taken so too.
_STICKY = frozenset((214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911))
_CONTEXT, _MODE = 512, 520
_LEGACY_STREAM = 1  # cuda.h: CU_STREAM_LEGACY
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: calls of this thread do not disturb captures of others
_MOST_THREADS = 8
_DRIVER = re.compile(r"libcuda\.so")
_DRIVER_THREAD = next(re.compile(row.pattern) for row in NAMES if row.helper == "CUDA driver events")
FUNCTIONS = (
    *("cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode", "cuStreamIsCapturing", "cuStreamGetFlags"),
    *("cuStreamGetPriority", "cuStreamGetId", "cuStreamGetDevice", "cuStreamQuery", "cuEventQuery"),
    *("cuStreamCreate", "cuStreamDestroy_v2", "cuMemcpyDtoHAsync_v2"),
)


class DriverCalls:
    """One sequence of calls, with scratch memory of its own. `begin` makes it, `end` gives back what is left of it."""

    def __init__(self, caller: Caller, functions: Dict[str, int], scratch: int, room: int) -> None:
        self.caller, self.scratch, self.room = caller, scratch, room
        self._inferior = gdb.selected_inferior()
        self._functions = functions
        self._relaxed = False
        self._undo = ExitStack()
        self.keep: Optional[Callable[[], bool]] = None  # whether the scratch memory must stay

    @classmethod
    def begin(cls, caller: Caller, room: int = PAGE) -> Maybe[DriverCalls]:
        """Scratch memory in the process; else why no call can be made."""
        refused = caller.refusal()
        if refused is not None:
            return refused
        pid = gdb.selected_inferior().pid
        problem = why_not(pid)
        if problem is not None:
            return problem
        functions = exported_functions(pid, _DRIVER, FUNCTIONS)
        if isinstance(functions, Missing):
            return functions
        answer = caller.new_memory(room)
        if isinstance(answer, Missing):
            return answer
        if not answer:
            return Missing("the process cannot allocate memory")
        return cls(caller, functions, answer, room)

    def end(self) -> None:
        """Put everything back."""
        try:
            self._undo.close()
        finally:
            if self.keep is None or not self.keep():
                self.caller.any_thread()
                self.caller.call("munmap", "int", [("void*", self.scratch), ("unsigned long", self.room)])

    def undo_with(self, action: Callable[[], object]) -> None:
        """To be done at the end; the last first."""
        self._undo.callback(action)

    # --- the steps ---

    def find_context(self) -> Optional[Missing]:
        """A thread that has a context already: on another one a context would be made, on whichever device."""
        for _ in range(_MOST_THREADS):
            thread = self.caller.thread()
            if isinstance(thread, Missing):
                return thread
            answer = self.call("cuCtxGetCurrent", ("void*", self.scratch + _CONTEXT))
            if isinstance(answer, Missing):
                return answer
            if answer == 0 and self.number(_CONTEXT):
                return None
            self.caller.next_thread("without a CUDA context of its own")
        return Missing(f"the first {_MOST_THREADS} threads that could be used have no CUDA context")

    def nothing_captured(self) -> Optional[Missing]:
        """That no stream is being captured which the legacy stream waits for, and no error sticks to the context."""
        status = ("void*", self.scratch + ANSWERS)
        problem = self.problem("cuStreamIsCapturing", ("void*", _LEGACY_STREAM), status)
        if problem is None and self.number(ANSWERS, 4):
            return Missing("a CUDA graph is being captured")
        return problem

    def relax(self) -> Optional[Missing]:
        """From now on calls on this thread spoil no capture of another one."""
        if self._relaxed:
            return None
        gdb.selected_inferior().write_memory(self.scratch + _MODE, _RELAXED.to_bytes(4, "little"))
        mode = ("void*", self.scratch + _MODE)
        problem = self.problem("cuThreadExchangeStreamCaptureMode", mode)
        if problem is None:
            self._relaxed = True
            self.undo_with(lambda: self.unless_cut_off("cuThreadExchangeStreamCaptureMode", mode))
        return problem

    # --- one call ---

    def has(self, function: str) -> bool:
        """Whether this driver is new enough to have the function."""
        return function in self._functions

    def call(self, function: str, *arguments: Argument) -> Maybe[int]:
        """The CUresult of a function of the driver."""
        address = self._functions.get(function)
        if address is None:
            return Missing(f"this driver has no {function}")
        return self.caller.call(function, "int", arguments, SECONDS, address)

    def problem(self, function: str, *arguments: Argument) -> Optional[Missing]:
        """The same, in words; None when it went well."""
        return as_problem(function, self.call(function, *arguments))

    def unless_cut_off(self, function: str, *arguments: Argument) -> bool:
        """Undo something; not in a driver that a call did not come back from: the next one would not either."""
        if self.caller.cut_off is None:
            self.call(function, *arguments)
        return self.caller.cut_off is None

    def number(self, offset: int, size: int = 8, signed: bool = False) -> int:
        """What a call has answered in the scratch memory."""
        data = bytes(self._inferior.read_memory(self.scratch + offset, size))
        return int.from_bytes(data, "little", signed=signed)


def why_not(pid: int) -> Optional[Missing]:
    """Why the driver of a process must not be asked; None where it uses CUDA already."""
    proc = ProcFS()
    files = proc.mapped_files(pid)
    if isinstance(files, Missing):
        return files
    if any(path.startswith("/dev/nvidia") for path in files):
        return None
    names = (proc.comm(pid, tid) for tid in proc.tasks(pid))  # a driver's helper runs once it is initialised
    if any(isinstance(name, str) and _DRIVER_THREAD.match(name) for name in names):
        return None
    loaded = any(re.match(r"libcuda(rt)?[-.]", path.rsplit("/", 1)[-1]) for path in files)
    return NOT_INITIALISED if loaded else NOT_LOADED


def as_problem(function: str, answer: Maybe[int]) -> Optional[Missing]:
    """A CUresult in words; None for success."""
    if isinstance(answer, Missing):
        return answer
    if answer == 0:
        return None
    if answer in CAPTURE_ERRORS:
        return Missing(f"a CUDA graph is being captured ({function}: {answer}), and a call would spoil it")
    if answer in _STICKY:
        return Missing(
            f"the CUDA context has an earlier, sticky error ({function}: {answer}); a GPU core may have the data"
        )
    return Missing(f"{function} says {answer}")
