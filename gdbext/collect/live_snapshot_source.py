"""What the copies of a running rank, and /proc, say of it: answers to the questions of `snapshot_builder.builder`."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Iterable, Mapping, Optional, Sequence, Tuple

from gdbext.capture.copies.thread_status import thread_state
from gdbext.capture.nccl.pointer_search import search_result
from gdbext.capture.without_stop import kernel_threads
from gdbext.capture.without_stop.resumed_calls import as_begun
from gdbext.collect.one_rank import LiveRank
from gdbext.collect.rank_locks import Neighbours
from gdbext.discovery.proc.loops_in_text import loops_in_text
from gdbext.model.activity import Activity
from gdbext.model.clients import WaitingClient
from gdbext.model.codes import ReadState
from gdbext.model.communicator import Searched
from gdbext.model.job import Refusal
from gdbext.model.locks import LockWait, Peer
from gdbext.model.python import PythonStacks
from gdbext.model.stack import LoopInText, ThreadStack
from gdbext.snapshot_builder.builder import ProcessReading, Stacks


class LiveReading(ProcessReading):
    """One rank at the end of a look."""

    def __init__(self, rank: LiveRank, neighbours: Neighbours) -> None:
        super().__init__(rank.process)
        self._rank, self._neighbours = rank, neighbours
        self._copied = rank.copy is not None and rank.copy.state != ReadState.LOST

    def native_stacks(self) -> Stacks:
        return tuple(_with_times(stack, self._rank.times.get(stack.lwp or 0)) for stack in self._rank.stacks)

    def python_stacks(self, stacks: Stacks) -> Optional[PythonStacks]:
        return self._rank.python

    def communicators(self, stacks: Stacks) -> Searched:
        return search_result(self._rank.communicators)

    def locks(self, stacks: Stacks) -> Tuple[LockWait, ...]:
        return self._neighbours.locks(self._rank, stacks) if self._copied else ()

    def peers(self, stacks: Stacks) -> Tuple[Peer, ...]:
        return self._neighbours.peers(self._rank, stacks) if self._copied else ()

    def clients(self) -> Tuple[WaitingClient, ...]:
        return self._neighbours.clients(self._rank)

    def handlers(self) -> Optional[Tuple[int, ...]]:
        return self._neighbours.proc.handlers(self.process.pid) if self._copied else None

    def held_back(self) -> Tuple[int, ...]:
        return self._neighbours.proc.held_back(self.process.pid) if self._copied else ()

    def loops_in_text(self, stacks: Stacks, peers: Sequence[Peer]) -> Tuple[LoopInText, ...]:
        return loops_in_text(self._neighbours.proc, self.process.pid, stacks, peers) if self._copied else ()

    def host(self) -> Optional[str]:
        return self.process.host or socket.gethostname()

    def environment(self) -> Mapping[str, str]:
        return self._rank.environment

    def mapped_files(self) -> Iterable[str]:
        return [mapping.path for mapping in self._rank.copy.maps] if self._rank.copy else ()

    def activity(self) -> Optional[Activity]:
        return self._rank.activity

    def alive(self) -> bool:
        return thread_state(self.process.pid, self.process.pid) not in "ZX"

    def pause_ms(self) -> Optional[float]:
        return self._rank.pause_ms

    def state(self, stacks: Stacks) -> ReadState:
        outlined = bool(stacks) and all(stack.outlined for stack in stacks)
        read = outlined or (self._copied and bool(stacks))
        return (ReadState.PARTIAL if self._rank.cut else ReadState.OK) if read else ReadState.LOST

    def problems(self) -> Tuple[str, ...]:
        return tuple(self._rank.problems)

    def refusal(self) -> Optional[Refusal]:
        return self._rank.refusal


def _with_times(stack: ThreadStack, times: Optional[kernel_threads.ThreadTimes]) -> ThreadStack:
    """The stack with what /proc told of its thread."""
    if times is None:
        return stack
    syscall = as_begun(times.syscall, stack)
    return replace(stack, name=times.name, state=times.state, wchan=times.wchan or None, syscall=syscall)
