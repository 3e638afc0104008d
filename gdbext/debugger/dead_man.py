"""Dead-man switch: ranks that stand at a breakpoint are released when nobody types anything for long enough."""

from __future__ import annotations

import signal
import threading
from typing import Callable, Optional

import gdb


class DeadMan:
    """Calls `release` in gdb's event loop, at its prompt, that many seconds after the last command or stop."""

    def __init__(self, release: Callable[[float], None]) -> None:
        self._release = release
        self._timer: Optional[threading.Timer] = None
        self.limit: Optional[float] = None  # seconds; None: not watching
        gdb.events.stop.connect(lambda event: self.rearm())
        gdb.events.cont.connect(lambda event: self._cancel())
        gdb.events.before_prompt.connect(self.rearm)

    def rearm(self) -> None:
        self._cancel()
        if self.limit is not None:
            self._timer = timer = threading.Timer(self.limit, lambda: gdb.post_event(lambda: self._over(timer)))
            timer.daemon = True
            # gdb's own thread must get the signals: the new one inherits this mask.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
            try:
                timer.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        self.limit = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self, timer: threading.Timer) -> None:
        if timer is self._timer and self.limit is not None:  # no command came between the timer and this event
            limit = self.limit
            self.end()
            self._release(limit)
