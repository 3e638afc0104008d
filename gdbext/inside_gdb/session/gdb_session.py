"""The ranks that this gdb holds: attaching to all of them, switching, releasing. The `Session` of the commands."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from typing import Callable, Deque, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import gdb

from gdbext.capture.without_stop.before_stop import BeforeStop, RunningRanks, unwatched
from gdbext.commands.ranks import HELD
from gdbext.inside_gdb.base import compat, symbols
from gdbext.inside_gdb.base.alarm import repeated_sigchld
from gdbext.inside_gdb.expressions.device_access import DeviceAccess
from gdbext.inside_gdb.expressions.printed_frames import PythonFrames
from gdbext.inside_gdb.failed_checks.check_watch import CheckWatch
from gdbext.inside_gdb.failed_checks.report import report_of
from gdbext.inside_gdb.rank_breakpoints.gathering import TOGETHER
from gdbext.inside_gdb.rank_breakpoints.rank_breakpoints import RankBreaks
from gdbext.inside_gdb.rank_breakpoints.rank_points import RankPoint
from gdbext.inside_gdb.ranks.after_release import release_notes, released_rank
from gdbext.inside_gdb.ranks.before_attach import ATTACH_SETTINGS, frames_without_names, is_stopped, obstacle
from gdbext.inside_gdb.ranks.held import Held, HeldRanks, in_rank_order, numbered, rank_key
from gdbext.inside_gdb.ranks.own_interrupts import take_back_interrupts
from gdbext.inside_gdb.ranks.release_at_exit import ReleaseAtExit
from gdbext.inside_gdb.ranks.release_guard import Guard
from gdbext.inside_gdb.ranks.timed_stop import NextStop
from gdbext.inside_gdb.session.about import about_points
from gdbext.inside_gdb.stacks import engine_processes, held_ranks, other_ranks
from gdbext.inside_gdb.stacks import opened_cores as core_files
from gdbext.inside_gdb.stacks.backtrace import backtraces
from gdbext.inside_gdb.streams.stream_access import StreamAccess
from gdbext.model.attached_ranks import AttachedRank, RankOutput, RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace
from gdbext.model.check_report import Failure
from gdbext.model.checkup import Point
from gdbext.model.codes import RankState
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job, JobSnapshot, RankProcess
from gdbext.model.page import AskedBefore
from gdbext.model.text.ranges import counted
from gdbext.render import Style
from gdbext.render.safe_text import clean_text
from gdbext.snapshot_builder.core_job import Cores, OpenCore

ALREADY = "attached to this gdb already; use it as it is, or detach it first"
_MOST_ASKED = 12  # answers about tensors and streams that are kept for a page


class _Place(NamedTuple):
    """An inferior without a process, to attach one into."""

    inferior: gdb.Inferior
    added: bool  # it goes away again after the release
    ours: bool = True  # we gave it its program


class GdbSession:
    """One per gdb."""

    def __init__(self) -> None:
        self._held = HeldRanks()
        self._jobs: Tuple[Job, ...] = ()
        self._together_before: Optional[str] = None
        self.from_terminal = False  # whether a person typed the command that runs now
        self._asked: Deque[AskedBefore] = deque(maxlen=_MOST_ASKED)
        self._guard = Guard()
        self.tensors = DeviceAccess(self.say, self.rank_of)
        self.python = PythonFrames()
        self.streams = StreamAccess(self.say, self.rank_of)
        next_stop = NextStop()
        leaving = ReleaseAtExit(self, next_stop)
        self.checks = CheckWatch(self.ranks, self.tensors, self.say, leaving)
        self.breaks = RankBreaks(self, self._report_place, next_stop, leaving)
        self._held.listen()
        gdb.events.before_prompt.connect(self._take_back_interrupts)

    def say(self, text: str) -> None:
        gdb.write(f"gdbext: {clean_text(text, Style())}\n", gdb.STDERR)
        gdb.flush(gdb.STDERR)

    def confirm(self, question: str) -> bool:
        return not self.from_terminal or compat.confirm(question)

    # --- what is there ---

    def ranks(self) -> Sequence[AttachedRank]:
        return self._held.rows()

    def rank_of(self, inferior: gdb.Inferior) -> Optional[int]:
        """Rank number of an inferior, None when unknown."""
        return self._held.rank_of(inferior)

    def about(self) -> Iterable[Point]:
        return about_points()

    def note(self, command: str, lines: Sequence[str]) -> None:
        """Keep what a command answered, for a page that is asked for later."""
        self._asked.append(AskedBefore(command, tuple(lines)))

    def asked_before(self) -> Sequence[AskedBefore]:
        return tuple(self._asked)

    # --- attaching ---

    def attach(self, jobs: Sequence[Job]) -> RankTable:
        """Symbols first, then one rank after the other. Ctrl-C lets all of this call go again."""
        wanted = [process for job in jobs for process in job.ranks]
        held = {rank.process.pid for rank in self.ranks() if rank.state in (RankState.STOPPED, RankState.RUNNING)}
        problems = {one.pid: ALREADY if one.pid in held else obstacle(one.pid) for one in wanted}
        free = [process for process in wanted if problems[process.pid] is None]
        begun = self._attach_watched(free, problems, {})
        self._jobs = tuple(jobs)
        self._begin_together(begun)
        self._guard.keep_attached()
        for warning in frames_without_names(begun):
            self.say(warning)
        return self._attached_table(wanted, problems)

    def _attach_watched(
        self,
        free: Sequence[RankProcess],
        problems: Dict[int, Optional[str]],
        places: Mapping[int, _Place],
    ) -> Sequence[gdb.Inferior]:
        """Attach to them while they are looked after, and tell what they did before; see `_attach_free`."""
        running = RunningRanks([process.pid for process in free])
        begun: List[gdb.Inferior] = []
        self._held.attaching = True
        try:
            self._guard.hold([process.pid for process in free])
            with compat.settings(ATTACH_SETTINGS):
                self._attach_free(free, running, problems, begun, places)
        finally:
            self._held.attaching = False
            if not begun:  # else those that a broken-off attach may leave stopped are looked after until the prompt
                self._guard.keep_attached()
        return begun

    def _attach_free(
        self,
        free: Sequence[RankProcess],
        running: RunningRanks,
        problems: Dict[int, Optional[str]],
        begun: List[gdb.Inferior],
        places: Mapping[int, _Place],
    ) -> None:
        """Attach to all of them, or to none when something comes in between; `problems` tells why not to some, and
        `places` where to, by pid, if not into new inferiors.

        gdb gives no number twice: inferiors are made in the order of the ranks, and before those for symbols.
        """
        if not free:
            return
        started = gdb.selected_inferior()
        empty: List[_Place] = []
        try:
            self.say(f"reading symbols of {len(free)} processes; they keep running")
            for process in sorted(free, key=rank_key):
                if process.pid in places:
                    empty.append(places[process.pid])
                else:
                    empty.append(_Place(compat.add_inferior(), added=True) if empty else self._empty_inferior())
            with symbols.preloaded([process.pid for process in free]):
                running.finish()
                for process in sorted(free, key=rank_key):
                    problems[process.pid] = self._attach_one(process, running.of, begun, empty.pop(0))
        except BaseException as error:
            compat.switch_inferior(started)
            for place in empty:
                self._tidy(place)
            count = sum(inferior.pid != 0 for inferior in begun)
            self._release(begun)
            self._guard.mend()
            if isinstance(error, KeyboardInterrupt):
                self.say(f"interrupted: nothing is attached ({counted(count, 'process', 'processes')} released)")
            raise

    def _attach_one(
        self,
        process: RankProcess,
        look: Callable[[int], BeforeStop],
        begun: List[gdb.Inferior],
        place: Optional[_Place] = None,
    ) -> Optional[str]:
        """Attach into an empty inferior, or a new one; returns why it did not work."""
        inferior, added, ours = place or self._empty_inferior()
        begun.append(inferior)
        compat.switch_inferior(inferior)
        before = look(process.pid)
        start = time.monotonic()
        self._held.by_number[inferior.num] = held = Held(
            process=process,
            since=start,
            ours=ours,
            added=added,
            attach_ms=None,
            before=before,
            stood=is_stopped(process.pid),
        )
        try:
            with repeated_sigchld():
                compat.run(f"attach {process.pid}")
        except gdb.error as error:
            self._release([inferior])
            begun.remove(inferior)
            return f"cannot attach: {symbols.first_line(error)}"
        held.attach_ms = (time.monotonic() - start) * 1000
        held.process = numbered(process)
        return None

    @staticmethod
    def _empty_inferior() -> _Place:
        """One without process and program, selected."""
        current = gdb.selected_inferior()
        if current.pid == 0 and not compat.has_program(gdb.current_progspace()) and not gdb.objfiles():
            return _Place(current, added=False)
        added = compat.add_inferior()
        compat.switch_inferior(added)
        return _Place(added, added=True)

    def _begin_together(self, begun: Sequence[gdb.Inferior]) -> None:
        """A `continue` that resumed one rank alone would leave it waiting for the others."""
        if begun and self._together_before is None:
            self._together_before = "on" if gdb.parameter(TOGETHER) else "off"
            gdb.execute(f"set {TOGETHER} on", to_string=True)

    def _attached_table(self, wanted: Sequence[RankProcess], problems: Mapping[int, Optional[str]]) -> RankTable:
        """What was asked for: the attached ones and those that could not be; the lowest rank is selected."""
        attached = {rank.process.pid: rank for rank in self.ranks()}
        good = [attached[process.pid] for process in wanted if process.pid in attached and not problems[process.pid]]
        if good:
            first = min(good, key=in_rank_order)
            assert first.number is not None
            self.select(first.number)
            attached = {rank.process.pid: rank for rank in self.ranks()}
        rows = []
        for process in wanted:
            problem = problems[process.pid]
            row = attached.get(process.pid) or AttachedRank(process=process, state=RankState.NOT_ATTACHED)
            rows.append(replace(row, problem=problem))
        notes = [note for job in self._jobs for note in job.notes]
        if good:
            longest = max(row.attach_ms or 0.0 for row in good)
            notes.append(f"Attaching paused ranks for up to {longest:.0f} ms. {HELD}")
        present = {row.process.rank for row in rows}
        absent = tuple(rank for job in self._jobs for rank in job.absent if rank not in present)
        return RankTable(tuple(sorted(rows, key=in_rank_order)), absent, tuple(notes))

    # --- core files ---

    def open_cores(self, cores: Cores) -> RankTable:
        """Each core into an inferior of its own; what cannot be opened has its problem, the others go on."""
        rows: List[AttachedRank] = []
        with compat.settings(ATTACH_SETTINGS):
            for one in sorted(cores.opened, key=lambda one: rank_key(one.process)):
                rows.append(self._open_one(one))
        good = [row.number for row in sorted(rows, key=in_rank_order) if row.number is not None]
        if good:
            self.select(good[0])
        rows = [replace(row, current=row.number is not None and row.number == good[0]) for row in rows]
        rows += [
            AttachedRank(process=RankProcess(pid=0, role="rank", title=path), problem=why) for path, why in cores.unread
        ]
        self._jobs = (cores.job,)
        return RankTable(tuple(sorted(rows, key=in_rank_order)), (), cores.job.notes)

    def _open_one(self, one: OpenCore) -> AttachedRank:
        place = self._empty_inferior()
        inferior, added, _ = place
        try:
            problems = core_files.load(one)
        except gdb.error as error:
            self._tidy(place)
            return AttachedRank(process=one.process, state=RankState.NOT_OPENED, problem=symbols.first_line(error))
        # gdb may count the process otherwise than the core's notes: by its number we know it again.
        process = replace(one.process, pid=inferior.pid)
        self._held.by_number[inferior.num] = Held(process=process, since=None, ours=True, added=added, core=one)
        return AttachedRank(
            process=process, number=inferior.num, state=RankState.CORE, problem="; ".join(problems) or None
        )

    # --- releasing ---

    def detach_all(self) -> RankTable:
        held = [rank for rank in self.ranks() if rank.state != RankState.CORE or self._is_ours(rank)]
        if not held:
            raise GdbextError("no process is attached")
        by_number = {inferior.num: inferior for inferior in gdb.inferiors()}
        stopped_before = {number for number, one in self._held.by_number.items() if one.stood}
        with compat.settings(ATTACH_SETTINGS):
            problems = self._release([by_number[rank.number] for rank in held if rank.number is not None])
        if self._together_before is not None:
            gdb.execute(f"set {TOGETHER} {self._together_before}", to_string=True)
            self._together_before = None
        self._guard.keep_attached()
        rows = tuple(
            released_rank(rank, problems.get(rank.number or 0), rank.number in stopped_before) for rank in held
        )
        return RankTable(rows, notes=release_notes(rows))

    def let_go(self, numbers: Sequence[int]) -> Sequence[RankProcess]:
        """Detach some, to take them back later."""
        inferiors = [inferior for inferior in gdb.inferiors() if inferior.num in numbers]
        processes = {
            one.num: self._held.by_number[one.num].process for one in inferiors if one.num in self._held.by_number
        }
        with compat.settings(ATTACH_SETTINGS), compat.kept_selection():
            problems = self._release(inferiors)
        return [process for number, process in processes.items() if number not in problems]

    def take_back(self, processes: Sequence[RankProcess]) -> Sequence[str]:
        """Attach again what was let go; what has ended meanwhile is told."""
        problems: List[str] = []
        begun: List[gdb.Inferior] = []
        self._held.attaching = True
        self._guard.hold([process.pid for process in processes])
        try:
            with compat.settings(ATTACH_SETTINGS), compat.kept_selection():
                for process in processes:
                    problem = obstacle(process.pid) or self._attach_one(process, unwatched, begun)
                    if problem is not None:
                        problems.append(f"process {process.pid} is not attached again: {problem}")
        finally:
            self._held.attaching = False
        return problems

    def while_they_run(self, look: Callable[[], JobSnapshot]) -> JobSnapshot:
        """Release the ranks, `look`, attach to them again, each in its inferior; who cannot be attached is told."""
        rows = [rank for rank in self.ranks() if rank.state is RankState.STOPPED]
        inferiors = {inferior.num: inferior for inferior in gdb.inferiors()}
        places: Dict[int, _Place] = {}
        for rank in rows:
            held = self._held.by_number[rank.number or 0]
            places[rank.process.pid] = _Place(inferiors[rank.number or 0], held.added, held.ours)
        self.say(f"releasing {counted(len(rows), 'rank')} for this look; they are attached again after it")
        with compat.kept_thread():
            with compat.settings(ATTACH_SETTINGS):
                lost = self._release([place.inferior for place in places.values()], kept=True)
            try:
                snapshot = look()
            finally:
                self._attach_again([rank.process for rank in rows if rank.number not in lost], places)
        again = {rank.process.pid for rank in self.ranks() if rank.state is RankState.STOPPED}
        processes = (replace(one, after="held") if one.pid in again else one for one in snapshot.processes)
        return replace(snapshot, processes=tuple(processes))

    def _attach_again(self, processes: Sequence[RankProcess], places: Mapping[int, _Place]) -> None:
        problems = {one.pid: obstacle(one.pid) for one in processes}
        self._guard.keep_attached()
        self._attach_watched([one for one in processes if problems[one.pid] is None], problems, places)
        self._guard.keep_attached()
        for process in processes:
            if problems[process.pid] is not None:
                self.say(f"process {process.pid} is not attached again: {problems[process.pid]}")
                self._tidy(places[process.pid])

    def _report_place(self, point: RankPoint) -> Callable[[], None]:
        """Takes the full report of the selected thread, at a breakpoint; what comes back prints it."""
        rank = next(rank for rank in self.ranks() if rank.current)
        where = gdb.newest_frame().find_sal()
        file = where.symtab.fullname() if where.symtab is not None else ""
        failure = Failure(kind="breakpoint", what=point.options.location, file=file, line=where.line or None)
        report = report_of(failure, rank, self.tensors, {})
        return lambda: self.checks.show(report)

    def _is_ours(self, rank: AttachedRank) -> bool:
        """A core file that we opened, not the user."""
        held = self._held.by_number.get(rank.number or 0)
        return held is not None and held.core is not None

    def _release(self, inferiors: Sequence[gdb.Inferior], kept: bool = False) -> Dict[int, str]:
        """Detach each, whatever happens to the others; tidy away the inferiors that we made, unless they are `kept`."""
        problems: Dict[int, str] = {}
        interrupted: Optional[BaseException] = None
        enabled = [point for point in gdb.breakpoints() if point.enabled]
        for inferior in inferiors:
            try:
                take_back_interrupts(inferior)
            except KeyboardInterrupt as error:
                interrupted = error
        for inferior in inferiors:
            try:
                if inferior.pid:
                    with repeated_sigchld():
                        gdb.execute(f"detach inferiors {inferior.num}", to_string=True)
            except gdb.error as error:
                problems[inferior.num] = symbols.first_line(error)
            except KeyboardInterrupt as error:  # the rest must be let go first
                interrupted = error
        for inferior in inferiors:
            held = self._held.by_number.pop(inferior.num, None)
            if held is not None and held.core is not None:
                held.core.core.close()
            if held is not None and inferior.pid == 0 and not kept:
                self._tidy(_Place(inferior, held.added, held.ours))
        for point in enabled:  # gdb turns FILE:LINE off when the last symbols it looks at go, and others still have it
            if point.is_valid() and not point.enabled:
                point.enabled = True
        if interrupted is not None:
            raise interrupted
        return problems

    def _take_back_interrupts(self) -> None:
        """Before a prompt, at which somebody may type gdb's own `detach` or `quit`."""
        for inferior in gdb.inferiors():
            if inferior.pid and inferior.num in self._held.by_number:
                take_back_interrupts(inferior)

    @staticmethod
    def _tidy(place: _Place) -> None:
        if not place.ours:
            return
        if place.added:
            compat.remove_inferior(place.inferior)
            return
        with compat.inferior_selected(place.inferior):  # it was empty before us
            gdb.execute("file", to_string=True)

    # --- using ---

    def select(self, number: int) -> None:
        thread = self.breaks.thread_at(number)
        if thread is not None and gdb.selected_inferior().num != number:
            thread.switch()  # where it stands is what the user wants to see, and to step
        else:
            compat.switch_inferior(next(inferior for inferior in gdb.inferiors() if inferior.num == number))

    def apply(self, numbers: Sequence[int], command: str) -> RankOutputs:
        outputs = []
        with compat.kept_selection():
            for number in numbers:
                process = next(rank.process for rank in self.ranks() if rank.number == number)
                self.select(number)
                try:
                    text = gdb.execute(command, to_string=True)
                    outputs.append(RankOutput(process, number, text))
                except gdb.error as error:
                    outputs.append(RankOutput(process, number, error=symbols.first_line(error)))
        return RankOutputs(command, tuple(outputs))

    def backtraces(self, rank: AttachedRank, every: bool) -> Sequence[Backtrace]:
        inferior = next(inferior for inferior in gdb.inferiors() if inferior.num == rank.number)
        return backtraces(inferior, rank, self._held.by_number[inferior.num].core, every)

    def snapshot(self, scan: bool = False) -> JobSnapshot:
        looks = []
        for rank in self.ranks():
            inferior = next(inferior for inferior in gdb.inferiors() if inferior.num == rank.number)
            held = self._held.by_number[inferior.num]
            looks.append(held_ranks.Subject(inferior, rank, held.since or time.monotonic(), held.before, held.core))
        return held_ranks.snapshot(looks, self._jobs, scan)

    def with_engine_processes(self, snapshot: JobSnapshot) -> JobSnapshot:
        return engine_processes.with_engine_processes(snapshot, self.ranks(), self.say)

    def core_files(self) -> Sequence[str]:
        numbers = {rank.number for rank in self.ranks() if rank.state == RankState.CORE}
        paths = (compat.core_path(inferior) for inferior in gdb.inferiors() if inferior.num in numbers)
        return [path for path in paths if path]

    def snapshot_from_outside(self, arguments: Sequence[str], command: str = "diagnose") -> JobSnapshot:
        return other_ranks.look(arguments, self.say, command)
