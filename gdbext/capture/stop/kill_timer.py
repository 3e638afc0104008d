"""Ends this process when a stop outlasts its limit: the kernel then lets go of every thread that we trace.

A tracer that is itself stopped (SIGSTOP), frozen by its cgroup, or blocked on a page or a file cannot release its
tracees: they stand still for as long as that lasts. So the kernel keeps the time: a POSIX timer of this process, set
before the first thread is seized, whose signal is SIGKILL.

A guard process could do the same, but it would take time to start, could be stopped or frozen along with us, and would
need care not to kill a recycled pid or to outlive us. The timer costs 5 us. Measured on Linux 6.18: it ends a tracer
that got SIGSTOP, one in a frozen cgroup of version 2, and one that waits for a page that never comes. The freezer of
cgroups of version 1 keeps every signal from a process until it is thawed: there the threads stand still until then.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from types import TracebackType
from typing import Any, Optional, Sequence, Type

from gdbext.capture.copies.held_note import Note

GRACE = 1.0
"""Seconds beyond the limit of a stop after which this process is ended."""
_SIGEV_SIGNAL = 0  # asm-generic/siginfo.h


class _Event(ctypes.Structure):
    """struct sigevent: 64 bytes."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("_", ctypes.c_char * 48),
    )


class _Times(ctypes.Structure):
    """struct itimerspec of a 64-bit machine."""

    _fields_ = (("interval", ctypes.c_long * 2), ("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _function(name: str) -> Any:
    """In libc since glibc 2.34, before that in librt."""
    for library in (None, "librt.so.1"):
        try:  # PyDLL keeps the interpreter's lock: these calls do not block
            return getattr(ctypes.PyDLL(library, use_errno=True), name)
        except (OSError, AttributeError):
            continue
    return None


_create, _settime, _delete = map(_function, ("timer_create", "timer_settime", "timer_delete"))


class KillTimer:
    """`with KillTimer(...) as timer:` around everything from the first seizing to the end of the thread that traces.
    Each `start` gives this process `seconds` and the grace from then on. A forked child does not inherit it."""

    def __init__(self, pids: Sequence[int], seconds: float, note: Optional[Note] = None) -> None:
        self._pids, self._seconds, self._note = pids, seconds + GRACE, note
        self._timer, self._made = ctypes.c_void_p(), False
        self.problem: Optional[str] = None  # why there is none

    def __enter__(self) -> KillTimer:
        if _create is None:
            self.problem = "the C library has no timer_create"
            return self
        event = _Event(None, signal.SIGKILL, _SIGEV_SIGNAL)
        if _create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)) != 0:
            self.problem = f"timer_create: {os.strerror(ctypes.get_errno())}"
        self._made = self.problem is None
        return self

    def start(self) -> None:
        """From now on."""
        if self._note is not None:
            self._note.holds(self._pids, self._seconds)
        self._expires_in(self._seconds)

    def stop(self) -> None:
        """Nobody is held any more: from now on a processor may be waited for as long as it takes."""
        self._expires_in(0.0)
        if self._note is not None:
            self._note.free()

    def _expires_in(self, seconds: float) -> None:
        """Never, where it is 0."""
        if self._made:
            whole = int(seconds)
            times = _Times((0, 0), whole, int((seconds - whole) * 1e9))
            _settime(self._timer, 0, ctypes.byref(times), None)

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], where: Optional[TracebackType]
    ) -> None:
        if self._made:
            _delete(self._timer)
        if self._note is not None:
            self._note.free()


def why_none() -> Optional[str]:
    """Why a stop of ours would have no such limit; `None` when it will."""
    with KillTimer((), 0.0) as timer:
        return timer.problem
