"""Hold a process for milliseconds, copy what its stacks are made of, let it go.

Everything that can be done before the stop is done before it (memory map, buffers, seizing the threads), all else after
it. No code runs in the target and nothing in it is changed. One trace is left, as by every debugger: a system call that
the kernel does not restart by itself after a stop (epoll_wait is one, see signal(7)) returns EINTR.
"""

from __future__ import annotations

import functools
import os
import time
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.copied_process import Budget, Hook, ProcessCopy, ThreadCopy, read_proc, vdso_of
from gdbext.capture.copies.stack_bytes import DEEP, FIRST, StackCopier
from gdbext.capture.copies.thread_status import thread_state, why_refused
from gdbext.capture.machine import Architecture, known_machine
from gdbext.capture.memory.maps import MemoryMap, parse_maps, read_maps_text
from gdbext.capture.memory.process_memory import CopyBuffer, Range, merge
from gdbext.capture.stop.kill_timer import KillTimer
from gdbext.capture.stop.no_interruption import in_own_thread, undisturbed
from gdbext.capture.stop.ptrace import Tracees
from gdbext.capture.without_stop.sleeping_threads import Mark, sleep_mark

_RESIDENT = 16 << 10  # bytes per thread that the copy buffer has at hand: most stacks are that short
_TURN = 8  # threads that stand still together where there is no need for one picture: 0.3 ms
_TURNS = 5.0  # seconds for all turns of a process
Meet = Callable[[], None]
Marks = Mapping[int, Mapping[int, Mark]]
"""By pid and tid, of threads that need not be stopped as long as their marks stay the same."""


def copy_process(
    pid: int, budget: Optional[Budget] = None, during: Optional[Hook] = None, pages: Sequence[Range] = ()
) -> ProcessCopy:
    """Stop a process, copy registers, stacks and `pages` (address, size) of it, let it go.

    `during(pid)` is called while it stands still, in another OS thread than the caller's, and has to be quick: its time
    is part of the pause. Never raises because of the target: a process that is gone or not ours gives a copy whose
    state is "lost" and whose problems say why. Raises `GdbextError` on a machine that we do not know.
    """
    return copy_processes([pid], budget, during, pages={pid: pages})[0]


def copy_processes(
    pids: Sequence[int],
    budget: Optional[Budget] = None,
    during: Optional[Hook] = None,
    together: bool = False,
    pages: Optional[Mapping[int, Sequence[Range]]] = None,
    meet: Optional[Meet] = None,
    marks: Optional[Marks] = None,
) -> Tuple[ProcessCopy, ...]:
    """Copy several processes, in the order of `pids`: one after the other (the shortest stop of each), or all standing
    still at the same time (`together`: one consistent picture).

    `meet()` is called right before the first one is told to stop and when all of them stand still: whoever stops others
    at the same time is waited for there (capture/stop/several_processes.py). `marks`: threads that sleep and are not
    copied (capture/stop/still_asleep.py)."""
    row, budget, marks = known_machine(), budget or Budget(), marks or {}
    held = [_Held(pid, row, budget, (pages or {}).get(pid, ()), marks.get(pid, {})) for pid in pids]
    for group in [held] if together else [[one] for one in held]:
        with KillTimer([one.pid for one in group], budget.seconds, budget.note) as timer:
            in_own_thread(functools.partial(_hold, group, during, meet, timer), functools.partial(_reap, group))
    return tuple(one.result() for one in held)


def copy_in_turns(tids: Mapping[int, Sequence[int]], budget: Optional[Budget] = None) -> Tuple[ProcessCopy, ...]:
    """Copy these threads of each process, a few at a time: each stands still for a fraction of a millisecond. Not one
    picture: who is copied first may have gone on when the last one is (who has not: capture/stop/still_asleep.py)."""
    row, budget = known_machine(), budget or Budget()
    held = [_Held(pid, row, budget, (), {}) for pid in tids]
    for one, threads in zip(held, tids.values()):
        with KillTimer([one.pid], budget.seconds, budget.note) as timer:
            in_own_thread(functools.partial(_hold_in_turns, one, threads[: budget.threads], timer), one.reap)
    return tuple(one.result() for one in held)


def _hold_in_turns(one: _Held, tids: Sequence[int], timer: KillTimer) -> None:
    end = time.monotonic() + _TURNS
    if not one.prepare():
        return
    for first in range(0, len(tids), _TURN):
        if one.refused or time.monotonic() > end:  # whoever does not stop now may do so later: it is free when we end
            break
        with undisturbed():
            timer.start()
            try:
                one.turn(tids[first : first + _TURN])
            finally:
                _release([one], timer)


def _reap(group: Sequence[_Held]) -> None:
    for one in group:
        one.reap()


