"""Ranks run up to the same place and wait there, while the others still come.

gdb resumes one inferior or all of them. A part of them runs when each of its inferiors is resumed in the background
with `schedule-multiple` off; the first stop of any of them stops the part. So the ranks come one after the other.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Callable, Dict, List, Optional, Sequence, Set

import gdb

from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.rank_breakpoints.rank_points import Arrival, RankPoint, chosen
from gdbext.inside_gdb.ranks.ended_ranks import has_all_threads
from gdbext.inside_gdb.ranks.timed_stop import NextStop, catching_signal, interrupt_later, is_interrupt_stop

TOGETHER = "schedule-multiple"
_WHILE_RUNNING = {
    **compat.NO_NOTIFICATIONS,
    "pagination": "off",
    "confirm": "off",
    "print inferior-events": "off",
    "python print-stack": "message",  # `compat.run` looks for a Ctrl-C that gdb has forgotten
}
_FIRST_NUDGE = 0.5  # seconds without an arrival, until those that came too early are let pass
_TRIES = 3
_LEAST = 0.05  # seconds


class Gathering:
    """One per gdb. `here`: the ranks that stand at the place, by number of the inferior."""

    def __init__(self, next_stop: NextStop) -> None:
        self._next_stop = next_stop
        self.active = False
        self.here: Dict[int, Arrival] = {}
        self.focus: Optional[Arrival] = None
        self.stranger: Optional[str] = None  # what else has stopped the program
        self.perhaps_past = False  # those that did not come may have passed the place before
        self._ours: Set[int] = set()
        self._later: List[Callable[[], object]] = []
        self._new: Optional[Arrival] = None
        self._event: Optional[gdb.StopEvent] = None
        self._live: List[gdb.Inferior] = []
        self._tries = 0  # to find out by waiting for all who has passed the place
        self._waited = 0.0  # seconds that ranks have run since the last arrival
        self._nudge = self._patience = 0.0  # how long they may
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
        self.here, self.focus, self.stranger, self.perhaps_past = {}, None, None, False
        self._tries = _TRIES
        self._waited, self._nudge, self._patience = 0.0, min(_FIRST_NUDGE, patience), patience
        self.active = True
        self._ours = {point.number for point in ours}
        for point in points:
            point.silent = True  # they come one after the other; what counts is said in the end
        try:
            with compat.settings(_WHILE_RUNNING), catching_signal():
                while True:
                    self._live = [one for one in gdb.inferiors() if compat.kind_of(one) == compat.HAS_PROCESS]
                    coming = self._coming()
                    if not coming:
                        self._all_are_here()
                        if self.focus is not None:
                            return True
                    if self.focus is None and self._nobody_stops(points, coming):
                        self._let_pass()
                        coming = self._live
                    if not coming:
                        return False
                    self._resume(coming, len(coming) == len(self._live))
                    if not self._goes_on() or self.stranger is not None:
                        return self.focus is not None
        finally:
            self.active = False
            for point in points:
                if point.is_valid():
                    point.silent = False

    def _coming(self) -> List[gdb.Inferior]:
        return [one for one in self._live if one.num not in self.here]

    def _all_are_here(self) -> None:
        points = {arrival.point.number: arrival.point for arrival in self.here.values()}
        if len(points) == 1:
            next(iter(points.values())).turns.begin(self.here)

    def _nobody_stops(self, points: Sequence[RankPoint], coming: Sequence[gdb.Inferior]) -> bool:
        """Everybody who may stop has come, and nobody did. The others are waited for a few times nevertheless: once
        all have stood at the place, it is known who has passed it."""
        if any(one.num not in self.here for one in chosen([*points], self._live)):
            return False
        return not coming or not self._tries or self._turns_are_known()

    def _turns_are_known(self) -> bool:
        numbers = self._nums(self._live)
        return all(arrival.point.turns.known(numbers) for arrival in self.here.values())

    def run_free(self) -> None:
        """All ranks run until something stops them; a tap that was left from before does not."""
        self.stranger = None
        with catching_signal():
            while True:
                self._event = None
                resume([one for one in gdb.inferiors() if one.pid], True, quietly=False)
                if self.stranger is not None or self._next_stop.took(self._event) or not is_interrupt_stop(self._event):
                    return

    def _limit(self) -> float:
        """How long those that come may run until the next arrival."""
        return self._patience if self.focus is not None or self._turns_are_known() else self._nudge

    def _goes_on(self) -> bool:
        """Whether the last stop was one on the way."""
        event, arrival = self._event, self._new
        if self._next_stop.took(event):
            return False
        if isinstance(event, gdb.BreakpointEvent) and arrival is not None:
            if any(point.number not in self._ours for point in event.breakpoints):
                self.stranger = "another breakpoint at the same place"
                return False
            self._waited = 0.0
            if not self._is_behind(arrival):
                self._hold(arrival)
            return True
        if not is_interrupt_stop(event):
            self.stranger = _words(event)
            return False
        if self._waited < self._limit() * 0.9:
            return True  # it was sent before somebody came
        if self.focus is not None:
            self._suppose_they_have_passed(self.focus.point)
            return False
        self._tries = max(0, self._tries - 1)
        self._nudge = min(self._patience, 2 * self._nudge)  # those who have not come wait for one that has
        self._let_pass()
        return True

    def _suppose_they_have_passed(self, point: RankPoint) -> None:
        """Who has not come was most likely past the place when all began to run, and waits for the rank that stops."""
        self.perhaps_past = not self._turns_are_known()
        if self.perhaps_past:
            point.turns.begin(self._nums(self._live))

    def _is_behind(self, arrival: Arrival) -> bool:
        """Whether those that it is to meet have passed the place already: it goes on, and meets them the next time."""
        number, turns = arrival.inferior.num, arrival.point.turns
        if arrival.wanted or not turns.known(self._nums(self._live)):
            return False
        if self.focus is not None:
            return self.focus.point is arrival.point and turns.is_ahead(self.focus.inferior.num, number)
        absent = [one.num for one in chosen([arrival.point], self._coming()) if one.num != number]
        return any(not turns.is_ahead(number, one) for one in absent)

    def _hold(self, arrival: Arrival) -> None:
        self.here[arrival.inferior.num] = arrival
        # It stands right at the instruction: when gdb is killed, it must not be the breakpoint's.
        compat.enable_location(arrival.point, arrival.inferior.num, False)
        if arrival.wanted and self.focus is None:
            self.focus = arrival

    def _let_pass(self) -> None:
        self.release()
        self._waited = 0.0

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
        left = max(_LEAST, self._limit() - self._waited)
        timer = interrupt_later(left, [one.pid for one in coming]) if self.here else None
        begun = time.monotonic()  # to start a thread may take long on a busy machine
        try:
            resume(coming, everybody)
        finally:
            self._waited += time.monotonic() - begun
            if timer is not None:
                timer.cancel()
            later, self._later = self._later, []
            for body in later:
                body()


def resume(coming: Sequence[gdb.Inferior], everybody: bool, quietly: bool = True) -> None:
    """Run them until one stops. `everybody`: no other is attached. Raises gdb.error; some may run then."""
    selected = gdb.selected_inferior().num
    halves = {one.num for one in coming if not has_all_threads(one)}  # gdb fails to resume them as often as not
    partly = bool(halves) or not everybody
    with compat.settings({TOGETHER: "off" if partly else "on"}):
        try:
            if partly:
                *others, last = sorted(coming, key=lambda one: (one.num not in halves, one.num == selected))
                for inferior in others:
                    _begin(inferior)
                compat.switch_inferior(last)
            if quietly:
                compat.run("continue")
            else:
                gdb.execute("continue")
        except gdb.error:
            _step_aside()
            raise


def _begin(inferior: gdb.Inferior) -> None:
    try:
        compat.switch_inferior(inferior)
        gdb.execute("continue &", to_string=True)
    except gdb.error:  # it is no more what it was: gdb hears of it when another one runs
        _step_aside()


def _step_aside() -> None:
    """While a thread is selected that is gone, gdb fails at whatever it is told, settings too."""
    for inferior in gdb.inferiors():
        if inferior.threads() and has_all_threads(inferior):
            with suppress(gdb.error):
                min(inferior.threads(), key=lambda thread: thread.num).switch()
                return


def _words(event: Optional[gdb.StopEvent]) -> str:
    if isinstance(event, gdb.SignalEvent):
        return f"signal {event.stop_signal}"
    if isinstance(event, gdb.BreakpointEvent):
        return f"breakpoint {', '.join(str(point.number) for point in event.breakpoints)}"
    return "a rank has ended" if event is None else "no breakpoint"
