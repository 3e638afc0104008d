"""Something to be done later in gdb's own thread, between two of its events."""

from __future__ import annotations

import signal
import threading
from typing import Callable

import gdb


def later(seconds: float, body: Callable[[], object]) -> threading.Timer:
    """Runs `body` in gdb's event loop after some seconds, unless the timer is cancelled before."""
    timer = threading.Timer(seconds, lambda: gdb.post_event(body))
    start(timer)
    return timer


def start(thread: threading.Thread) -> None:
    """Start a thread that gets no signals: they are for gdb's own, and a new thread inherits the mask."""
    thread.daemon = True
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