def _hold(group: Sequence[_Held], during: Optional[Hook], meet: Optional[Meet], timer: KillTimer) -> None:
    """Stop, copy, release. Each step is done for all before the next one; who stops first has the time of all."""
    group = [one for one in group if one.prepare()]
    with undisturbed():
        timer.start()  # a seized thread stops by itself when a signal comes, until we hand that over
        try:
            for one in group:
                one.seize()
            if meet:
                meet()
            timer.start()
            began = time.monotonic()
            for one in group:
                one.interrupt(began)
            for one in group:
                one.settle()
            if meet:
                meet()
            for one in group:
                one.copy()
            if during:
                for one in group:
                    one.call(during)
        finally:
            _release(group, timer)
    for one in group:
        one.after()


def _release(group: Sequence[_Held], timer: KillTimer) -> None:
    for one in group:
        one.release()
    if all(one.is_free for one in group):
        timer.stop()


class _Held:
    """One process on its way through the stop: prepare, seize, interrupt, settle, copy, call, release, result; or
    prepare, turns, release, result."""

    def __init__(
        self, pid: int, row: Architecture, budget: Budget, pages: Sequence[Range], marks: Mapping[int, Mark]
    ) -> None:
        self.pid = pid
        self._row, self._budget, self._pages = row, budget, pages
        self._asleep = dict(marks)
        self._woke: FrozenSet[int] = frozenset()
        self._problems: List[str] = []
        self._tracees = Tracees(pid, row, budget.threads)
        self._maps_text, self._auxv, self._exe, self._was_stopped = "", b"", "", False
        self._began = self._told = 0.0  # CLOCK_MONOTONIC: its time counts from the one, its pause from the other
        self._pause = 0.0  # seconds
        self._denied = False
        self._found: Any = None

    def prepare(self) -> bool:
        """Read what /proc tells and set aside the room for the copy. False when there is nothing to stop."""
        try:
            self._maps_text = read_maps_text(self.pid)
            self._auxv = read_proc(self.pid, "auxv")
            self._exe = os.readlink(f"/proc/{self.pid}/exe").replace(" (deleted)", "")
            stat = read_proc(self.pid, "stat").rpartition(b")")[2].split()
            count = len(os.listdir(f"/proc/{self.pid}/task"))
        except OSError as error:
            self._denied, self._asleep = isinstance(error, PermissionError), {}
            return False
        self._asleep = self._sleepers()
        self._tracees.leave(self._asleep)
        maps = parse_maps(self._maps_text)
        self._was_stopped = stat[0] == b"T"
        threads = min(count - len(self._asleep) + count // 8 + 16, self._budget.threads)
        room = threads * FIRST + DEEP + sum(size for _, size in self._pages)
        try:
            self._buffer = CopyBuffer(min(room, self._budget.total), threads * _RESIDENT)
        except OSError as error:
            self._problems.append(f"no room of {min(room, self._budget.total)} bytes for the copy: {error.strerror}")
            self._asleep = {}
            return False
        # Above the address where the stack of main began lie arguments and environment: no frames, but secrets.
        main_top = int(stat[25]) + 16
        self._stacks = StackCopier(self.pid, maps, main_top, self._row, self._buffer, self._budget.stack)
        self._vdso = vdso_of(self.pid, maps)
        return True

    def seize(self) -> None:
        """The threads that there are become ours; nothing stops by this."""
        self._tracees.seize_new()

    def reap(self) -> None:
        """Called from another thread, so that the one that seizes does not wait for ever."""
        self._tracees.reap()

    def interrupt(self, began: float) -> None:
        """Here the pause begins; its time counts from `began`."""
        self._began, self._told = began, time.monotonic()
        self._tracees.interrupt(self._began + self._budget.seconds / 2)

    def settle(self) -> None:
        """Wait until all stand still, and read their registers."""
        self._tracees.stop_all(self._began + self._budget.seconds / 2)
        self._tracees.read_registers()

    def copy(self, tids: Optional[Sequence[int]] = None) -> None:
        """Copy the stacks, of these threads where they are given, and the pages that were asked for."""
        registers = self._tracees.registers
        if tids is not None:
            registers = {tid: registers[tid] for tid in tids if tid in registers}
        try:
            self._stacks.copy(registers, self._deadline)
            self._buffer.copy(self.pid, self._pages, self._deadline)
        except ProcessLookupError:
            self._problems.append(f"pid {self.pid} ended while it was being copied")

    def turn(self, tids: Sequence[int]) -> None:
        """The whole stop for a few threads; the budget is for each turn."""
        tracees = self._tracees
        tracees.seize(tids)
        self.interrupt(time.monotonic())
        tracees.settle(self._began + self._budget.seconds / 2)
        tracees.read_registers()
        self.copy(tids)

    @property
    def refused(self) -> bool:
        """Whether a thread could not be stopped."""
        return bool(self._tracees.refused)

    @property
    def _deadline(self) -> float:
        return self._began + self._budget.seconds

    def call(self, during: Hook) -> None:
        """Let the caller look at it."""
        if not self._tracees.registers and not self._asleep:
            return
        if time.monotonic() >= self._deadline:
            self._problems.append("--max-pause was used up before everything was read")
            return
        try:
            self._found = during(self.pid)
        except Exception as error:  # noqa: BLE001  one rank's odd memory must not cost the answer of the others
            self._problems.append(f"reading it while it was stopped failed: {type(error).__name__}: {error}")

    def release(self) -> None:
        """Here the pause ends."""
        self._tracees.release()
        if self._told:
            self._pause = max(self._pause, time.monotonic() - self._told)

    @property
    def is_free(self) -> bool:
        """Whether none of its threads can stand still by us."""
        return self._tracees.all_free

    def _sleepers(self) -> Dict[int, Mark]:
        """Those of the threads that are left alone that have slept until now."""
        return {tid: seen for tid, seen in self._asleep.items() if sleep_mark(self.pid, tid) == seen}

    def after(self) -> None:
        """See who did not sleep all the time."""
        left, self._asleep = self._asleep, self._sleepers()
        self._woke = frozenset(left).difference(self._asleep)

    def result(self) -> ProcessCopy:
        """What was copied; takes its time."""
        if not self._tracees.registers and not self._asleep:
            problems = tuple(self._problems) or (self._why_nothing(),)
            return ProcessCopy(pid=self.pid, was_stopped=self._was_stopped, problems=problems, woke=self._woke)
        if self._tracees.left_out:
            self._problems.append(
                f"{self._tracees.left_out} threads beyond the limit of {self._budget.threads} were left running"
            )
        return ProcessCopy(
            pid=self.pid,
            threads=self._threads(),
            blocks=tuple(merge(self._buffer.blocks() + self._vdso)),
            maps=self._latest_maps(),
            auxv=self._auxv,
            exe=self._exe,
            architecture=self._row,
            pause_ms=self._pause * 1e3 if self._tracees.registers else 0.0,
            felt_ms=self._tracees.longest * 1e3,
            was_stopped=self._was_stopped,
            problems=tuple(self._tracees.problems + self._problems),
            during=self._found,
            asleep=frozenset(self._asleep),
            woke=self._woke,
        )

    def _why_nothing(self) -> str:
        state = thread_state(self.pid, self.pid)
        if state == "X":
            return f"there is no process {self.pid} (any more)"
        if state == "Z":
            return f"pid {self.pid} has ended and was not reaped by its parent yet (zombie)"
        reason = self._tracees.refused.get(self.pid)
        if reason is None and self._denied:
            reason = why_refused(self.pid, self.pid)
        if reason:
            return f"pid {self.pid} could not be stopped: {reason}"
        if self._began:
            return f"pid {self.pid} ended while it was being stopped"
        return f"pid {self.pid} has no memory to copy: it is a kernel thread, or is just ending"

    def _threads(self) -> Tuple[ThreadCopy, ...]:
        tracees, row = self._tracees, self._row
        copies = []
        for tid, words in tracees.registers.items():
            problem = tracees.refused.get(tid)
            if problem:
                problem = f"did not stop: {problem}; only sp and pc of its registers are known"
            problem = problem or self._stacks.problem(tid)
            copies.append(
                ThreadCopy(
                    tid=tid,
                    registers=tuple(words),
                    pc=words[row.pc],
                    sp=words[row.sp],
                    signal=tracees.signal_of(tid),
                    truncated=self._stacks.truncated(tid),
                    problem=problem,
                    stacks=tuple(self._stacks.copied(tid)),
                )
            )
        copies += [
            ThreadCopy(tid=tid, problem=f"could not be stopped: {reason}")
            for tid, reason in tracees.refused.items()
            if tid not in tracees.registers
        ]
        return tuple(sorted(copies, key=lambda copy: copy.tid != self.pid))

    def _latest_maps(self) -> MemoryMap:
        """Libraries may have come since our first look, so look again, if it still is the same program."""
        try:
            if read_proc(self.pid, "auxv") == self._auxv:
                self._maps_text = read_maps_text(self.pid)
            else:
                self._problems.append(
                    "it replaced its program (exec) while it was being copied: stacks and files may not belong together"
                )
        except OSError:
            pass  # it has ended: what we saw before is what there is
        return parse_maps(self._maps_text)
