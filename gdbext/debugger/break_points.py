"""Breakpoints over many inferiors: the chosen ranks stop, and gdb stops the others with them."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional, Sequence, Tuple

import gdb

from gdbext.commands.break_points import BreakOptions
from gdbext.debugger import compat
from gdbext.debugger.dead_man import DeadMan
from gdbext.model.attached import AttachedRank
from gdbext.model.break_points import BreakPoint, BreakTable, RankPlace
from gdbext.model.errors import GdbextError

KILLED = (
    "While the ranks run, the breakpoint is an instruction in their code: a gdb killed by SIGKILL then leaves it "
    "there, and the next rank that reaches it dies of SIGTRAP."
)


class RankPoint(gdb.Breakpoint):
    """One llm-break. gdb inserts it into every inferior that has the place."""

    def __init__(self, options: BreakOptions, say: Callable[[str], None], rank_of: Callable[[], Optional[int]]) -> None:
        super().__init__(options.location)
        self.options = options
        self.passed: Dict[str, int] = {}
        self._say, self._rank_of = say, rank_of

    def stop(self) -> bool:
        inferior = gdb.selected_inferior()
        if self.options.pids is not None and inferior.pid not in self.options.pids:
            return False
        rank = self._rank_of()
        name = f"pid {inferior.pid}" if rank is None else f"rank {rank}"
        if self.options.condition:
            try:
                if not gdb.parse_and_eval(self.options.condition):
                    return False
            except gdb.error as error:
                self._say(f"{name}: the condition of breakpoint {self.number} cannot be told, so it stops: {error}")
                return True
        self.passed[name] = count = self.passed.get(name, 0) + 1
        if count < self.options.count:
            return False
        if self.options.action == "log":
            self._say(f"{name} at {self.options.location}, passing {count}")
            return False
        return True


class RankBreaks:
    """One per gdb. `ranks` lists the inferiors as ranks; `detach_all` lets all of them go."""

    def __init__(
        self,
        ranks: Callable[[], Sequence[AttachedRank]],
        rank_of: Callable[[gdb.Inferior], Optional[int]],
        detach_all: Callable[[], object],
        say: Callable[[str], None],
    ) -> None:
        self._ranks, self._rank_of, self._detach_all, self._say = ranks, rank_of, detach_all, say
        self._points: List[RankPoint] = []
        self._hit: Optional[Tuple[int, int]] = None  # number of the inferior, of the breakpoint
        self._dead_man: Optional[DeadMan] = None

    def add(self, options: BreakOptions) -> BreakTable:
        try:
            point = RankPoint(options, self._say, lambda: self._rank_of(gdb.selected_inferior()))
        except gdb.error as error:
            raise GdbextError(f"no breakpoint at {options.location}: {error}") from None
        if self._dead_man is None:
            self._dead_man = DeadMan(self._release)
            gdb.events.stop.connect(self._stopped)
            gdb.events.cont.connect(self._resumed)
        self._points.append(point)
        return BreakTable((_row(point),), notes=(KILLED,))

    def table(self) -> BreakTable:
        points = tuple(_row(point) for point in self._valid())
        notes = () if points else ("No breakpoint of llm-break; llm-break LOCATION sets one.",)
        return BreakTable(points, tuple(self._place(rank) for rank in self._ranks()), notes)

    def delete(self, number: Optional[int]) -> BreakTable:
        chosen = [point for point in self._valid() if number in (None, point.number)]
        if number is not None and not chosen:
            raise GdbextError(f"no breakpoint {number} of llm-break", "llm-break list shows them")
        for point in chosen:
            point.delete()
        if not self._valid() and self._dead_man is not None:
            self._dead_man.end()
        return self.table()

    def go_on(self) -> None:
        with compat.settings({"schedule-multiple": "on"}):
            gdb.execute("continue")

    def _valid(self) -> List[RankPoint]:
        self._points = [point for point in self._points if point.is_valid()]  # the user may delete them too
        return self._points

    def _place(self, rank: AttachedRank) -> RankPlace:
        function = None
        if rank.state != "running":
            with compat.selected(next(one for one in gdb.inferiors() if one.num == rank.number)):
                try:
                    function = gdb.newest_frame().name()
                except gdb.error:  # no frame there, or unreadable: the place stays unknown
                    function = None
        hit = self._hit[1] if self._hit is not None and self._hit[0] == rank.number else None
        return RankPlace(rank.process.pid, rank.process.rank, rank.current, rank.state, function, hit)

    def _stopped(self, event: gdb.StopEvent) -> None:
        if not isinstance(event, gdb.BreakpointEvent):
            return
        numbers = [point.number for point in event.breakpoints]
        point = next((point for point in self._valid() if point.number in numbers), None)
        if point is None or self._dead_man is None:
            return
        self._hit = (gdb.selected_inferior().num, point.number)
        rank = self._rank_of(gdb.selected_inferior())
        name = f"pid {gdb.selected_inferior().pid}" if rank is None else f"rank {rank}"
        self._say(
            f"{name} is at {point.options.location}; the others are stopped with it. llm-continue resumes all; "
            f"without a command for {point.options.limit:g} s every rank is released"
        )
        self._dead_man.limit = point.options.limit
        self._dead_man.rearm()

    def _resumed(self, event: gdb.ContinueEvent) -> None:
        self._hit = None

    def _release(self, limit: float) -> None:
        """Nobody is there: the ranks go first, then it is said."""
        try:
            self.delete(None)
            self._detach_all()
        except (GdbextError, gdb.error) as error:
            self._say(f"no command for {limit:g} s, but not every rank could be released: {error}")
            return
        self._say(f"no command for {limit:g} s: every rank is released and runs on, and the breakpoints are gone")


def _row(point: RankPoint) -> BreakPoint:
    options = point.options
    return BreakPoint(
        point.number,
        options.location,
        point.pending,
        options.pids,
        options.condition,
        options.count,
        options.action,
        options.limit,
        dict(point.passed),
    )
