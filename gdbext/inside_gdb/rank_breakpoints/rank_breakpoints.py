"""Breakpoints over many inferiors: a chosen rank stops, and the others wait with it, or run on."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import gdb

from gdbext.analysis.verdict.running_timeouts import Timeout, timeouts_of
from gdbext.capture.symbols.environ import read_environ
from gdbext.commands.rank_breakpoints import BreakOptions, is_line_of_python, not_for_gdb, wrong_condition
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.timer import beside_the_line, later
from gdbext.inside_gdb.failed_checks.check_breakpoints import function_exists
from gdbext.inside_gdb.rank_breakpoints.conditions import problem_there, wrong_everywhere
from gdbext.inside_gdb.rank_breakpoints.continuing import Continuation, Holder
from gdbext.inside_gdb.rank_breakpoints.gathering import TOGETHER, Gathering
from gdbext.inside_gdb.rank_breakpoints.rank_points import Actions, Arrival, RankPoint, find
from gdbext.inside_gdb.ranks.dead_man import DeadMan
from gdbext.inside_gdb.ranks.killed_gdb import CodeRepair
from gdbext.inside_gdb.ranks.release_at_exit import ReleaseAtExit
from gdbext.inside_gdb.ranks.timed_stop import NextStop, delete_catchpoint
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import RankState
from gdbext.model.errors import GdbextError
from gdbext.model.job import ranks_or_pids
from gdbext.model.missing import Missing
from gdbext.model.rank_breakpoints import BreakTable, RankPlace
from gdbext.render import Style
from gdbext.render.safe_text import clean_text

KILLED = (
    "While the ranks run, the breakpoint is an instruction in their code. If gdb is killed (SIGKILL), a helper "
    "process removes it at once, but a rank that hits it before that dies of SIGTRAP."
)
UNGUARDED = "No python3 was found to watch over the ranks: do not kill gdb with SIGKILL while they run."
_ALONE_SECONDS = 3.0  # of one rank running alone, until it is said that the others stand still
_TIMEOUT_FRACTION = 0.8  # of a timeout of the job, when it is named


class RankBreaks:
    """One per gdb."""

    def __init__(
        self,
        holder: Holder,
        report: Callable[[RankPoint], Callable[[], None]],
        next_stop: NextStop,
        leaving: ReleaseAtExit,
    ) -> None:
        self._holder, self._next_stop, self._leaving = holder, next_stop, leaving
        self._points: List[RankPoint] = []
        self._gathering = Gathering(next_stop)
        self._actions = Actions(
            self._say,
            self._name,
            lambda point: self._report(report, point),
            lambda: self._gathering.active,
            self._gathering.arrived,
        )
        self._hit: Optional[Arrival] = None
        self._dead_man: Optional[DeadMan] = None
        self._mender = CodeRepair()
        self._timers: List[threading.Timer] = []
        self._alone: Optional[threading.Timer] = None
        self._waits: Dict[int, Tuple[Timeout, ...]] = {}  # timeouts of a rank, by pid
        self._going = Continuation(holder, self._gathering, self._say, next_stop)
        self._enabled: List[RankPoint] = []  # when the ranks were resumed

    # --- the commands ---

    def add(self, options: BreakOptions) -> BreakTable:
        point = self._new_point(options)
        if self._dead_man is None:
            self._dead_man = DeadMan(self._release, self._warn)
            gdb.events.stop.connect(self._stopped)
            gdb.events.cont.connect(self._resumed)
            gdb.events.exited.connect(self._exited)
            gdb.events.breakpoint_modified.connect(lambda point: self._watch_over())
            self._leaving.before.append(self._forget_all)
            self._leaving.say = self._say
            self._leaving.on_signals()
        self._points.append(point)
        guarded = self._mender.start()
        self._watch_over()
        return BreakTable((point.row(),), notes=(KILLED if guarded else UNGUARDED,))

    def _new_point(self, options: BreakOptions) -> RankPoint:
        location, condition = options.location, options.condition
        if is_line_of_python(location) and not function_exists(location):
            attached = any(inferior.pid for inferior in gdb.inferiors())
            raise not_for_gdb(location, options.ranks, attached)
        problem = wrong_everywhere(condition) if condition else None
        if condition and problem:
            raise wrong_condition("no breakpoint is set", condition, problem)
        try:
            point = RankPoint(options, self._actions)
        except gdb.error as error:
            raise GdbextError(f"no breakpoint at {location}: {error}") from None
        problem = problem_there(condition, point) if condition else None
        if condition and problem:
            number = point.number
            point.delete()
            raise wrong_condition(f"breakpoint {number} is deleted again", condition, problem)
        return point

    def table(self) -> BreakTable:
        points = tuple(point.row() for point in self._valid())
        notes = [] if points else ["No breakpoint of llm-break; llm-break LOCATION sets one."]
        if self._going.away:
            verb = "keeps running" if len(self._going.away) == 1 else "keep running"
            notes.append(f"{ranks_or_pids(self._going.away)} {verb}, not attached, until llm-continue.")
        return BreakTable(points, tuple(self._place(rank) for rank in self._holder.ranks()), tuple(notes))

    def delete(self, number: Optional[int]) -> BreakTable:
        points = [point for point in self._valid() if number in (None, point.number)]
        if number is not None and not points:
            raise GdbextError(f"no breakpoint {number} of llm-break", "llm-break list shows them")
        self._delete(points)
        return self.table()

    def _delete(self, points: Sequence[RankPoint]) -> None:
        for point in points:
            point.delete()
        self._watch_over()
        if not self._valid() and self._dead_man is not None:
            self._dead_man.end()
            self._end_timers()
            self._move_alone(False)
            delete_catchpoint()

    def _forget_all(self) -> None:
        """gdb is about to let all ranks go."""
        self._delete(self._valid())
        self._going.away = []

    def go_on(self) -> None:
        """All ranks together, in one go: none of them can wait for one that is not running."""
        self._going.prepare()
        if not any(inferior.pid for inferior in gdb.inferiors()):
            raise GdbextError("nothing is attached that could keep running", "llm-attach-all attaches")
        self._move_alone(False)
        self._gathering.release()
        for point in self._valid():
            compat.disable_stubs(point)  # of libraries that were loaded since
        holding = self._going.holding([point for point in self._valid() if point.enabled])
        if holding:
            self._hit = None
            self._end_timers()
        if self._going.run(holding, self._valid()):
            focus = self._gathering.focus
            assert focus is not None
            focus.thread.switch()
            self._stands(focus)
        if (holding or self._gathering.stranger is not None) and gdb.selected_thread() is not None:
            with suppress(gdb.error):  # some run: there is none
                gdb.execute("frame")

    def _valid(self) -> List[RankPoint]:
        self._points = [point for point in self._points if point.is_valid()]  # the user may delete them too
        return self._points

    def thread_at(self, number: int) -> Optional[gdb.InferiorThread]:
        """The thread of an inferior that stands at the place of the last hit."""
        if self._hit is None:
            return None
        came = self._hit if self._hit.inferior.num == number else self._gathering.here.get(number)
        return came.thread if came is not None and came.thread.is_valid() else None

    def _place(self, rank: AttachedRank) -> RankPlace:
        pid, number = rank.process.pid, rank.process.rank
        place = RankPlace(pid=pid, rank=number, current=rank.current, state=rank.state, function=None, hit=None)
        if rank.state in (RankState.RUNNING, RankState.KILLED):
            return place
        hit = self._hit if self._hit is not None and self._hit.inferior.num == rank.number else None
        held = self._gathering.here.get(rank.number or 0) if self._hit is not None and hit is None else None
        function = None
        with compat.inferior_selected(next(one for one in gdb.inferiors() if one.num == rank.number)):
            came = self.thread_at(rank.number or 0)
            if came is not None and not (rank.current and hit is not None):
                came.switch()
            with suppress(gdb.error):  # no frame there, or unreadable: the place stays unknown
                function = gdb.newest_frame().name()
        at = hit.point.number if hit is not None and hit.point.is_valid() else None
        return replace(place, function=function, hit=at, held=held is not None)

    def _name(self, inferior: gdb.Inferior) -> str:
        rank = self._holder.rank_of(inferior)
        return f"pid {inferior.pid}" if rank is None else f"rank {rank}"

    def _say(self, text: str) -> None:
        """At once, although gdb's own output is swallowed while ranks gather."""
        if self._gathering.active:
            os.write(2, f"gdbext: {clean_text(text, Style())}\n".encode())
        else:
            self._holder.say(text)

    def _report(self, report: Callable[[RankPoint], Callable[[], None]], point: RankPoint) -> None:
        self._gathering.afterwards(report(point))

    # --- a rank has stopped ---

    def _stopped(self, event: gdb.StopEvent) -> None:
        for one in self._enabled:  # gdb turns one off that it does not find in what a rank has become
            if one.is_valid() and not one.enabled:
                one.enabled = True
        self._enabled = []
        point = find(self._valid(), event)
        if self._next_stop.took(event) or self._gathering.active:
            return
        self._end_timers()
        if point is not None:
            self._gathering.release()
            self._stands(Arrival(gdb.selected_inferior(), gdb.selected_thread(), point, True))

    def _stands(self, hit: Arrival) -> None:
        """It has the prompt now; what about the others, and how long."""
        assert self._dead_man is not None
        self._hit = hit
        options, name = hit.point.options, self._name(hit.inferior)
        others = [
            rank for rank in self._holder.ranks() if rank.number != hit.inferior.num and rank.state == RankState.STOPPED
        ]
        if options.others == "run" and others:
            self._going.away = [*self._going.away, *self._holder.let_go([rank.number or 0 for rank in others])]
        self._say(f"{name} is at {options.location}; {self._of_others(options, others)}")
        self._move_alone(True)
        known = self._job_timeouts()
        nearest = f" The nearest timeout of the job: {known[0].words()}." if known else ""
        self._say(
            f"next, step and finish move {name} alone, llm-continue resumes all. "
            f"Without a command for {options.limit:g} s every rank is released.{nearest}"
        )
        self._dead_man.limit = options.limit
        self._dead_man.rearm()
        self._end_timers()
        self._timers = [
            later(one.seconds * _TIMEOUT_FRACTION, partial(self._warn, f"soon: {one.words()}")) for one in known
        ]

    def _of_others(self, options: BreakOptions, others: Sequence[AttachedRank]) -> str:
        if not others:
            return "no other rank is attached"
        if options.others == "run":
            return "the others keep running, not attached, until llm-continue"
        if options.others != "hold" or not self._gathering.here:
            return "the others are stopped with it"
        here = [rank.process for rank in others if rank.number in self._gathering.here]
        away = [rank.process for rank in others if rank.number not in self._gathering.here]
        held = f"{ranks_or_pids(here)} {'wait' if len(here) > 1 else 'waits'} at the same place" if here else ""
        where = "are stopped where they are" if len(away) > 1 else "is stopped where it is"
        why = self._gathering.stranger
        until = f"in {options.wait:g} s" if why is None else f"before {why},"
        late = f"{ranks_or_pids(away)} did not arrive {until} and {where}" if away else ""
        if away and self._gathering.perhaps_past:
            late += " (if they had passed it already, the next llm-continue brings all together)"
        return "; ".join(text for text in (held, late) if text)

    def _job_timeouts(self) -> List[Timeout]:
        for process in [rank.process for rank in self._holder.ranks() if rank.state == RankState.STOPPED]:
            if process.pid not in self._waits:
                environ, files = read_environ(process.pid), ProcFS().mapped_files(process.pid)
                self._waits[process.pid] = timeouts_of(
                    {} if isinstance(environ, Missing) else environ,
                    () if isinstance(files, Missing) else files,
                    process.engine,
                )
        found = {one for timeouts in self._waits.values() for one in timeouts}
        return sorted(found, key=lambda one: one.seconds)

    # --- one rank moves alone ---

    def _move_alone(self, alone: bool) -> None:
        if self._dead_man is not None and self._dead_man.while_running != alone:
            self._dead_man.while_running = alone
            gdb.execute(f"set {TOGETHER} {'off' if alone else 'on'}", to_string=True)

    def _resumed(self, event: gdb.ContinueEvent) -> None:
        self._enabled = self._enabled or [point for point in self._valid() if point.enabled]
        if self._gathering.active:
            return
        for point in self._valid():
            point.turns.forget()  # a rank that is held passes the place unseen when it is moved alone
        if self._dead_man is not None and self._dead_man.while_running:
            if self._alone is not None:
                self._alone.cancel()
            self._alone = later(_ALONE_SECONDS, self._runs_alone)
            return
        self._hit = None
        self._end_timers()

    def _runs_alone(self) -> None:
        if self._hit is not None and any(thread.is_running() for thread in self._hit.inferior.threads()):
            self._say(
                f"{self._name(self._hit.inferior)} runs alone, and the others are stopped: if it "
                "waits for them, press Ctrl-C and type llm-continue"
            )

    def _exited(self, event: gdb.ExitedEvent) -> None:
        self._watch_over()
        if self._hit is not None and event.inferior.num == self._hit.inferior.num:
            self._hit = None
            self._say("the rank that was debugged has ended; llm-continue resumes the others")

    # --- nobody is there ---

    def _warn(self, text: str) -> None:
        beside_the_line(partial(self._say, text))

    def _release(self, limit: float) -> None:
        self._leaving.leave(f"no command for {limit:g} s")

    def _end_timers(self) -> None:
        for timer in [*self._timers, *([self._alone] if self._alone is not None else [])]:
            timer.cancel()
        self._timers, self._alone = [], None

    def _watch_over(self) -> None:
        self._mender.watch([point for point in self._valid() if not point.pending])
