"""The one way to call a function of the target: on a thread that may be disturbed, under a deadline, announced, undone.

Other threads stand still meanwhile where gdb can lock them. A call that does not come back is cut off: gdb takes its
frame off the stack and puts the registers back. What the function had changed by then, a lock above all, stays.
Measured with gdb 13.1 and 16.3 and cuda-gdb 12.2, on a stand-in driver whose lock another thread held.
"""

from __future__ import annotations

import mmap
import platform
import re
import signal
import time
from contextlib import ExitStack, contextmanager
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import gdb

from gdbext.analysis.stacks.safe_to_call import obstacle, processor_obstacle, restart_obstacle
from gdbext.capture.machine import gdb_registers
from gdbext.capture.proc_texts import text_of
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.base import alarm, compat, memory
from gdbext.inside_gdb.base.functions import address_of
from gdbext.inside_gdb.base.modules import Modules
from gdbext.inside_gdb.stacks.stack_walk import Budget, Captures, Walker, by_number
from gdbext.model.missing import Maybe, Missing

Argument = Tuple[str, int]
"""A C type that needs no debug information ("void*", "int", "unsigned long") and the value."""

SECONDS = 2.0
NOT_ALLOWED = Missing("calls of the program's functions are off; `set llm allow-calls on` allows them")
_WALK = Budget(seconds=2.0, frames=1024)
_INTERRUPT = 1 << (signal.SIGINT - 1)
_MOST_DUMMIES = 8
_PROTECTION = mmap.PROT_READ | mmap.PROT_WRITE
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Caller:
    """Calls functions of the selected inferior; one per command. `rank` is its number, for the announcement."""

    def __init__(self, say: Callable[[str], None], rank: Optional[int] = None) -> None:
        self._say = say
        self._inferior = gdb.selected_inferior()
        self._place = f"rank {rank}" if rank is not None else f"process {self._inferior.pid}"
        self._threads: Optional[List[gdb.InferiorThread]] = None
        self._passed_over: List[gdb.InferiorThread] = []
        self._reasons: Dict[str, List[str]] = {}
        self._announced: Set[Tuple[str, str]] = set()
        self.others_run = False  # this gdb cannot hold the other threads during a call
        self.cut_off: Optional[str] = None  # the function that did not come to its end, once there is one

    # --- where ---

    def refusal(self) -> Optional[Missing]:
        """Why nothing can be called in this inferior at all; None when something can."""
        if not memory.calls_allowed():
            return NOT_ALLOWED
        if compat.kind_of(self._inferior) != compat.HAS_PROCESS:
            return Missing("a core file has no process in which a function could be called")
        if not alarm.available() or gdb_registers() is None:
            return Missing(f"functions of the program are not called on a {platform.machine()} machine")
        problem = processor_problem()
        if problem is not None:
            return Missing(f"{problem}, so that it can call no function; gdb 14 and later can")
        if any(thread.is_running() for thread in self._inferior.threads()):
            return Missing("the process is running; `interrupt` stops it")
        if _waiting_interrupt(self._inferior.pid):
            return Missing("a Ctrl-C is on its way to the process, and would end the call")
        return None

    def thread(self) -> Maybe[str]:
        """The thread on which the next call is made, as gdb numbers it; else why there is none."""
        refused = self.refusal()
        if refused is not None:
            return refused
        if self._threads is None:
            self._threads = self._usable()
        if not self._threads:
            return Missing(f"no thread can make the call: {self._why_none()}")
        return by_number(self._threads[0])

    def next_thread(self, reason: str) -> None:
        """Give up on the present thread, which is `reason`; `thread` names another one."""
        if self._threads:
            self._passed_over.append(self._threads.pop(0))
            self._reasons.setdefault(reason, []).append(by_number(self._passed_over[-1]))

    def any_thread(self) -> None:
        """For calls that do not need what `next_thread` looked for: those that were given up on will do."""
        if not self._threads:
            self._threads, self._passed_over = self._passed_over, []

    def _usable(self) -> List[gdb.InferiorThread]:
        """Threads that may be disturbed: the selected one first, then those that run code of their own."""
        with compat.kept_selection():
            current = gdb.selected_thread()
            by_id = {by_number(thread): thread for thread in self._inferior.threads()}
            walker = Walker(Modules.of_process(self._inferior.pid), _WALK, Captures(()), by_number)
            found: List[Tuple[bool, bool, int, gdb.InferiorThread]] = []
            for stack in walker.walk(self._inferior).threads:
                thread = by_id[stack.id]
                number, result = _system_call(thread)
                reason = obstacle(stack) or restart_obstacle(number, result)
                if reason is None and _blocks_interrupt(self._inferior.pid, thread.ptid[1]):
                    reason = "ignoring SIGINT, by which a call would be interrupted"
                if reason is not None:
                    self._reasons.setdefault(reason, []).append(stack.id)
                    continue
                is_current = current is not None and thread.ptid == current.ptid
                found.append((not is_current, number >= 0, thread.num, thread))
        return [row[3] for row in sorted(found, key=lambda row: row[:3])]

    def _why_none(self) -> str:
        rows = sorted(self._reasons.items(), key=lambda row: -len(row[1]))
        return "; ".join(f"{_counted(ids)} {'is' if len(ids) == 1 else 'are'} {reason}" for reason, ids in rows[:4])

    # --- the call ---

    def call(
        self,
        function: str,
        result: str = "int",
        arguments: Sequence[Argument] = (),
        seconds: float = SECONDS,
        at: Optional[int] = None,
    ) -> Maybe[int]:
        """What the function returned, as a number. `at`: its address, where several libraries have one of the name.

        Raises `KeyboardInterrupt` when the user interrupts it; the call is undone then too.
        """
        number = self.thread()
        if isinstance(number, Missing):
            return number
        address = address_of(self._inferior.pid, function) if at is None else at
        if isinstance(address, Missing):
            return address
        self._announce(function, number)
        assert self._threads
        with compat.kept_selection():
            self._threads[0].switch()
            gdb.newest_frame().select()
            answer = self._evaluate(_expression(address, result, arguments), function, seconds)
        memory.clear_cache()
        return answer

    def new_memory(self, size: int) -> Maybe[int]:
        """Where the process has mapped so many bytes for us; 0 where its system has none."""
        private = [("int", _PROTECTION), ("int", _FLAGS), ("int", -1), ("long", 0)]
        place = self.call("mmap", "unsigned long", [("void*", 0), ("unsigned long", size), *private])
        return 0 if isinstance(place, int) and place % mmap.PAGESIZE else place

    def _announce(self, function: str, number: str) -> None:
        if (function, number) not in self._announced:
            self._announced.add((function, number))
            self._say(f"calls {function} in {self._place}, thread {number}")

    def _evaluate(self, expression: str, function: str, seconds: float) -> Maybe[int]:
        began = time.monotonic()
        interrupted = False
        with _prepared() as locked:
            if not locked and not self.others_run:
                self.others_run = True
                self._say("this gdb cannot hold the other threads of the process meanwhile: they run")
            try:
                with compat.deadline(seconds):
                    return int(gdb.parse_and_eval(expression))
            except KeyboardInterrupt:
                interrupted, text = True, ""
            except (gdb.error, RuntimeError) as error:
                text = " ".join(str(error).split())
            finally:
                _abandon()
                self._drain()
        if time.monotonic() - began >= 0.9 * seconds:
            self.cut_off = function
            return Missing(
                f"{function} did not return within {seconds:g} s and was interrupted; the thread was "
                "put back to where it was, but a lock that the function took may still be held"
            )
        died = re.search(r"\b(SIG[A-Z]+)\b", text)  # gdb 13 and older do not name it
        if interrupted or died or "signaled while" in text:
            self.cut_off = function
            if interrupted or (died and died.group(1) == "SIGINT"):
                raise KeyboardInterrupt
            how = died.group(1) if died else "a signal"
            return Missing(f"{function} was ended by {how}; the thread is where it was before the call")
        return Missing(f"{function} could not be called: {text[:200]}")

    def _drain(self) -> None:
        """A SIGINT that came too late to cut anything off would end the process once it is let go: let gdb see it."""
        for _ in range(3):
            if not _waiting_interrupt(self._inferior.pid):
                return
            address = address_of(self._inferior.pid, "getpid")
            if isinstance(address, Missing):
                return
            try:
                with compat.deadline(SECONDS):
                    gdb.parse_and_eval(_expression(address, "int", ()))
            except (gdb.error, RuntimeError, KeyboardInterrupt):
                _abandon()


