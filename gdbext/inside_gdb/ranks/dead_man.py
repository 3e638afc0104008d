"""Dead-man switch: ranks that stand at a breakpoint are released when nobody types anything for long enough."""

from __future__ import annotations

import threading
from typing import Callable, List, Optional

import gdb

from gdbext.inside_gdb.base.timer import later

_WARN_AT = 0.75  # of the limit


class DeadMan:
    """Calls `release` in gdb's event loop, that many seconds after the last command or stop, and `warn` before."""

    def __init__(self, release: Callable[[float], None], warn: Callable[[str], None]) -> None:
        self._release, self._warn = release, warn
        self._timers: List[threading.Timer] = []
        self.limit: Optional[float] = None  # seconds; None: not watching
        self.while_running = False  # a rank that is moved alone does not stop the clock: the others stand still
        gdb.events.stop.connect(lambda event: self.rearm())
        gdb.events.cont.connect(lambda event: None if self.while_running else self._cancel())
        gdb.events.before_prompt.connect(self.rearm)

    def rearm(self) -> None:
        self._cancel()
        if self.limit is not None:
            left = self.limit * (1 - _WARN_AT)
            mine: List[threading.Timer] = []
            mine.append(later(self.limit, lambda: self._over(mine)))
            mine.append(later(self.limit - left, lambda: self._soon(mine, left)))
            self._timers = mine

    def end(self) -> None:
        self.limit = None
        self._cancel()

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _soon(self, timers: List[threading.Timer], left: float) -> None:
        if timers is self._timers:
            self._warn(f"no command for a while: in {left:g} s every rank is released (any command keeps them)")

    def _over(self, timers: List[threading.Timer]) -> None:
        if timers is self._timers and self.limit is not None:  # no command came between the timer and this event
            limit = self.limit
            self.end()
            self._release(limit)
