"""Several processes held at one moment, by as many processes of ours as there are processors.

To tell a thread to stop, and later to go on, takes a processor some 15 us each. One process that holds eight ranks of
a hundred threads would hold them for 40 ms, most of which it spends on the others. So we fork: each child stops its
share, waits until the others' shares stand still too, copies, and lets go. All of this is over in milliseconds; what
was copied comes home by pipes, as plain values that `marshal` writes: nobody but our own child writes there.
"""

from __future__ import annotations

import contextlib
import marshal
import mmap
import os
import selectors
import signal
import struct
import time
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from gdbext.capture.copies.copied_process import Budget, Hook, ProcessCopy, ThreadCopy
from gdbext.capture.machine import this_machine
from gdbext.capture.memory.maps import Mapping, MemoryMap
from gdbext.capture.memory.process_memory import Block
from gdbext.capture.stop.copy_of_process import Marks, copy_processes
from gdbext.capture.stop.kill_timer import GRACE
from gdbext.capture.stop.no_interruption import signals_wait
from gdbext.model.errors import GdbextError

_READY, _STILL, _MEETINGS = 0, 1, 2
_TIME = struct.Struct("d")
_NAP = 20e-6  # seconds between two looks for the others
_LONGEST = 5.0  # seconds until somebody who does not get ready is not waited for; no longer than a stop may last
_LOOK = 1.0  # seconds without a word after which we see whether somebody stopped a child
_CHUNK = 1 << 20
_MISSED = "the ranks were not all stopped at the same instant: one gdbext process was late"
_ENDED = (
    "the gdbext process that held it was itself suspended (SIGSTOP, a frozen cgroup?) and was killed after {:.1f} s, "
    "so the threads keep running; gdbext then copied this process again, alone"
)


def copy_together(
    pids: Sequence[int], budget: Optional[Budget] = None, during: Optional[Hook] = None, marks: Optional[Marks] = None
) -> Tuple[ProcessCopy, ...]:
    """Like `stop.copy_processes(..., together=True)`, in a shorter time. What `during` returns has to be plain: tuples
    and lists of bytes, texts, numbers and `None`. Raises `GdbextError` on a machine that we do not know."""
    count = min(len(os.sched_getaffinity(0)), len(pids))
    if count < 2 or this_machine() is None:
        return copy_processes(pids, budget, during, together=True, marks=marks)
    budget = budget or Budget()
    meeting = _Meeting(count, budget.seconds)
    with signals_wait(), contextlib.ExitStack() as pipes:
        children: Dict[int, Tuple[int, int]] = {}  # end of a pipe -> number and pid of who writes there
        for number in range(count):
            reading, writing = os.pipe()
            try:
                child = os.fork()
            except OSError:  # no more processes for this user
                os.close(reading)
                os.close(writing)
                meeting.leave(number)
                continue
            if child == 0:
                for end in (*children, reading):  # whoever writes to us must notice when the parent is no more
                    os.close(end)
                _work(pids[number::count], budget, during, marks, meeting, number, writing)
            os.close(writing)
            pipes.callback(os.waitpid, child, 0)
            pipes.callback(os.close, reading)  # before that: a child whose words nobody wants does not wait for us
            children[reading] = number, child
        copies = {copy.pid: copy for copy in _come_home(children, meeting)}
    left = [pid for pid in pids if pid not in copies]
    for copy in copy_processes(left, budget, during, marks=marks):
        copies[copy.pid] = _late(copy, meeting, pids.index(copy.pid) % count)
    return tuple(copies[pid] for pid in pids)


def _late(copy: ProcessCopy, meeting: _Meeting, number: int) -> ProcessCopy:
    """The copy of a process whose holder ended before it told what it saw."""
    held = meeting.held(number)
    copy = replace(copy, problems=(*copy.problems, _ENDED.format(held) if meeting.stood(number) else _MISSED))
    if held:
        felt_ms, pause = (max(one or 0.0, held * 1e3) for one in (copy.felt_ms, copy.pause_ms))
        copy = replace(copy, felt_ms=felt_ms, pause_ms=pause)
    return copy


