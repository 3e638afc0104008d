"""Device memory of a process in plain gdb: copied by calls in the process, which the user has allowed.

A stream of its own that waits for no other, an asynchronous copy of an explicit kind, a query until it is done:
cudaMemcpy (so do the printers of NVIDIA/cccl#9866) would run on the default stream and wait behind a kernel that
hangs. What was allocated for the copy is given back; only memory that a copy may still write to is left.
"""

from __future__ import annotations

import time
from typing import Callable, Dict, List, NoReturn, Optional, Tuple

import gdb

from gdbext.inside_gdb.calls.driver_calls import ANSWERS, BUSY, PAGE, DriverCalls, as_problem
from gdbext.inside_gdb.calls.target_calls import SECONDS, Caller
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Maybe, Missing

MOST_BYTES = 1 << 20
"""Copied for one command; more is for a debugger that reads the device, or for a GPU core."""
WINDOW = 64 << 10  # bytes of one copy
_NON_BLOCKING = 1  # cuda.h: CU_STREAM_NON_BLOCKING
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
        calls = DriverCalls.begin(self._caller, PAGE + (size + PAGE - 1) // PAGE * PAGE)
        return calls if isinstance(calls, Missing) else _Transfer(calls, self._say).run(address, size)


class _Transfer:
    """One copy: a page of the scratch memory for answers, and what is copied behind it."""

    def __init__(self, calls: DriverCalls, say: Callable[[str], None]) -> None:
        self._calls, self._say = calls, say
        self._on_its_way = False
        self._stream: Tuple[str, int] = ("void*", 0)
        calls.keep = self._kept

    def run(self, address: int, size: int) -> Maybe[bytes]:
        calls = self._calls
        try:
            steps = (calls.find_context, calls.nothing_captured, calls.relax, self._make_stream)
            for step in (*steps, lambda: self._transfer(address, size)):
                problem = step()
                if problem is not None:
                    return problem
            return bytes(gdb.selected_inferior().read_memory(calls.scratch + PAGE, size))
        finally:
            calls.end()

    def _kept(self) -> bool:
        if self._on_its_way:
            place = f"{self._calls.room >> 10} KiB at {self._calls.scratch:#x}"
            self._say(f"{place} stay in the process: the copy may yet write to them")
        return self._on_its_way

    def _make_stream(self) -> Optional[Missing]:
        calls = self._calls
        problem = calls.problem("cuStreamCreate", ("void*", calls.scratch + ANSWERS), ("int", _NON_BLOCKING))
        if problem is None:
            self._stream = ("void*", calls.number(ANSWERS))
            calls.undo_with(self._destroy_stream)
        return problem

    def _destroy_stream(self) -> None:
        if not self._calls.unless_cut_off("cuStreamDestroy_v2", self._stream):
            cut_off = self._calls.caller.cut_off
            self._say(f"the stream {self._stream[1]:#x} stays in the process: {cut_off} did not come to its end")

    def _transfer(self, address: int, size: int) -> Optional[Missing]:
        calls = self._calls
        end = time.monotonic() + SECONDS
        self._on_its_way = True
        target, source = ("void*", calls.scratch + PAGE), ("void*", address)
        problem = calls.problem("cuMemcpyDtoHAsync_v2", target, source, ("unsigned long", size), self._stream)
        if problem is not None:
            self._on_its_way = calls.caller.cut_off is not None
            return problem
        while True:
            answer = calls.call("cuStreamQuery", self._stream)
            if answer != BUSY:
                self._on_its_way = isinstance(answer, Missing)
                return as_problem("cuStreamQuery", answer)
            if time.monotonic() > end:
                return Missing(f"the copy did not end within {SECONDS:g} s: the device is busy or hangs")
            time.sleep(_BETWEEN_QUERIES)
