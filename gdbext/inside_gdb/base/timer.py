"""Something to be done later in gdb's own thread, between two of its events."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from typing import Callable

import gdb

from gdbext.inside_gdb.base import compat

_WAITS_FOR_A_LINE = 0x80000
"""RL_STATE_CALLBACK of readline.h."""


def later(seconds: float, body: Callable[[], object]) -> threading.Timer:
    """Runs `body` in gdb's event loop after some seconds, unless the timer is cancelled before."""
    timer = threading.Timer(seconds, lambda: gdb.post_event(body))
    start(timer)
    return timer


def beside_the_line(say: Callable[[], None]) -> None:
    """Say something now. A line that somebody has begun to type stands behind the prompt again, below it, where gdb
    shows the symbols of its readline (Debian's gdb and the PyPI wheel do)."""
    try:
        readline = ctypes.CDLL(None)
        state = ctypes.c_ulong.in_dll(readline, "rl_readline_state").value
        typed = ctypes.c_int.in_dll(readline, "rl_end").value if state & _WAITS_FOR_A_LINE else 0
        again = [readline.rl_on_new_line, readline.rl_redisplay]
    except (ValueError, AttributeError):
        typed, again = 0, []
    if not typed or not compat.somebody_types():
        say()
        return
    os.write(1, b"\n")
    say()
    gdb.flush(gdb.STDERR)
    for step in again:
        step()


def start(thread: threading.Thread) -> None:
    """Start a thread that gets no signals: they are for gdb's own, and a new thread inherits the mask."""
    thread.daemon = True
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