class _Meeting:
    """Where those that stop others wait for each other: a byte of each for each of the two times, and when each of them
    began to stop its share."""

    def __init__(self, count: int, limit: float) -> None:
        """`limit`: seconds that a stop may last."""
        self._here = mmap.mmap(-1, _MEETINGS * count)  # shared by all children
        self._times = mmap.mmap(-1, _TIME.size * count)
        self._count, self._limit = count, limit
        self._held = [0.0] * count  # seconds; the parent's
        self.stopped: Set[int] = set()  # they were ended because somebody had stopped them
        self.missed = False

    def come(self, number: int, which: int) -> None:
        """Wait for the others."""
        self._here[which * self._count + number] = 1
        if which == _READY:  # a seized thread to which a signal comes stands still
            end = time.monotonic() + min(_LONGEST, self._limit + GRACE / 2)
        else:
            end = self._began(number) + self._limit * 0.6  # after half of it, those that do not stop are given up
        part = slice(which * self._count, (which + 1) * self._count)
        while 0 in self._here[part]:
            if time.monotonic() > end:
                self.missed = True
                break
            time.sleep(_NAP)
        if which == _READY:
            self._since(number, time.monotonic())

    def frees(self, number: int) -> None:
        """This one holds nobody any more."""
        self._since(number, 0.0)
        self.leave(number)

    def leave(self, number: int) -> None:
        """This one will not come (again)."""
        began = self._began(number)
        self._held[number] = time.monotonic() - began if began else 0.0
        for which in range(_MEETINGS):
            self._here[which * self._count + number] = 1

    def held(self, number: int) -> float:
        """For how many seconds it held its share when it ended."""
        return self._held[number]

    def stood(self, number: int) -> bool:
        """Whether it was ended because it stood still itself, by us or by its own timer."""
        return number in self.stopped or self._held[number] >= self._limit + GRACE

    def _since(self, number: int, when: float) -> None:
        _TIME.pack_into(self._times, number * _TIME.size, when)

    def _began(self, number: int) -> float:
        began: float = _TIME.unpack_from(self._times, number * _TIME.size)[0]
        return began


def _work(
    share: Sequence[int],
    budget: Budget,
    during: Optional[Hook],
    marks: Optional[Marks],
    meeting: _Meeting,
    number: int,
    writing: int,
) -> None:
    """What a child does. It never returns."""
    try:
        times = iter(range(_MEETINGS))
        alone = replace(budget, note=None)  # there is one note, and it is the parent's
        copies = copy_processes(
            share, alone, during, together=True, meet=lambda: meeting.come(number, next(times, _STILL)), marks=marks
        )
        problems = (_MISSED,) if meeting.missed else ()
        data = marshal.dumps([_plain(replace(copy, problems=(*copy.problems, *problems))) for copy in copies])
        meeting.frees(number)
        view = memoryview(data)
        while view:
            view = view[os.write(writing, view) :]
    except (OSError, MemoryError, GdbextError):
        pass  # nobody reads any more, or there is no room: the share is copied once more, by the parent
    finally:
        os._exit(0)


def _come_home(children: Dict[int, Tuple[int, int]], meeting: _Meeting) -> Iterator[ProcessCopy]:
    """What the children write, until all have ended."""
    parts: Dict[int, List[bytes]] = {reading: [] for reading in children}
    with selectors.DefaultSelector() as selector:
        for reading in children:
            selector.register(reading, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(_LOOK)
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                parts[key.fd].append(data)
                if not data:
                    selector.unregister(key.fd)
                    meeting.leave(children[key.fd][0])
            if not ready:
                for number, child in [children[key.fd] for key in selector.get_map().values()]:
                    _end_when_stopped(number, child, meeting)
    for written in parts.values():
        try:
            yield from map(_copy, marshal.loads(b"".join(written)))  # noqa: S302  by our own child
        except (EOFError, ValueError, TypeError):
            continue  # it was killed before it had written all


def _end_when_stopped(number: int, child: int, meeting: _Meeting) -> None:
    """Somebody stopped it: what it holds stands still, and what it knows would be waited for."""
    if os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG) is not None:
        meeting.stopped.add(number)
        os.kill(child, signal.SIGKILL)


def _plain(copy: ProcessCopy) -> Tuple[Any, ...]:
    return (
        copy.pid,
        tuple(tuple(vars(thread).values()) for thread in copy.threads),
        tuple(map(tuple, copy.blocks)),
        tuple(map(tuple, copy.maps)),
        (copy.auxv, copy.exe, copy.architecture is not None, copy.pause_ms, copy.felt_ms, copy.was_stopped),
        (tuple(copy.problems), copy.during, copy.asleep, copy.woke),
    )


def _copy(plain: Tuple[Any, ...]) -> ProcessCopy:
    pid, threads, blocks, maps, (auxv, exe, known, pause_ms, felt_ms, was_stopped), after = plain
    problems, during, asleep, woke = after
    return ProcessCopy(
        pid=pid,
        threads=tuple(ThreadCopy(*thread) for thread in threads),
        blocks=tuple(Block(*block) for block in blocks),
        maps=MemoryMap([Mapping(*mapping) for mapping in maps]),
        auxv=auxv,
        exe=exe,
        architecture=this_machine() if known else None,
        pause_ms=pause_ms,
        felt_ms=felt_ms,
        was_stopped=was_stopped,
        problems=problems,
        during=during,
        asleep=asleep,
        woke=woke,
    )
