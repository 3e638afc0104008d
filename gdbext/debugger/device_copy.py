"""Device memory of a process in plain gdb: copied by calls in the process, which the user has allowed.

The recipe of facts cuda.md 5. A stream of its own that waits for no other, an asynchronous copy of an explicit kind, a
query until it is done: cudaMemcpy would run on the default stream and wait behind a kernel that hangs. The runtime is
never initialised for the process, and a thread that has no CUDA context is not given one. What was allocated for the
copy is given back; only memory that a copy may still write to is left.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import ExitStack
from typing import Callable, Dict, List, NoReturn, Optional, Tuple

import gdb

from gdbext.debugger.calls import SECONDS, Argument, Caller
from gdbext.knowledge.frames.helpers import NAMES
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Maybe, Missing

MOST_BYTES = 1 << 20
"""Copied for one command; more is for a debugger that reads the device, or for a GPU core."""
WINDOW = 64 << 10  # bytes of one copy
_PAGE = 4096
_PROTECTION, _FLAGS = 3, 0x22  # PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS
_STREAM, _STATUS, _CONTEXT, _MODE = 0, 8, 16, 24  # where in the first page of the scratch memory the calls answer
_LEGACY_STREAM = 1  # driver_types.h: cudaStreamLegacy
_NON_BLOCKING = 1  # cudaStreamNonBlocking
_TO_HOST = 2  # cudaMemcpyDeviceToHost
_RELAXED = 2  # cudaStreamCaptureModeRelaxed: calls of this thread do not disturb captures of others
_NOT_READY, _CAPTURE = 600, 906
_STICKY = frozenset((214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911))  # facts: cuda.md 6
_MOST_THREADS = 8
_DRIVER_THREAD = next(re.compile(row.pattern) for row in NAMES if row.helper == "CUDA driver events")
_BETWEEN_QUERIES = 0.01


class DeviceCopy:
    """The bytes from `low` to `high` of the selected process's device memory. One per tensor and command.

    `say` shows the announcements.
    """

    def __init__(self, caller: Caller, say: Callable[[str], None], low: int, high: int) -> None:
        self._caller, self._say = caller, say
        self._low, self._high = low, high
        self._inferior = gdb.selected_inferior()
        self._copied = 0
        self._known: Dict[int, bytes] = {}  # by start of the window

    def read(self, address: int, size: int) -> Optional[bytes]:
        """The bytes; None outside of the tensor. Raises `GdbextError` with the reason when they cannot be copied."""
        if size < 0 or address < self._low or address + size > self._high:
            return None
        if size > MOST_BYTES:
            self._too_much()
        parts: List[bytes] = []
        at = address
        while at < address + size:
            start, data = self._window(at)
            parts.append(data[at - start : address + size - start])
            at = start + len(data)
        return b"".join(parts)

    def _window(self, address: int) -> Tuple[int, bytes]:
        """The piece that an address lies in: neighbours are asked for next, and every copy takes nine calls."""
        start = max(self._low, address - address % WINDOW)
        if start not in self._known:
            size = min(self._high, address - address % WINDOW + WINDOW) - start
            if self._copied + size > MOST_BYTES:
                self._too_much()
            data = self._copy(start, size)
            if isinstance(data, Missing):
                raise GdbextError(f"device memory at {start:#x} cannot be copied: {data.reason}")
            self._copied += size
            self._known[start] = data
        return start, self._known[start]

    @staticmethod
    def _too_much() -> NoReturn:
        hint = "give an index of a part of it, or use cuda-gdb or a GPU core"
        raise GdbextError(f"calls copy at most {MOST_BYTES >> 20} MiB of device memory for one command", hint)

    def _copy(self, address: int, size: int) -> Maybe[bytes]:
        refused = self._caller.refusal()
        if refused is not None:
            return refused
        if not is_initialised(self._inferior.pid):
            return Missing("the process has not initialised CUDA, and that is not done for it")
        room = _PAGE + (size + _PAGE - 1) // _PAGE * _PAGE
        arguments: List[Argument] = [("void*", 0), ("unsigned long", room), ("int", _PROTECTION), ("int", _FLAGS)]
        scratch = self._caller.call("mmap", "unsigned long", [*arguments, ("int", -1), ("long", 0)])
        if isinstance(scratch, Missing):
            return scratch
        if scratch % _PAGE:
            return Missing("the process gets no memory from its system")
        return _Transfer(self._caller, self._say, self._inferior, scratch, room).run(address, size)


class _Transfer:
    """One copy, with scratch memory of its own: a page for answers, and what is copied behind it."""

    def __init__(
        self, caller: Caller, say: Callable[[str], None], inferior: gdb.Inferior, scratch: int, room: int
    ) -> None:
        self._caller, self._say, self._inferior = caller, say, inferior
        self._scratch, self._room = scratch, room
        self._on_its_way = False

    def run(self, address: int, size: int) -> Maybe[bytes]:
        with ExitStack() as undo:
            undo.callback(self._give_back)
            steps = (
                self._find_context,
                lambda: self._harmless(undo),
                lambda: self._stream(undo),
                lambda: self._transfer(address, size),
            )
            for step in steps:
                problem = step()
                if problem is not None:
                    return problem
            return bytes(self._inferior.read_memory(self._scratch + _PAGE, size))

    def _give_back(self) -> None:
        if self._on_its_way:
            self._say(
                f"{self._room >> 10} KiB at {self._scratch:#x} stay in the process: the copy may yet write to them"
            )
            return
        self._caller.any_thread()
        self._call("munmap", ("void*", self._scratch), ("unsigned long", self._room))

    def _find_context(self) -> Optional[Missing]:
        """A thread that has a context already: on another one the runtime would make one, on whichever device."""
        for _ in range(_MOST_THREADS):
            thread = self._caller.thread()
            if isinstance(thread, Missing):
                return thread
            answer = self._call("cuCtxGetCurrent", ("void*", self._scratch + _CONTEXT))
            if isinstance(answer, Missing):
                return answer
            if answer == 0 and self._word(_CONTEXT):
                return None
            self._caller.next_thread("without a CUDA context of its own")
        return Missing(f"the first {_MOST_THREADS} threads that could be used have no CUDA context")

    def _harmless(self, undo: ExitStack) -> Optional[Missing]:
        """Nothing is being captured, no error sticks to the context, and later calls disturb no capture elsewhere."""
        status = ("void*", self._scratch + _STATUS)
        problem = _as_problem(
            "cudaStreamIsCapturing", self._call("cudaStreamIsCapturing", ("void*", _LEGACY_STREAM), status)
        )
        if problem is None and self._word(_STATUS) & 0xFFFFFFFF:
            problem = Missing("a CUDA graph is being captured")
        if problem is not None:
            return problem
        self._inferior.write_memory(self._scratch + _MODE, _RELAXED.to_bytes(4, "little"))
        mode = ("void*", self._scratch + _MODE)
        problem = _as_problem(
            "cudaThreadExchangeStreamCaptureMode", self._call("cudaThreadExchangeStreamCaptureMode", mode)
        )
        if problem is None:
            undo.callback(self._unless_cut_off, "cudaThreadExchangeStreamCaptureMode", mode)
        return problem

    def _stream(self, undo: ExitStack) -> Optional[Missing]:
        answer = self._call("cudaStreamCreateWithFlags", ("void*", self._scratch), ("int", _NON_BLOCKING))
        problem = _as_problem("cudaStreamCreateWithFlags", answer)
        if problem is None:
            undo.callback(self._unless_cut_off, "cudaStreamDestroy", ("void*", self._word(_STREAM)))
        return problem

    def _transfer(self, address: int, size: int) -> Optional[Missing]:
        stream = ("void*", self._word(_STREAM))
        end = time.monotonic() + SECONDS
        self._on_its_way = True
        data = ("void*", self._scratch + _PAGE)
        answer = self._call(
            *("cudaMemcpyAsync", data, ("void*", address), ("unsigned long", size), ("int", _TO_HOST), stream)
        )
        problem = _as_problem("cudaMemcpyAsync", answer)
        if problem is not None:
            self._on_its_way = self._caller.cut_off is not None
            return problem
        while True:
            answer = self._call("cudaStreamQuery", stream)
            if answer != _NOT_READY:
                self._on_its_way = isinstance(answer, Missing)
                return _as_problem("cudaStreamQuery", answer)
            if time.monotonic() > end:
                return Missing(f"the copy did not end within {SECONDS:g} s: the device is busy or hangs")
            time.sleep(_BETWEEN_QUERIES)

    def _call(self, function: str, *arguments: Argument) -> Maybe[int]:
        return self._caller.call(function, "int", arguments)

    def _unless_cut_off(self, function: str, argument: Argument) -> None:
        """Undo something; not in a driver that a call did not come back from: the next one would not either."""
        if self._caller.cut_off is None:
            self._call(function, argument)
        elif function == "cudaStreamDestroy":
            self._say(
                f"the stream {argument[1]:#x} stays in the process: {self._caller.cut_off} did not come to its end"
            )

    def _word(self, offset: int) -> int:
        return int.from_bytes(bytes(self._inferior.read_memory(self._scratch + offset, 8)), "little")


def is_initialised(pid: int) -> bool:
    """Whether a process uses CUDA already: it has a device file mapped, or the driver's own threads."""
    try:
        with open(f"/proc/{pid}/maps", errors="replace") as maps:
            if any("/dev/nvidia" in line for line in maps):
                return True
        return any(_DRIVER_THREAD.match(_name(pid, tid)) for tid in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return False


def _name(pid: int, tid: str) -> str:
    try:
        with open(f"/proc/{pid}/task/{tid}/comm", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _as_problem(function: str, answer: Maybe[int]) -> Optional[Missing]:
    if isinstance(answer, Missing):
        return answer
    if answer == 0:
        return None
    if answer == _CAPTURE or 900 <= answer <= 908:
        return Missing(f"a CUDA graph is being captured ({function}: {answer}), and a call would spoil it")
    if answer in _STICKY:
        return Missing(
            f"an earlier error sticks to the CUDA context ({function}: {answer}); a GPU core may have the data"
        )
    return Missing(f"{function} says {answer}")
