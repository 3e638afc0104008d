"""When gdb is told to end or to suspend, or nobody types any more: the ranks are released first.

gdb's own answer to SIGTERM is not safe while ranks run into breakpoints with conditions: 13.1 may fail an assertion and
hang with its breakpoints still in their code, of which they die; 18.1 may forget the signal.
"""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from typing import Callable, List, Protocol, Sequence

import gdb

from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.base.timer import start
from gdbext.inside_gdb.ranks.timed_stop import NextStop, delete_catchpoint, running_pids
from gdbext.model.attached_ranks import AttachedRank, RankTable
from gdbext.model.codes import RankState
from gdbext.model.errors import GdbextError


class Holder(Protocol):
    """The session: who attaches and detaches."""

    def ranks(self) -> Sequence[AttachedRank]: ...

    def detach_all(self) -> RankTable: ...

    def say(self, text: str) -> None: ...


class ReleaseAtExit:
    """One per gdb."""

    def __init__(self, holder: Holder, next_stop: NextStop) -> None:
        self.before: List[Callable[[], None]] = []  # to be done while the ranks stand still, before they are released
        self.say = holder.say
        self._holder, self._next_stop = holder, next_stop
        self._listening = False

    def on_signals(self) -> None:
        """From now on SIGTERM and Ctrl-Z are ours."""
        if not self._listening:
            self._listening = True
            _on_signals(self._terminated, self._suspended)

    def leave(self, why: str, then_quit: bool = False) -> None:
        """Release every rank, then report it. What runs is stopped for that: gdb detaches only from what stands."""
        pids = running_pids()
        if pids:
            self._next_stop.do(pids, partial(self._left, why, then_quit))
        else:
            self._left(why, then_quit)

    def _left(self, why: str, then_quit: bool) -> None:
        problems: List[str] = []
        if then_quit:
            problems += _kill_started()
        try:
            for one in self.before:
                one()
            if self._holder.ranks():
                problems += [row.problem for row in self._holder.detach_all().ranks if row.problem]
        except (GdbextError, gdb.error) as error:
            problems.append(str(error))
        delete_catchpoint()
        if problems:
            self.say(f"{why}, but not every rank could be released: {'; '.join(problems)}")
        else:
            self.say(f"{why}: every rank is released and keeps running, and the breakpoints are gone")
        if then_quit:
            gdb.execute("quit")

    def _terminated(self) -> None:
        self.leave("gdb received a signal to end", True)

    def _suspended(self) -> None:
        """Ctrl-Z."""
        if any(rank.state in (RankState.RUNNING, RankState.STOPPED) for rank in self._holder.ranks()):
            self.say("not suspended, because the ranks would stay stopped; llm-detach-all releases them")
        else:
            os.kill(os.getpid(), signal.SIGSTOP)


def _kill_started() -> List[str]:
    """Programs that gdb has started end with it, as after its own `quit`. Returns what went wrong."""
    problems = []
    for inferior in gdb.inferiors():
        if compat.kind_of(inferior) == compat.HAS_PROCESS and not inferior.was_attached:
            try:
                gdb.execute(f"kill inferiors {inferior.num}", to_string=True)
            except gdb.error as error:
                problems.append(f"pid {inferior.pid}: {error}")
    return problems


def _on_signals(told_to_end: Callable[[], None], suspended: Callable[[], None]) -> None:
    """Runs these in gdb's event loop on SIGTERM and SIGTSTP, in place of gdb's own handlers. A gdb that is suspended
    holds the ranks for as long as nobody remembers it, and no timer of ours can release them."""
    bodies = {signal.SIGTERM: told_to_end, signal.SIGTSTP: suspended}
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    for number in bodies:
        signal.signal(number, lambda number, frame: None)  # the byte in the pipe is what counts

    def wait() -> None:
        while True:
            for number in os.read(ours, 64):
                if number in bodies:
                    gdb.post_event(bodies[signal.Signals(number)])

    start(threading.Thread(target=wait))
