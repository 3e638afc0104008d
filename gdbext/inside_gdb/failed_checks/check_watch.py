"""Watching for failed checks: breakpoints on cold paths, a report at each failure, nothing in between.

Where a check throws, the breakpoint stands on that `throw` of the engine's code; where a function is called only after
a failure, on the function. The text functions (cudaGetErrorString, ...) are noted in passing: they tell the number.
Signals are gdb's own stops.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import gdb

from gdbext.analysis.failures import fatal_signal
from gdbext.capture.symbols.environ import read_environ
from gdbext.commands.check_port import CheckOptions
from gdbext.commands.tensor_port import TensorPort
from gdbext.commands.user_files import append_private
from gdbext.inside_gdb.base import compat, memory
from gdbext.inside_gdb.failed_checks.check_breakpoints import (
    ExitPoint,
    FunctionPoint,
    Point,
    TextPoint,
    ThrowPoint,
    function_exists,
)
from gdbext.inside_gdb.failed_checks.history import History
from gdbext.inside_gdb.failed_checks.report import report_of, signal_failure
from gdbext.inside_gdb.failed_checks.switches import Switches
from gdbext.inside_gdb.failed_checks.throw_points import ThrowFinder
from gdbext.inside_gdb.ranks.release_at_exit import ReleaseAtExit
from gdbext.knowledge.errors import TEXT_FUNCTIONS
from gdbext.knowledge.errors.checks import FAIL_FUNCTIONS
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.check_report import CheckReport, CheckStatus, Failure, SwitchResults, WatchedRank
from gdbext.model.codes import RankState
from gdbext.model.error_code import ErrorCode
from gdbext.model.errors import GdbextError, NothingFound
from gdbext.model.missing import Missing

TOGETHER = "When one rank stops at a failed check, gdb holds the others as well; `continue` resumes all of them."
_API_FAILURES = (
    "This is cuda-gdb: `set cuda api_failures stop` stops in the CUDA call that fails, even if no check tests its "
    "result, but also in calls that an engine expects to fail."
)
_NO_CHECKS = (
    "this process has no CUDA checks yet; libraries loaded later will be watched, and fatal signals get a report"
)
_EVERYWHERE = {ExitPoint.function}


@dataclass
class _Watched:
    """One inferior."""

    number: int
    pid: int
    throws: List[ThrowPoint] = field(default_factory=list)
    files: Tuple[str, ...] = ()
    passed: int = 0
    failures: int = 0
    problems: List[str] = field(default_factory=list)


class CheckWatch:
    """One per gdb. `ranks` lists the inferiors as ranks; `show` prints a report, `text_of` makes its line of JSON."""

    def __init__(
        self,
        ranks: Callable[[], Sequence[AttachedRank]],
        tensors: TensorPort,
        say: Callable[[str], None],
        leaving: ReleaseAtExit,
    ) -> None:
        self._ranks, self._tensors, self._say, self._leaving = ranks, tensors, say, leaving
        self.show: Callable[[object], None] = lambda answer: None
        self.text_of: Callable[[object], str] = str
        self._options: Optional[CheckOptions] = None
        self._watched: Dict[int, _Watched] = {}  # by number of the inferior
        self._points: Dict[str, Point] = {}  # by function: one breakpoint is in every inferior that has it
        self._finder = ThrowFinder()
        self._history = History()
        self._pending: Optional[Failure] = None
        self._listening = False
        self._switches = Switches(say)

    # --- on and off ---

    def on(self, options: CheckOptions) -> CheckStatus:
        if options.log:
            append_private(options.log, "")
        self.off()
        self._options = options
        self._listen()
        for rank in self._ranks():
            if rank.state != RankState.CORE and (options.pids is None or rank.process.pid in options.pids):
                self._watch(rank)
        return self.status()

    def _function_points(self, options: CheckOptions) -> None:
        """Those of functions that have come; the selected inferior is looked at."""
        makers: Dict[str, Callable[[], Point]] = {
            row.function: partial(FunctionPoint, row, self)
            for row in FAIL_FUNCTIONS
            if options.engine in (None, row.engine)
        }
        makers.update({name: partial(TextPoint, name, self) for name in TEXT_FUNCTIONS})
        makers[ExitPoint.function] = partial(ExitPoint, self)
        for name, make in makers.items():
            if name not in self._points and function_exists(name):
                self._points[name] = make()

    def off(self) -> CheckStatus:
        for point in [*self._points.values(), *(one for watched in self._watched.values() for one in watched.throws)]:
            if point.is_valid():
                point.delete()
        self._points, self._watched, self._options = {}, {}, None
        self._history.clear()
        return CheckStatus(False, notes=("Nothing is watched.",))

    def _watch(self, rank: AttachedRank) -> None:
        inferior = next(one for one in gdb.inferiors() if one.num == rank.number)
        watched = self._watched.get(inferior.num)
        if watched is None or watched.pid != inferior.pid:
            watched = self._watched[inferior.num] = _Watched(number=inferior.num, pid=inferior.pid)
        assert self._options is not None
        with nullcontext() if inferior.num == gdb.selected_inferior().num else compat.inferior_selected(inferior):
            self._function_points(self._options)
            found = self._finder.find(inferior.pid, watched.files)
            watched.throws += [ThrowPoint(address, self) for address in found.addresses]
        watched.files += found.files
        watched.problems += [problem for problem in found.problems if problem not in watched.problems]

    def status(self) -> CheckStatus:
        if self._options is None:
            return CheckStatus(False, notes=("Nothing is watched; llm-check on starts it.",))
        by_number = {rank.number: rank for rank in self._ranks()}
        rows = [self._row(one, by_number[one.number]) for one in self._watched.values() if one.number in by_number]
        notes = [TOGETHER] if self._options.action == "stop" and len(rows) > 1 else []
        if not rows and any(rank.state == RankState.CORE for rank in by_number.values()):
            notes.append("A core file does not run: llm-check report says what killed it.")
        elif not rows:
            notes.append("No process is attached; those attached later will be watched.")
        notes += [f"{row.pid}: {_NO_CHECKS}" for row in rows if not row.sites and set(row.functions) <= _EVERYWHERE]
        if compat.parameter("cuda api_failures") not in (None, "stop"):
            notes.append(_API_FAILURES)
        return CheckStatus(True, self._options.action, self._options.log, tuple(rows), tuple(notes))

    def _row(self, watched: _Watched, rank: AttachedRank) -> WatchedRank:
        with compat.inferior_selected(next(one for one in gdb.inferiors() if one.num == watched.number)):
            present = [point.function for point in self._points.values() if point.is_here()]
        return WatchedRank(
            number=watched.number,
            pid=watched.pid,
            rank=rank.process.rank,
            engine=rank.process.engine,
            functions=tuple(present),
            sites=sum(point.is_valid() and point.enabled for point in watched.throws),
            files=watched.files,
            passed=watched.passed,
            failures=watched.failures,
            problems=tuple(watched.problems),
        )

    # --- what the breakpoints tell ---

    def watches_here(self) -> Optional[_Watched]:
        """What is known of the selected inferior; None when it is not to be watched."""
        return self._watched.get(gdb.selected_inferior().num)

    def note(self, error: Optional[ErrorCode]) -> None:
        """The selected thread asked for the text of an error."""
        self._history.note(error)

    def noted(self) -> Optional[ErrorCode]:
        """The last error whose text the selected thread asked for, right before. It is told once."""
        return self._history.noted()

    def passed(self, count: int = 1) -> None:
        watched = self.watches_here()
        if watched is not None:
            watched.passed += count

    def problem(self, text: str) -> None:
        watched = self.watches_here()
        if watched is not None:
            watched.problems.append(text)

    def failed(self, failure: Failure) -> bool:
        """A check failed in the selected thread. Returns whether the program shall stop."""
        watched, options = self.watches_here(), self._options
        if watched is None or options is None:
            return False
        if options.engine and failure.engine not in ("", options.engine):
            self.passed()
            return False
        watched.failures += 1
        if options.action == "stop":
            self._pending = failure
            return True
        self._deliver(self._report(failure))
        return False

    # --- reports ---

    def report(self, rank: AttachedRank) -> CheckReport:
        name = _signal_name()
        if name not in fatal_signal.FATAL:
            seen = f"signal {name}" if name else "no signal"
            hint = "llm-check on stops where a check fails; llm-nccl-diagnose judges a hang"
            raise NothingFound(f"the selected thread has {seen}, no failure", hint)
        return self._signal_report(name, rank)

    def _signal_report(self, name: str, rank: AttachedRank) -> CheckReport:
        is_core = rank.state == RankState.CORE
        failure, steps = signal_failure(name, is_core, rank.process.pid, None if is_core else self.noted())
        found = report_of(self._history.following(failure), rank, self._tensors, self._environment(rank))
        return replace(found, steps=(*steps, *found.steps))

    def _report(self, failure: Failure) -> CheckReport:
        memory.clear_cache()  # the program has run since anything was read
        rank = self._current()
        return self._history.reported(report_of(failure, rank, self._tensors, self._environment(rank)))

    def _environment(self, rank: AttachedRank) -> Mapping[str, str]:
        """Of the process, as if what llm-check enable switched on had been there from the start."""
        if rank.state == RankState.CORE:
            return {}
        environ = read_environ(rank.process.pid)
        return {**({} if isinstance(environ, Missing) else environ), **self._switches.variables(rank.process.pid)}

    def _current(self) -> AttachedRank:
        return next(rank for rank in self._ranks() if rank.current)

    def _deliver(self, report: CheckReport) -> None:
        assert self._options is not None
        if self._options.log:
            append_private(self._options.log, self.text_of(report) + "\n")
            place = f"{report.failure.file}:{report.failure.line}" if report.failure.file else "unknown place"
            name = report.failure.error.name if report.failure.error else report.failure.text or report.failure.what
            who = f"rank {report.rank}" if report.rank is not None else f"process {report.pid}"
            self._say(f"{who}: {name} at {place}; the report is in {self._options.log}")
        else:
            self.show(report)

    # --- gdb's events ---

    def _listen(self) -> None:
        if not self._listening:
            self._listening = True
            self._leaving.on_signals()
            gdb.events.stop.connect(self._stopped)
            gdb.events.new_objfile.connect(self._loaded)
            gdb.events.exited.connect(self._gone)

    def _stopped(self, event: gdb.StopEvent) -> None:
        options = self._options
        if options is None:
            return
        failure, self._pending = self._pending, None
        try:
            if failure is not None:
                self._deliver(self._report(failure))
            elif isinstance(event, gdb.SignalEvent) and event.stop_signal in fatal_signal.FATAL:
                self._signalled(event.stop_signal)
        except (GdbextError, gdb.error, StopIteration) as error:
            self._say(f"no report: {error}")

    def _signalled(self, name: str) -> None:
        """A fatal signal stops whatever the action is: the process is at its end, and this is the last look at it."""
        watched = self.watches_here()
        if watched is None:
            return
        watched.failures += 1
        memory.clear_cache()
        self._deliver(self._signal_report(name, self._current()))

    def _loaded(self, event: gdb.NewObjFileEvent) -> None:
        """A library came, or a process that was not there before."""
        options = self._options
        if options is None:
            return
        current = gdb.selected_inferior()
        if not current.pid or compat.kind_of(current) != compat.HAS_PROCESS:
            return
        if current.num not in self._watched and options.pids is not None:
            return
        rank = next((rank for rank in self._ranks() if rank.current), None)
        if rank is not None:
            self._watch(rank)

    def _gone(self, event: gdb.ExitedEvent) -> None:
        watched = self._watched.pop(event.inferior.num, None)
        if watched is not None:
            for point in watched.throws:
                if point.is_valid():
                    point.delete()

    # --- the engines' own checks ---

    def switch(self, ranks: Sequence[AttachedRank], on: bool) -> SwitchResults:
        return self._switches.switch(ranks, on)


def _signal_name() -> Optional[str]:
    """The signal that the selected thread stopped with, by its number in $_siginfo."""
    try:
        return fatal_signal.NAMES.get(int(gdb.parse_and_eval("$_siginfo.si_signo")), "of another kind")
    except (gdb.error, RuntimeError):
        return None
