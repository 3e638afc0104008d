"""Threads of a look by what the kernel calls them."""

from __future__ import annotations

from typing import Dict, Iterator, Optional, Tuple

from gdbext.analysis.stacks.thread_kind import group_of
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import LockWait

STOPPED = "T"


class Threads:
    """Threads as parties by process and LWP, and processes by pid: two hosts may have the same."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._places: Dict[int, Dict[Optional[int], int]] = {}  # of processes that were asked for
        self.parties = {one.index: one for one in view.parties}
        states = ((one.host, one.pid, {thread.state for thread in one.threads}) for one in view.snapshot.processes)
        self.stopped = {(host, pid) for host, pid, found in states if found == {STOPPED}}
        known = ((one.host, one.pid, one.index) for one in view.snapshot.processes if one.pid is not None)
        self.several_hosts = len({one.host for one in view.snapshot.processes}) > 1
        self.index = {(host, pid): index for host, pid, index in known}
        self.waiting: Dict[Tuple[int, int], int] = {}  # who waits for a thread's mutex
        for process in view.snapshot.processes:
            for wait in process.locks:
                if wait.kind == "mutex" and isinstance(wait.owner, int) and wait.owner_process is None:
                    self.waiting.setdefault((process.index, wait.owner), wait.thread)

    def get(self, index: int, lwp: int) -> Optional[Party]:
        process = self._view.snapshot.processes[index]
        if index not in self._places:
            self._places[index] = {thread.lwp: position for position, thread in enumerate(process.threads)}
        position = self._places[index].get(lwp)
        if position is None:
            return None
        judged = self._view.processes[index].threads[position]
        return Party(
            process=process, thread=process.threads[position], judged=judged, group=group_of(judged), is_thread=True
        )

    def owner(self, process: RankSnapshot, wait: LockWait) -> Optional[Party]:
        """The thread that must act before a wait of this process ends, where it was seen."""
        if wait.gone or not isinstance(wait.owner, int):
            return None
        index = process.index if wait.owner_process is None else self.index.get((process.host, wait.owner_process))
        return self.get(index, wait.owner) if index is not None else None

    def waits(self) -> Iterator[Tuple[Party, LockWait]]:
        """Who waits for a lock, by the memory of all processes."""
        for process in self._view.snapshot.processes:
            for wait in process.locks:
                waiter = self.get(process.index, wait.thread)
                if waiter is not None:
                    yield waiter, wait


def deciding_function(party: Party) -> str:
    """The function that decides what the thread waits for, by its name."""
    frame = party.frame(party.judged.frame)
    return (frame.function if frame is not None else None) or ""
