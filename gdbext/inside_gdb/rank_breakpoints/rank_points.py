"""One breakpoint of llm-break: which passing stops, and what is said instead of a stop."""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import gdb

from gdbext.commands.rank_breakpoints import BreakOptions
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat, memory, symbols
from gdbext.inside_gdb.rank_breakpoints.arrival_counts import Turns
from gdbext.inside_gdb.rank_breakpoints.conditions import is_true
from gdbext.model.missing import Missing
from gdbext.model.rank_breakpoints import BreakPoint

_MOST_TEXT = 300  # characters of a value that is logged


class Arrival(NamedTuple):
    """A rank has come to the place."""

    inferior: gdb.Inferior
    thread: gdb.InferiorThread
    point: RankPoint
    wanted: bool  # this is the passing that shall stop


class Actions(NamedTuple):
    """What a breakpoint may ask for."""

    say: Callable[[str], None]
    name: Callable[[gdb.Inferior], str]  # "rank 1", "pid 4711"
    report: Callable[[RankPoint], None]
    gathers: Callable[[], bool]  # whether ranks are to be held at the place
    arrived: Callable[[Arrival], None]


class RankPoint(gdb.Breakpoint):
    """gdb inserts it into every inferior that has the place."""

    def __init__(self, options: BreakOptions, actions: Actions) -> None:
        super().__init__(options.location)
        compat.disable_stubs(self)
        self.options = options
        self.turns = Turns()
        self.passed: Dict[str, int] = {}
        self.errors: Dict[str, str] = {}  # by rank: why the condition could not be evaluated, the last time
        self._actions = actions
        self._last: Tuple[object, bool] = (None, False)  # a moment, and what was said of it
        self._stops = False

    def stop(self) -> bool:
        self._stops = False
        moment = _moment(gdb.selected_thread())
        if moment is None or moment != self._last[0]:
            self._last = (moment, self._judge(gdb.selected_inferior()))
        self._stops = self._last[1]
        return self._stops

    def has_stopped(self) -> bool:
        """Whether the stop that is reported now is its own. A Ctrl-C while it is asked stops the program too, before
        anything was decided."""
        stops, self._stops = self._stops, False
        return stops

    def _judge(self, inferior: gdb.Inferior) -> bool:
        memory.clear_cache()  # the program has run since anything was read
        self.turns.came(inferior.num)
        wanted = self._wanted(inferior)
        if self.options.action != "stop":
            if wanted:
                self._tell(inferior)
            return False
        held = self.options.others == "hold" and self._actions.gathers()
        if wanted or held:
            self._actions.arrived(Arrival(inferior, gdb.selected_thread(), self, wanted))
        return wanted or held

    def _wanted(self, inferior: gdb.Inferior) -> bool:
        """Whether this rank, at this passing, is what was asked for."""
        if not self.may_stop(inferior):
            return False
        name = self._actions.name(inferior)
        if self.options.condition and not self._condition_holds(name, self.options.condition):
            return False
        self.passed[name] = count = self.passed.get(name, 0) + 1
        return count >= self.options.count

    def _condition_holds(self, name: str, condition: str) -> bool:
        """One that cannot be evaluated does not count as true; it is reported once for each rank."""
        try:
            return is_true(condition)
        except gdb.error as error:
            problem = symbols.first_line(error)
        if name not in self.errors:
            self._actions.say(
                f"{name} does not stop at breakpoint {self.number}: its condition cannot be evaluated: {problem} "
                "(reported once for each rank)"
            )
        self.errors[name] = problem
        return False

    def may_stop(self, inferior: gdb.Inferior) -> bool:
        """Whether it is one of the ranks that were chosen."""
        return self.options.pids is None or inferior.pid in self.options.pids

    def _tell(self, inferior: gdb.Inferior) -> None:
        name = self._actions.name(inferior)
        if self.options.action == "report":
            self._actions.report(self)
            return
        values = [f"{expression} = {_text_of(expression)}" for expression in self.options.expressions]
        said = f"{name} at {self.options.location}, passing {self.passed[name]}"
        self._actions.say(": ".join([said, ", ".join(values)]) if values else said)

    def row(self) -> BreakPoint:
        options = self.options
        return BreakPoint(
            number=self.number,
            location=options.location,
            pending=self.pending,
            pids=options.pids,
            condition=options.condition,
            count=options.count,
            action=options.action,
            limit=options.limit,
            passed=dict(self.passed),
            others=options.others,
            expressions=options.expressions,
            ranks=options.ranks,
            errors=dict(self.errors),
        )


def _moment(thread: gdb.InferiorThread) -> object:
    """The same for two questions about one stop: gdb may have the same place twice once an inferior has been let go
    (13.1 and 18.1), and asks for each."""
    status = ProcFS().status(thread.ptid[1])
    if isinstance(status, Missing):
        return None
    return thread.ptid, status.get("voluntary_ctxt_switches"), status.get("nonvoluntary_ctxt_switches")


def _text_of(expression: str) -> str:
    try:
        text = gdb.parse_and_eval(expression).format_string(max_elements=16)
    except (gdb.error, RuntimeError) as error:
        return f"<{symbols.first_line(error)}>"
    line = " ".join(text.split())
    return line if len(line) <= _MOST_TEXT else line[: _MOST_TEXT - 3] + "..."


def chosen(points: List[RankPoint], inferiors: List[gdb.Inferior]) -> List[gdb.Inferior]:
    """The inferiors that may trigger one of the breakpoints."""
    return [inferior for inferior in inferiors if any(point.may_stop(inferior) for point in points)]


def find(points: List[RankPoint], event: Optional[gdb.StopEvent]) -> Optional[RankPoint]:
    """The breakpoint of ours that stopped the program."""
    stopped = [point for point in points if point.has_stopped()]
    if not isinstance(event, gdb.BreakpointEvent):
        return None
    numbers = [point.number for point in event.breakpoints]
    return next((point for point in stopped if point.number in numbers), None)
