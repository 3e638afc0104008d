"""Stops running ranks from a timer: by a signal that processes ignore, and that gdb does not hand on.

gdb's own `interrupt` sends SIGINT. When it crosses another stop it is left waiting in the rank, and a rank that is let
go with it dies. SIGURG left waiting does nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import Iterator, Optional, Sequence

import gdb

from gdbext.debugger.timer import start

SIGNAL = "SIGURG"


@contextmanager
def heard() -> Iterator[None]:
    """gdb stops at the signal inside; what it does with it otherwise comes back."""
    before = _handling()
    gdb.execute(f"handle {SIGNAL} stop nopass", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"handle {SIGNAL} {before}", to_string=True)


def _handling() -> str:
    """`nostop noprint pass`, as `info signals` says it: Signal, Stop, Print, Pass to program."""
    words = gdb.execute(f"info signals {SIGNAL}", to_string=True).split(SIGNAL)[-1].split()[:3]
    return " ".join(name if word == "Yes" else f"no{name}" for name, word in zip(("stop", "print", "pass"), words))


def tap(pids: Sequence[int]) -> bool:
    """Stop what runs; returns whether there was a process to tap."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGURG)
        except OSError:
            continue
        return True
    return False


def tap_later(seconds: float, pids: Sequence[int]) -> threading.Timer:
    """Tap after some seconds; from a thread, so that gdb need not come round to it."""
    timer = threading.Timer(seconds, lambda: tap(pids))
    start(timer)
    return timer


def is_tap(event: Optional[gdb.StopEvent]) -> bool:
    return isinstance(event, gdb.SignalEvent) and event.stop_signal == SIGNAL
