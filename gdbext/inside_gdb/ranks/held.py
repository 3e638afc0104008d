"""What is remembered of each inferior that has a process or a core file: which rank it is, since when it is stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

import gdb

from gdbext.capture.symbols.environ import read_environ
from gdbext.capture.without_stop.before_stop import BeforeStop
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs, rank_from_environ
from gdbext.discovery.ranks.selectors import Selector
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.ranks.ended_ranks import has_ended
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import RankState
from gdbext.model.job import RankProcess
from gdbext.model.missing import Missing
from gdbext.snapshot_builder.core_job import OpenCore


@dataclass
class Held:
    """What we remember of an inferior."""

    process: RankProcess
    since: Optional[float]  # stopped since then (CLOCK_MONOTONIC); None while it runs
    ours: bool = False  # we made the inferior, or gave it its program
    added: bool = False  # it goes away again after the release
    attach_ms: Optional[float] = None
    before: BeforeStop = field(default_factory=BeforeStop)
    core: Optional[OpenCore] = None
    stood: bool = False  # it was stopped before gdb came


class HeldRanks:
    """One per session."""

    def __init__(self) -> None:
        self.by_number: Dict[int, Held] = {}  # of the inferior
        self.attaching = False

    def listen(self) -> None:
        """From now on notice when they are resumed and stopped."""
        gdb.events.cont.connect(self._resumed)
        gdb.events.stop.connect(self._stopped)

    def rows(self) -> List[AttachedRank]:
        """All that there are now, in rank order."""
        self._forget_gone()
        current = gdb.selected_inferior().num
        found = [self._row(inferior, current) for inferior in gdb.inferiors() if inferior.pid]
        return sorted(found, key=in_rank_order)

    def _row(self, inferior: gdb.Inferior, current: int) -> AttachedRank:
        held = self.by_number.get(inferior.num) or self._adopt(inferior)
        running = any(thread.is_running() for thread in inferior.threads())
        is_core = compat.kind_of(inferior) == compat.HAS_CORE
        return AttachedRank(
            process=held.process,
            number=inferior.num,
            current=inferior.num == current,
            state=_state(is_core, running, inferior.pid),
            attach_ms=held.attach_ms,
            held_ms=None if running or is_core or held.since is None else (time.monotonic() - held.since) * 1000,
        )

    def _adopt(self, inferior: gdb.Inferior) -> Held:
        """An inferior that the user attached, started or opened: find out which rank it is."""
        process = RankProcess(pid=inferior.pid, role="rank")
        if compat.kind_of(inferior) == compat.HAS_PROCESS:
            jobs = find_jobs(ProcFS(), Selector((inferior.pid,)), read_environ)
            known = [one for job in jobs for one in (*job.ranks, *job.serving) if one.pid == inferior.pid]
            process = numbered(known[0] if known else process)
        self.by_number[inferior.num] = held = Held(process=process, since=time.monotonic())
        return held

    def _forget_gone(self) -> None:
        alive = {inferior.num: inferior.pid for inferior in gdb.inferiors()}
        for number, held in list(self.by_number.items()):
            if alive.get(number) != held.process.pid:
                del self.by_number[number]

    def rank_of(self, inferior: gdb.Inferior) -> Optional[int]:
        """Rank number of an inferior, None when unknown."""
        self._forget_gone()
        held = self.by_number.get(inferior.num)
        return held.process.rank if held else None

    def _resumed(self, event: gdb.ContinueEvent) -> None:
        """What we knew of the threads is old from now on. In all-stop mode the event does not say whose."""
        if self.attaching:  # gdb lets a process take a step on its way to the first stop, and tells of it
            return
        for held in self.by_number.values():
            held.before, held.since = BeforeStop(), None

    def _stopped(self, event: gdb.StopEvent) -> None:
        for held in self.by_number.values():
            held.since = held.since or time.monotonic()


def in_rank_order(rank: AttachedRank) -> Tuple[bool, int, int]:
    """Key for sorting: those without a number last."""
    return rank_key(rank.process)


def rank_key(process: RankProcess) -> Tuple[bool, int, int]:
    """The same of a process."""
    return process.rank is None, process.rank or 0, process.pid


def numbered(process: RankProcess) -> RankProcess:
    """With the rank that the environment in memory tells, where /proc had lost it."""
    environ = read_environ(process.pid)
    return process if isinstance(environ, Missing) else rank_from_environ(process, environ)


def _state(is_core: bool, running: bool, pid: int) -> RankState:
    if is_core:
        return RankState.CORE
    if running:
        return RankState.RUNNING
    return RankState.KILLED if has_ended(pid) else RankState.STOPPED
