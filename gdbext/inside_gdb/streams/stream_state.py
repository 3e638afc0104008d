"""The state of streams and events, by calls of the driver. Capturing first: NVIDIA says a query can spoil a capture."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import FrozenSet, Iterator, List, Optional, Sequence, Set

import gdb

from gdbext.analysis.failures.error_codes import code
from gdbext.capture.memory.maps import read_maps
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.memory import READABLE, TargetMemory
from gdbext.inside_gdb.base.selected_frame import register
from gdbext.inside_gdb.calls.driver_calls import ANSWERS, BUSY, CAPTURE_ERRORS, DriverCalls
from gdbext.inside_gdb.calls.target_calls import Argument, Caller
from gdbext.inside_gdb.stacks.stack_walk import by_number
from gdbext.knowledge.runtimes.cuda_streams import CAPTURE_STATES, INVALID, LEGACY, NON_BLOCKING, PER_THREAD, SPECIAL
from gdbext.model.codes import Code
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import AFTER_ERROR, NO_STREAM, NOT_MAPPED, Asked

_ALIGNMENT = 8


class StreamCalls:
    """The driver of the selected inferior, asked about many handles; no more after one call that did not return."""

    def __init__(self, calls: DriverCalls, memory: TargetMemory) -> None:
        self._calls, self._memory = calls, memory
        self._answer: Argument = ("void*", calls.scratch + ANSWERS)
        self._failed: Optional[Missing] = None
        self._map = read_maps(memory.pid)
        self._free: Set[int] = set()  # streams that are not being captured, while the other threads stand still
        self._stacks: Optional[FrozenSet[int]] = None  # where the mappings begin that are a thread's stack

    def stream(self, handle: int, own_thread: str = "") -> Maybe[Asked]:
        """Of a stream. `own_thread` is the one whose per-thread stream is meant."""
        refused = self._refusal(handle, own_thread)
        if refused is not None:
            return refused
        stream = ("void*", handle or LEGACY)
        capture = self._asked("cuStreamIsCapturing", stream, self._answer)
        if isinstance(capture, Missing):
            return capture
        if capture:
            return _driver_error(capture)
        status = self._calls.number(ANSWERS, 4)
        flags = self._getter("cuStreamGetFlags", stream, 4)
        known = Asked(
            state=CAPTURE_STATES.get(status, "capturing"),
            error=None,
            blocking=flags if isinstance(flags, Missing) else not flags & NON_BLOCKING,
            priority=self._getter("cuStreamGetPriority", stream, 4),
            id=self._getter("cuStreamGetId", stream, 8),
            device=self._getter("cuStreamGetDevice", stream, 4),
        )
        if status:
            return known
        self._free.add(stream[1])
        found = self._query("cuStreamQuery", stream, ("idle", "busy"))
        return (
            replace(known, state=found)
            if isinstance(found, Missing)
            else replace(known, state=found.state, error=found.error)
        )

    def event(self, handle: int, streams: Sequence[int]) -> Maybe[Asked]:
        """Of an event. Whether it belongs to a capture cannot be asked without spoiling it: so none may be going on in
        any of the streams that are known."""
        refused = self._refusal(handle, "") if self._failed is None else self._failed
        if refused is not None:
            return refused
        if self._calls.caller.others_run:
            self._free.clear()
        for stream in dict.fromkeys((LEGACY, *(one or LEGACY for one in streams))):
            if stream in self._free or stream == PER_THREAD or self._refusal(stream, "") is not None:
                continue
            capture = self._asked("cuStreamIsCapturing", ("void*", stream), self._answer)
            if isinstance(capture, Missing):
                return Missing(f"whether stream {stream:#x} is being captured is not known: {capture.reason}")
            if capture in CAPTURE_ERRORS or (not capture and self._calls.number(ANSWERS, 4)):
                return Missing(f"stream {stream:#x} is being captured, and asking its events would spoil the capture")
            self._free.add(stream)
        return self._query("cuEventQuery", ("void*", handle), ("done", "pending"))

    def _query(self, function: str, handle: Argument, words: Sequence[str]) -> Maybe[Asked]:
        problem = self._failed if self._failed is not None else self._calls.relax()
        if problem is not None:
            return problem
        answer = self._asked(function, handle)
        if isinstance(answer, Missing):
            return answer
        return Asked(state=words[answer == BUSY]) if answer in (0, BUSY) else _driver_error(answer)

    def _getter(self, function: str, stream: Argument, size: int) -> Maybe[int]:
        answer = (
            self._asked(function, stream, self._answer)
            if self._calls.has(function)
            else Missing(f"this driver has no {function}")
        )
        if isinstance(answer, Missing):
            return answer
        if answer:
            return Missing(f"{function} says {_name(answer)}")
        return self._calls.number(ANSWERS, size, signed=function == "cuStreamGetPriority")

    def _asked(self, function: str, *arguments: Argument) -> Maybe[int]:
        if self._failed is not None:
            return self._failed
        answer = self._calls.call(function, *arguments)
        if isinstance(answer, Missing) and self._calls.has(function):
            self._failed = Missing(f"not asked any more: {answer.reason}", Code.GIVEN_UP)
        return answer

    def _refusal(self, handle: int, own_thread: str) -> Optional[Missing]:
        """Why the driver must not be given this handle: it looks into what a handle points to."""
        if handle == PER_THREAD:
            thread = self._calls.caller.thread()
            if own_thread and thread == own_thread:
                return None
            return Missing("each thread has its own, and gdbext cannot call on that thread")
        if handle in SPECIAL:
            return None
        place = self._memory.classify(handle)
        if place.kind not in READABLE or self._memory.read(handle, 8) is None:
            return NOT_MAPPED
        mapping = self._map.find(handle)
        if mapping is None or mapping.permissions[:2] != "rw" or handle % _ALIGNMENT:
            return NO_STREAM
        if self._stacks is None:
            self._stacks = frozenset(found.start for found in map(self._map.find, _stack_pointers()) if found)
        return NO_STREAM if mapping.start in self._stacks else None


def _stack_pointers() -> List[int]:
    """Of all threads of the selected inferior. The selection comes back."""
    found: List[Optional[int]] = []
    with compat.kept_selection():
        for thread in gdb.selected_inferior().threads():
            try:
                thread.switch()
                found.append(register(gdb.newest_frame(), "sp"))
            except gdb.error:
                continue
    return [one for one in found if one is not None]


@contextmanager
def stream_calls(caller: Caller) -> Iterator[Maybe[StreamCalls]]:
    """The driver of the selected inferior for a while; else why it cannot be asked. All is undone at the end."""
    calls = DriverCalls.begin(caller)
    if isinstance(calls, Missing):
        yield calls
        return
    try:
        problem = calls.find_context()
        yield StreamCalls(calls, TargetMemory()) if problem is None else problem
    finally:
        calls.end()


def selected_thread() -> str:
    """The selected thread as `Caller` names its own."""
    thread = gdb.selected_thread()
    return by_number(thread) if thread is not None else ""


def _driver_error(number: int) -> Asked:
    word = "capturing" if number in CAPTURE_ERRORS else "invalid" if number in INVALID else "failed"
    return Asked(word, code("CUresult", number), *([AFTER_ERROR] * 4))


def _name(number: int) -> str:
    found = code("CUresult", number)
    return f"{found.name} ({number})" if found else str(number)