def processor_problem() -> Optional[str]:
    """Why this gdb can call nothing on this processor; None when it can."""
    cpuinfo = ProcFS().text("cpuinfo")
    return None if isinstance(cpuinfo, Missing) else processor_obstacle(gdb.VERSION, cpuinfo)


def _expression(address: int, result: str, arguments: Sequence[Argument]) -> str:
    """A call by address: nothing must be known of the function, not even by a symbol of its own."""
    types = ", ".join(kind for kind, _ in arguments) or "void"
    values = ", ".join(f"({kind}){value:#x}" for kind, value in arguments)
    return f"(({result}(*)({types})){address:#x})({values})"


@contextmanager
def _prepared() -> Iterator[bool]:
    """gdb set up for one call, and whether other threads stand still; everything as before afterwards."""
    with ExitStack() as stack:
        stack.enter_context(compat.settings(compat.CALL_SETTINGS))
        locked = stack.enter_context(compat.locked_scheduler())
        stack.enter_context(_interruptible())
        stack.enter_context(_without_breakpoints())
        yield locked


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT stops the target and is not passed on to it, whatever the user has set: by it calls are cut off."""
    rows = gdb.execute("info signals SIGINT", to_string=True).splitlines()
    words = next((line.split()[1:4] for line in rows if line.startswith("SIGINT")), ["Yes", "Yes", "No"])
    if [word == "Yes" for word in words] == [True, True, False]:
        yield
        return
    before = " ".join(name if word == "Yes" else "no" + name for name, word in zip(("stop", "print", "pass"), words))
    gdb.execute("handle SIGINT stop print nopass", to_string=True)
    try:
        yield
    finally:
        gdb.execute(f"handle SIGINT {before}", to_string=True)


@contextmanager
def _without_breakpoints() -> Iterator[None]:
    """A breakpoint in the function would leave the call half done."""
    enabled = [one for one in gdb.breakpoints() or () if one.enabled]
    try:
        for one in enabled:
            one.enabled = False
        yield
    finally:
        for one in enabled:
            if one.is_valid():
                one.enabled = True


def _abandon() -> None:
    """Take half-done calls off the stack of the selected thread: gdb leaves one that stopped at a breakpoint."""
    try:
        for _ in range(_MOST_DUMMIES):
            above: Optional[gdb.Frame] = None
            frame: Optional[gdb.Frame] = gdb.newest_frame()
            while frame is not None and frame.type() != gdb.DUMMY_FRAME:
                above, frame = frame, frame.older()
            if frame is None:
                return
            (above or frame).select()
            gdb.execute("return", to_string=True)
    except gdb.error:  # no stack that could be read: there is nothing to take off
        return


def _system_call(thread: gdb.InferiorThread) -> Tuple[int, int]:
    """Number of the system call that a stopped thread is in (-1: none), and what it returned."""
    names = gdb_registers()
    if names is None:
        return -1, 0
    try:
        thread.switch()
        frame = gdb.newest_frame()
        return _signed(frame.read_register(names.call_number)), _signed(frame.read_register(names.call_result))
    except (gdb.error, ValueError):
        return -1, 0


def _signed(value: gdb.Value) -> int:
    number = int(value) & ((1 << 64) - 1)
    return number - (1 << 64) if number >> 63 else number


def _blocks_interrupt(pid: int, tid: int) -> bool:
    return bool(_signals(f"/proc/{pid}/task/{tid}/status", "SigBlk") & _INTERRUPT)


def _waiting_interrupt(pid: int) -> bool:
    return bool(_signals(f"/proc/{pid}/status", "ShdPnd") & _INTERRUPT)


def _signals(path: str, name: str) -> int:
    """A set of signals of /proc/PID/status (proc_pid_status(5)); all of them when it cannot be read."""
    lines = text_of(path).split("\n")
    return next((int(line.split()[1], 16) for line in lines if line.startswith(name + ":")), -1)


def _counted(ids: Sequence[str]) -> str:
    return f"thread {ids[0]}" if len(ids) == 1 else f"{len(ids)} threads"
