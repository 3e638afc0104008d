"""A Ctrl-C for gdb itself after some seconds, by a timer of the kernel: it comes also while gdb lets no Python run."""

from __future__ import annotations

import ctypes
import platform
import signal
from types import TracebackType
from typing import Optional, Type

AVAILABLE = platform.machine() == "x86_64"  # the numbers below are its
_TIMER_CREATE, _TIMER_SETTIME, _TIMER_DELETE = 222, 223, 226
_CLOCK_MONOTONIC = 1
_SIGEV_SIGNAL = 0


class _Event(ctypes.Structure):
    """struct sigevent."""

    _fields_ = [("value", ctypes.c_long), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("pad", ctypes.c_int * 12)]


class Alarm:
    """`with Alarm(2.0):` SIGINT comes after two seconds if the block lasts that long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer = ctypes.c_int()
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    def __enter__(self) -> Alarm:
        event = _Event(0, signal.SIGINT, _SIGEV_SIGNAL)
        if self._call(_TIMER_CREATE, _CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            raise OSError(ctypes.get_errno(), "timer_create")
        whole, rest = divmod(self._seconds, 1)
        once = (ctypes.c_long * 4)(0, 0, int(whole), int(rest * 1e9) or 1)
        self._call(_TIMER_SETTIME, self._timer, 0, once, None)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._call(_TIMER_DELETE, self._timer)
