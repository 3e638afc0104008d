"""Ranks run up to the same place and wait there, while the others still come.

gdb resumes one inferior or all of them. A part of them runs when each of its inferiors is resumed in the background
with `schedule-multiple` off; the first stop of any of them stops the part. So the ranks come one after the other.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Callable, Dict, List, Optional, Sequence, Set

import gdb

from gdbext.debugger import compat
from gdbext.debugger.fates import whole
from gdbext.debugger.rank_points import Arrival, RankPoint, chosen
from gdbext.debugger.tap import heard, is_tap, tap_later

TOGETHER = "schedule-multiple"
_WHILE_RUNNING = {**compat.QUIETLY, "pagination": "off", "confirm": "off", "print inferior-events": "off"}
_FIRST_NUDGE = 0.5  # seconds without an arrival, until those that came too early are let pass


class Gathering:
    """One per gdb. `here`: the ranks that stand at the place, by number of the inferior."""

    def __init__(self) -> None:
        self.active = False
        self.here: Dict[int, Arrival] = {}
        self.focus: Optional[Arrival] = None
        self.stranger: Optional[str] = None  # what else has stopped the program
        self._ours: Set[int] = set()
        self._later: List[Callable[[], object]] = []
        self._new: Optional[Arrival] = None
        self._event: Optional[gdb.StopEvent] = None
        self._since = self._nudge = self._patience = 0.0  # the last arrival; how long to wait for the next one
        gdb.events.stop.connect(self._stopped)

    def arrived(self, arrival: Arrival) -> None:
        """A breakpoint has been hit; whether it stops the program gdb decides, who may have others there."""
        self._new = arrival

    def disturbed(self, why: str) -> None:
        """Something is about to stop the program."""
        self.stranger = why

    def afterwards(self, body: Callable[[], object]) -> None:
        """Print something: at once, or, while gdb's own output is swallowed, after the next stop."""
        if self.active:
            self._later.append(body)
        else:
            body()

    def _stopped(self, event: gdb.StopEvent) -> None:
        self._event = event

    def run(self, points: Sequence[RankPoint], patience: float, ours: Sequence[RankPoint]) -> bool:
        """All ranks run until one has come that stops, and the others had time to come as well.

        `ours`: all breakpoints that tell by themselves whether they stop. Returns whether it is so; no: something else
        has stopped the program, which `stranger` names.
        """
        self.here, self.focus, self.stranger = {}, None, None
        self._since, self._nudge, self._patience = time.monotonic(), min(_FIRST_NUDGE, patience), patience
        self.active = True
        self._ours = {point.number for point in ours}
        for point in points:
            point.silent = True  # they come one after the other; what counts is said in the end
        try:
            with compat.settings(_WHILE_RUNNING), heard():
                while True:
                    live = [one for one in gdb.inferiors() if compat.kind_of(one) == compat.HAS_PROCESS]
                    coming = [one for one in live if one.num not in self.here]
                    if self.focus is not None and not coming:
                        return True
                    if self.focus is None and not set(self._nums(chosen([*points], live))) - set(self.here):
                        self._let_pass()  # everybody who may stop has come, and nobody did
                        coming = live
                    if not coming:
                        return False
                    self._resume(coming, len(coming) == len(live))
                    if not self._goes_on() or self.stranger is not None:
                        return self.focus is not None
        finally:
            self.active = False
            for point in points:
                if point.is_valid():
                    point.silent = False

    def run_free(self) -> None:
        """All ranks run until something stops them; a tap that was left from before does not."""
        self.stranger = None
        with heard():
            while True:
                self._event = None
                resume([one for one in gdb.inferiors() if one.pid], True, quietly=False)
                if self.stranger is not None or not is_tap(self._event):
                    return

    def _limit(self) -> float:
        """How long to wait for the next arrival."""
        return self._patience if self.focus is not None else self._nudge

    def _goes_on(self) -> bool:
        """Whether the last stop was one on the way."""
        event, arrival = self._event, self._new
        if isinstance(event, gdb.BreakpointEvent) and arrival is not None:
            if any(point.number not in self._ours for point in event.breakpoints):
                self.stranger = "another breakpoint at the same place"
                return False
            self.here[arrival.inferior.num] = arrival
            # It stands right at the instruction: when gdb is killed, it must not be the breakpoint's.
            compat.enable_location(arrival.point, arrival.inferior.num, False)
            self._since = time.monotonic()
            if arrival.wanted and self.focus is None:
                self.focus = arrival
            return True
        if not is_tap(event):
            self.stranger = _words(event)
            return False
        if time.monotonic() - self._since < self._limit() * 0.9:
            return True  # it was sent before somebody came
        if self.focus is not None:
            return False
        self._nudge = min(self._patience, 2 * self._nudge)  # those who have not come wait for one that has
        self._let_pass()
        return True

    def _let_pass(self) -> None:
        self.release()
        self._since = time.monotonic()

    def release(self) -> None:
        """Nobody is held any more; they go on with the next resume."""
        for arrival in self.here.values():
            if arrival.point.is_valid() and arrival.inferior.is_valid():
                compat.enable_location(arrival.point, arrival.inferior.num, True)
        self.here = {}

    @staticmethod
    def _nums(inferiors: Sequence[gdb.Inferior]) -> List[int]:
        return [inferior.num for inferior in inferiors]

    def _resume(self, coming: Sequence[gdb.Inferior], everybody: bool) -> None:
        """Run them until one stops."""
        self._event = self._new = None
        timer = tap_later(self._limit(), [one.pid for one in coming]) if self.here else None
        try:
            resume(coming, everybody)
        finally:
            if timer is not None:
                timer.cancel()
            later, self._later = self._later, []
            for body in later:
                body()


def resume(coming: Sequence[gdb.Inferior], everybody: bool, quietly: bool = True) -> None:
    """Run them until one stops. `everybody`: no other is attached. Raises gdb.error; some may run then."""
    selected = gdb.selected_inferior().num
    halves = {one.num for one in coming if not whole(one)}  # gdb fails to resume them as often as not
    partly = bool(halves) or not everybody
    with compat.settings({TOGETHER: "off" if partly else "on"}):
        try:
            if partly:
                *others, last = sorted(coming, key=lambda one: (one.num not in halves, one.num == selected))
                for inferior in others:
                    _begin(inferior)
                compat.switch(last)
            gdb.execute("continue", to_string=quietly)
        except gdb.error:
            _step_aside()
            raise


def _begin(inferior: gdb.Inferior) -> None:
    try:
        compat.switch(inferior)
        gdb.execute("continue &", to_string=True)
    except gdb.error:  # it is no more what it was: gdb hears of it when another one runs
        _step_aside()


def _step_aside() -> None:
    """While a thread is selected that is gone, gdb fails at whatever it is told, settings too."""
    for inferior in gdb.inferiors():
        if inferior.threads() and whole(inferior):
            with suppress(gdb.error):
                min(inferior.threads(), key=lambda thread: thread.num).switch()
                return


def _words(event: Optional[gdb.StopEvent]) -> str:
    if isinstance(event, gdb.SignalEvent):
        return f"signal {event.stop_signal}"
    if isinstance(event, gdb.BreakpointEvent):
        return f"breakpoint {', '.join(str(point.number) for point in event.breakpoints)}"
    return "a rank has ended" if event is None else "no breakpoint"
