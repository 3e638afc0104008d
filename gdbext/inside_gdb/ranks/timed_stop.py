"""Stops running ranks from a timer: by a signal that processes ignore, that gdb does not hand on, and that nobody sees.

gdb's own `interrupt` sends SIGINT. When it crosses another stop it is left waiting in the rank, and a rank that is let
go with it dies. SIGURG left waiting does nothing. Programs use it themselves (Go's runtime does): ours carries a mark,
by which a catchpoint tells it from theirs, also across PID namespaces. Theirs goes where it would go without us.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import Callable, Iterator, List, Optional, Sequence

import gdb

from gdbext.inside_gdb.base.timer import start

SIGNAL = "SIGURG"
_OUR_SIGNAL = "$_siginfo.si_code == -1 && $_siginfo._sifields._rt.si_sigval.sival_int == {mark}"  # -1: SI_QUEUE
_QUIET_HANDLING = "nostop noprint"  # what gdb does with the signal, unless it was told otherwise
_REPEAT_SECONDS = 0.5  # seconds; the kernel drops a signal where another of its kind waits
_SLEEPS = 100
_LONGEST_FACTOR = 4.0  # times the seconds
_LIBC = ctypes.CDLL(None)


class _SignalCatchpoint:
    """The catchpoint: one per gdb, on while the ranks run by us."""

    def __init__(self) -> None:
        self._number: Optional[int] = None

    def on(self) -> None:
        """Raises gdb.error."""
        if self._number is not None:
            try:
                gdb.execute(f"enable {self._number}", to_string=True)
                return
            except gdb.error:  # the user has deleted it
                self._number = None
        gdb.execute(f"catch signal {SIGNAL}", to_string=True)
        self._number = number = int(gdb.parse_and_eval("$bpnum"))
        gdb.execute(f"condition {number} {_OUR_SIGNAL.format(mark=os.getpid())}", to_string=True)
        gdb.execute(f"commands {number}\nsilent\nend", to_string=True)

    def off(self, command: str = "disable") -> None:
        if self._number is not None:
            with suppress(gdb.error):  # the user has deleted it
                gdb.execute(f"{command} {self._number}", to_string=True)

    def forget(self) -> None:
        self.off("delete")
        self._number = None


_catchpoint = _SignalCatchpoint()


@contextmanager
def catching_signal() -> Iterator[None]:
    """gdb stops at the signal inside; what it does with it otherwise comes back."""
    before = handling()
    if before.startswith(_QUIET_HANDLING):
        _catchpoint.on()
        try:
            yield
        finally:
            _catchpoint.off()
        return
    gdb.execute(f"handle {SIGNAL} stop", to_string=True)  # the user wants to see all of them: ours, too
    try:
        yield
    finally:
        gdb.execute(f"handle {SIGNAL} {before}", to_string=True)


def catch_signal() -> None:
    """As `catching_signal`, until `delete_catchpoint`."""
    if handling().startswith(_QUIET_HANDLING):
        _catchpoint.on()
    else:
        gdb.execute(f"handle {SIGNAL} stop", to_string=True)


def delete_catchpoint() -> None:
    """No catchpoint of ours is left."""
    _catchpoint.forget()


def handling(signal_name: str = SIGNAL) -> str:
    """`nostop noprint pass`, as `info signals` says it: Signal, Stop, Print, Pass to program."""
    words = gdb.execute(f"info signals {signal_name}", to_string=True).split(signal_name)[-1].split()[:3]
    return " ".join(name if word == "Yes" else f"no{name}" for name, word in zip(("stop", "print", "pass"), words))


def interrupt_running(pids: Sequence[int]) -> bool:
    """Stop what runs; returns whether there was a process to tap."""
    return any(_LIBC.sigqueue(pid, signal.SIGURG, ctypes.c_void_p(os.getpid())) == 0 for pid in pids)


def running_pids() -> List[int]:
    """The pids that gdb has resumed."""
    return [one.pid for one in gdb.inferiors() if one.pid and any(thread.is_running() for thread in one.threads())]


class NextStop:
    """Stops what runs, and does something then. One per gdb."""

    def __init__(self) -> None:
        self._then: Optional[Callable[[], None]] = None
        self._taken: Optional[gdb.StopEvent] = None
        gdb.events.stop.connect(self._stopped)

    def do(self, pids: Sequence[int], body: Callable[[], None]) -> None:
        self._then = body
        catch_signal()
        interrupt_running(pids)

    def took(self, event: Optional[gdb.StopEvent]) -> bool:
        """Whether this is the stop at which something was to be done."""
        return event is not None and event is self._taken

    def _stopped(self, event: gdb.StopEvent) -> None:
        then, self._then = self._then, None
        self._taken = event if then is not None else None
        if then is not None:
            gdb.post_event(then)


class _Interrupts(threading.Timer):
    """After some seconds, and again until it is heard: one rank after the other, for one may hear nothing (exec).

    The seconds are counted in small sleeps: a machine that is short of processors delays these as it delays the ranks.
    """

    def __init__(self, seconds: float, pids: Sequence[int]) -> None:
        super().__init__(seconds, lambda: None)
        self._pids = list(pids)

    def run(self) -> None:
        begun = time.monotonic()
        for _ in range(_SLEEPS):
            if self.finished.wait(self.interval / _SLEEPS):
                return
            if time.monotonic() - begun > self.interval * _LONGEST_FACTOR:
                break
        while not self.finished.is_set():
            interrupt_running(self._pids)
            self._pids.append(self._pids.pop(0))
            self.finished.wait(_REPEAT_SECONDS)


def interrupt_later(seconds: float, pids: Sequence[int]) -> threading.Timer:
    """Tap after some seconds, until it is cancelled; from a thread, so that gdb need not come round to it."""
    timer = _Interrupts(seconds, pids)
    start(timer)
    return timer


def is_interrupt_stop(event: Optional[gdb.StopEvent]) -> bool:
    """At the stop: whether it was ours, which the rank then does not get."""
    if not isinstance(event, gdb.SignalEvent) or event.stop_signal != SIGNAL:
        return False
    try:
        ours = bool(gdb.parse_and_eval(_OUR_SIGNAL.format(mark=os.getpid())))
        if ours:
            gdb.execute("queue-signal 0", to_string=True)
    except gdb.error:  # the thread has ended meanwhile
        return True
    return ours
