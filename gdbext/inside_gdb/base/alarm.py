"""A signal for gdb itself after some seconds, by a timer of the kernel: it comes also while gdb lets no Python run."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import signal
from types import TracebackType
from typing import Any, ContextManager, Optional, Type

from gdbext.commands.declaration import loaded

_CLOCK_MONOTONIC = 1
_SIGEV_SIGNAL = 0
_HEALTHY_SECONDS, _STUCK_SECONDS = 1.0, 30.0  # seconds; a healthy attach takes less than one
_RESUME_SECONDS = 0.25


@functools.lru_cache(maxsize=1)
def _timers() -> Any:
    """The numbers of this machine's timer calls; None where they are not known. Loaded when they are needed."""
    machine = loaded("gdbext.capture.machine:this_machine")()
    return machine.timers if machine is not None else None


def available() -> bool:
    """Whether there are timers on this machine."""
    return _timers() is not None


class _Event(ctypes.Structure):
    """struct sigevent."""

    _fields_ = [("value", ctypes.c_long), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_int * 12)]


class Alarm:
    """`with Alarm(2.0):` SIGINT comes after two seconds if the block lasts that long.

    `number`: another signal; `again`: it comes every so many seconds. Only where it is `available()`.
    """

    def __init__(self, seconds: float, number: int = signal.SIGINT, again: bool = False) -> None:
        self._seconds, self._number, self._again = seconds, number, again
        self._calls = _timers()
        self._timer = ctypes.c_int()
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    def __enter__(self) -> Alarm:
        event = _Event(0, self._number, _SIGEV_SIGNAL)
        if self._call(self._calls.create, _CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            raise OSError(ctypes.get_errno(), "timer_create")
        whole, rest = divmod(self._seconds, 1)
        delay = (int(whole), int(rest * 1e9) or 1)
        times = (ctypes.c_long * 4)(*(delay if self._again else (0, 0)), *delay)
        self._call(self._calls.settime, self._timer, 0, times, None)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._call(self._calls.delete, self._timer)


def repeated_sigchld() -> ContextManager[object]:
    """Around attaching and detaching: gdb waits for ever for a process whose exec() ended the thread that it waits for
    (seen with 13.1 and 18.1), and the other ranks stand still meanwhile. A signal makes it look again; SIGCHLD does
    nothing else. Where an exec() and the attach wait for each other in the kernel, only the end of gdb helps."""
    stack = contextlib.ExitStack()
    if available():
        stack.enter_context(Alarm(_HEALTHY_SECONDS, signal.SIGCHLD, again=True))
        stack.enter_context(Alarm(_STUCK_SECONDS, signal.SIGKILL))
    return stack


def stirred() -> ContextManager[object]:
    """Around resuming several ranks: when one of them execs in that moment, gdb may put the news aside and wait for the
    next, for ever, with all ranks stopped and deaf to Ctrl-C (13.1 and 18.1). It needs a nudge for each such rank."""
    return Alarm(_RESUME_SECONDS, signal.SIGCHLD, again=True) if available() else contextlib.nullcontext()


def nudged_from_now() -> None:
    """The same until the end of gdb."""
    repeated_sigchld()
