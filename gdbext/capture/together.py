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
import time
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from gdbext.capture.maps import Mapping, MemoryMap
from gdbext.capture.memory import Block
from gdbext.capture.ptrace import this_machine
from gdbext.capture.stop import Budget, Hook, Marks, ProcessCopy, ThreadCopy, copy_processes
from gdbext.capture.undisturbed import signals_wait
from gdbext.model.errors import GdbextError

_READY, _STILL, _MEETINGS = 0, 1, 2
_NAP = 20e-6  # seconds between two looks for the others
_LONGEST = 5.0  # seconds until somebody who does not get ready is not waited for; nobody is held by then
_CHUNK = 1 << 20
_MISSED = "not all ranks stood still at the same moment: one of those that stop them was late"


def copy_together(
    pids: Sequence[int],
    budget: Optional[Budget] = None,
    during: Optional[Hook] = None,
    marks: Optional[Marks] = None,
) -> Tuple[ProcessCopy, ...]:
    """Like `stop.copy_processes(..., together=True)`, in a shorter time. What `during` returns has to be plain: tuples
    and lists of bytes, texts, numbers and `None`. Raises `GdbextError` on a machine that we do not know."""
    count = min(len(os.sched_getaffinity(0)), len(pids))
    if count < 2 or this_machine() is None:
        return copy_processes(pids, budget, during, together=True, marks=marks)
    budget = budget or Budget()
    meeting = _Meeting(count, budget.seconds * 0.6)  # after half of it, those that do not stop are given up
    with signals_wait(), contextlib.ExitStack() as pipes:
        children: Dict[int, Tuple[int, Sequence[int]]] = {}  # end of a pipe -> number and share of who writes there
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
            children[reading] = number, pids[number::count]
        copies = {copy.pid: copy for copy in _come_home(children, meeting)}
    left = [pid for pid in pids if pid not in copies]
    late = copy_processes(left, budget, during, marks=marks)
    copies.update((copy.pid, replace(copy, problems=(*copy.problems, _MISSED))) for copy in late)
    return tuple(copies[pid] for pid in pids)


class _Meeting:
    """Where those that stop others wait for each other: a byte of each for each of the two times."""

    def __init__(self, count: int, patience: float) -> None:
        self._here = mmap.mmap(-1, _MEETINGS * count)  # shared by all children
        self._count, self._patience = count, patience
        self._since = 0.0
        self.missed = False

    def come(self, number: int, which: int) -> None:
        """Wait for the others."""
        self._here[which * self._count + number] = 1
        end = self._since + self._patience if which == _STILL else time.monotonic() + _LONGEST
        part = slice(which * self._count, (which + 1) * self._count)
        while 0 in self._here[part]:
            if time.monotonic() > end:
                self.missed = True
                break
            time.sleep(_NAP)
        self._since = time.monotonic()

    def leave(self, number: int) -> None:
        """This one will not come (again)."""
        for which in range(_MEETINGS):
            self._here[which * self._count + number] = 1


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
        copies = copy_processes(
            share, budget, during, together=True, meet=lambda: meeting.come(number, next(times, _STILL)), marks=marks
        )
        problems = (_MISSED,) if meeting.missed else ()
        data = marshal.dumps([_plain(replace(copy, problems=(*copy.problems, *problems))) for copy in copies])
        meeting.leave(number)
        view = memoryview(data)
        while view:
            view = view[os.write(writing, view) :]
    except (OSError, MemoryError, GdbextError):
        pass  # nobody reads any more, or there is no room: the share is copied once more, by the parent
    finally:
        os._exit(0)


def _come_home(children: Dict[int, Tuple[int, Sequence[int]]], meeting: _Meeting) -> Iterator[ProcessCopy]:
    """What the children write, until all have ended."""
    parts: Dict[int, List[bytes]] = {reading: [] for reading in children}
    with selectors.DefaultSelector() as selector:
        for reading in children:
            selector.register(reading, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, _CHUNK)
                parts[key.fd].append(data)
                if not data:
                    selector.unregister(key.fd)
                    meeting.leave(children[key.fd][0])
    for written in parts.values():
        try:
            yield from map(_copy, marshal.loads(b"".join(written)))  # noqa: S302  by our own child
        except (EOFError, ValueError, TypeError):
            continue  # it was killed before it had written all


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
