"""A rank that a signal ends while it stands at a breakpoint takes its socket away first.

Python runs no `atexit` functions when SIGTERM ends it, as launchers do to all ranks when one has failed. So while the
main thread waits here (for its turn, or for what is typed), the signals that would end it run a handler. Elsewhere they
do what they did: a handler of Python would have to wait for a main thread that is in a collective.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Callable, Iterator, Optional

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def tidied(tidy: Callable[[], None]) -> Iterator[None]:
    """Around a wait. What the program itself does on such a signal is left to it."""

    def end(number: int, frame: Optional[FrameType]) -> None:
        signal.signal(number, signal.SIG_DFL)
        try:
            tidy()
        finally:
            os.kill(os.getpid(), number)

    mine = []
    if threading.current_thread() is threading.main_thread():
        mine = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in mine:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)
