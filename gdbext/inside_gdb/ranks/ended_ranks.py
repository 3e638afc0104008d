"""Lifecycle of attached ranks: killed while they were stopped, or another program while they ran (exec)."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

import gdb

from gdbext.capture.proc_texts import threads_of
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.inside_gdb.ranks.timed_stop import interrupt_running
from gdbext.model.missing import Missing

_SETTLING = 1.0  # seconds


class RankEnd(NamedTuple):
    """Why gdb has to let go of an inferior."""

    pid: int
    words: str


class RankEnds:
    """One per gdb."""

    def __init__(self, noticed: Callable[[RankEnd], None]) -> None:
        self._noticed = noticed  # while the ranks run: it has become another program
        self._programs: Dict[int, Optional[str]] = {}  # by pid, as it was when first seen
        self._watching = False
        gdb.events.new_objfile.connect(self._loaded)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A rank that becomes another program inside stops the ranks; SIGURG must stop gdb (`tap.heard`)."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def learn(self, pids: Sequence[int]) -> None:
        """Remember what these processes are, and no others."""
        self._programs = {pid: self._programs.get(pid) or _program(pid) for pid in pids}

    def settle(self) -> None:
        """After an error about a rank that was not there: give an exec that has begun the time to happen."""
        end = time.monotonic() + _SETTLING
        while time.monotonic() < end and not self.of_all():
            time.sleep(0.01)  # nobody tells of it: gdb does not know yet

    def of_all(self) -> List[RankEnd]:
        """Of the processes that are remembered."""
        return self.of(list(self._programs))

    def of(self, pids: Sequence[int], ended: str = "was killed while it was held") -> List[RankEnd]:
        """Who has no future here, and why; `ended` is what to say of those that are gone."""
        found = [self._end_of(pid, ended) for pid in pids]
        return [ending for ending in found if ending is not None]

    def _end_of(self, pid: int, ended: str) -> Optional[RankEnd]:
        status = ProcFS().status(pid)
        if isinstance(status, Missing) or status.get("State", "Z")[0] in "ZX":
            return RankEnd(pid, ended)
        before, now = self._programs.get(pid), _program(pid)
        if before is not None and now is not None and before != now:
            return RankEnd(pid, f"has become another program, {now}")
        return None

    def _loaded(self, event: gdb.NewObjFileEvent) -> None:
        """gdb has read a program or a library; its breakpoints are not what they were when it was an exec."""
        if not self._watching:
            return
        for ending in self.of_all():
            if _program(ending.pid) is not None:
                self._watching = False
                self._noticed(ending)
                interrupt_running([ending.pid])


def has_all_threads(inferior: gdb.Inferior) -> bool:
    """Whether what gdb knows of its threads is true: an exec ends all but one, before gdb has noticed, SIGKILL all."""
    tids = set(threads_of(inferior.pid))
    if not tids:  # of another machine: gdb knows better
        return True
    return not has_ended(inferior.pid) and tids.issuperset(thread.ptid[1] for thread in inferior.threads())


def has_ended(pid: int) -> bool:
    """A zombie: nobody has asked for its exit status yet."""
    status = ProcFS().status(pid)
    return not isinstance(status, Missing) and status.get("State", "")[:1] in ("Z", "X")


def _program(pid: int) -> Optional[str]:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:  # it has ended
        return None
