"""Whether a job stands still, from polls that stop nothing: where its threads sleep and how much they run.

It does when most of its ranks do: one that runs on, while all others wait for it, may be in a loop.

A thread moves when it sleeps in a place where it was not seen lately, or when it both sleeps and uses much of a core.
One that spins without ever sleeping, or wakes up for a moment and goes back to its place, does not. So a job that waits
for the GPU, polls or keeps heartbeats stands still; so does an idle server, which only a look at its stacks tells.
"""

from __future__ import annotations

import collections
from typing import Deque, Dict, FrozenSet, Mapping, Optional, Tuple

from gdbext.model.watching import Pulse, ThreadPulse

WORKS = 0.3
"""Fraction of a core from which a thread that also sleeps is doing something."""
_REMEMBERED = 32  # places of a thread
_ALIKE = 0.95  # of the threads must be where they were

_Key = Tuple[int, int]
Places = Mapping[_Key, FrozenSet[str]]
"""(pid, tid) -> where it was seen asleep."""


class Stillness:
    """Fed with polls; says for how long most ranks have not moved."""

    def __init__(self) -> None:
        self._before: Dict[_Key, ThreadPulse] = {}
        self._at: Dict[int, float] = {}
        self._places: Dict[_Key, Deque[str]] = {}
        self._counters = ""
        self._since: Dict[int, float] = {}

    def poll(self, pulses: Mapping[int, Pulse], counters: str = "") -> float:
        """Seconds for which no thread of most ranks moved. `pulses` by pid; `counters` is any text that changes with
        progress."""
        now = max((pulse.at for pulse in pulses.values()), default=0.0)
        if counters != self._counters or self._at.keys() != pulses.keys():
            self._since = dict.fromkeys(pulses, now)
        threads: Dict[_Key, ThreadPulse] = {}
        for pid, pulse in pulses.items():
            for tid, thread in pulse.threads.items():
                key = (pid, tid)
                threads[key] = thread
                if self._moved(key, thread, pulse.at - self._at.get(pid, pulse.at)):
                    self._since[pid] = now
        self._before, self._counters = threads, counters
        self._at = {pid: pulse.at for pid, pulse in pulses.items()}
        self._places = {key: places for key, places in self._places.items() if key in threads}
        moments = sorted(self._since.values())
        return now - moments[len(moments) - 1 - len(moments) // 2] if moments else 0.0

    def settle(self, pulses: Mapping[int, Pulse]) -> None:
        """Take what a look disturbed (a stop makes system calls begin anew) for no movement of the job."""
        since = dict(self._since)
        self.poll(pulses, self._counters)
        self._since = since

    def _moved(self, key: _Key, now: ThreadPulse, seconds: float) -> bool:
        before = self._before.get(key)
        known = self._places.setdefault(key, collections.deque(maxlen=_REMEMBERED))
        new_place = now.place is not None and now.place not in known
        if new_place and now.place is not None:
            known.append(now.place)
        if before is None or before.started != now.started or seconds <= 0:
            return False
        return new_place or (_slept(before, now) and _cpu(before, now, seconds) >= WORKS)

    def places(self) -> Places:
        """Where every thread was seen lately."""
        return {key: frozenset(places) for key, places in self._places.items()}

    def is_at(self, places: Places) -> bool:
        """Whether nearly all threads sleep where they were seen then."""
        asleep = {key: thread.place for key, thread in self._before.items() if thread.place is not None}
        same = sum(place in places.get(key, ()) for key, place in asleep.items())
        return bool(asleep) and same >= _ALIKE * len(asleep)


def _slept(before: ThreadPulse, now: ThreadPulse) -> bool:
    return before.slept is not None and now.slept is not None and now.slept > before.slept


def _cpu(before: ThreadPulse, now: ThreadPulse, seconds: float) -> float:
    if before.cpu_ns is None or now.cpu_ns is None:
        return 0.0
    return (now.cpu_ns - before.cpu_ns) / (seconds * 1e9)


class Patience:
    """When the next look may be taken: one a standstill, and ever more rarely where looks found no hang."""

    def __init__(self, still: float, least: float = 30.0, most: float = 600.0) -> None:
        self._still, self._least, self._most = still, least, most
        self._pause = least
        self._next = 0.0
        self._looked = False
        self._idle: Optional[Places] = None
        self._idle_until = 0.0

    def wants_look(self, now: float, still_seconds: float, stillness: Stillness) -> bool:
        """Whether to look: it stood long enough, was not looked at since it moved, and is not where it was idle."""
        if still_seconds < self._still:
            self._looked = False
            return False
        if self._looked or now < self._next:
            return False
        # Python frames do not deepen the stack of C: the same places may be another wait, so idle is not for ever.
        return not (self._idle is not None and now < self._idle_until and stillness.is_at(self._idle))

    def undecided(self, now: float, seconds: float) -> None:
        """A look was taken that could not tell: one more is due so many seconds after it, if the job still stands."""
        self._looked, self._next = False, now + seconds

    def looked(self, now: float, hang: bool, stillness: Stillness) -> None:
        """A look was taken; `hang`: it found something."""
        self._looked = True
        if hang:
            self._pause, self._idle = self._least, None
        else:
            self._pause = min(self._most, self._pause * 2)
            self._idle, self._idle_until = stillness.places(), now + self._most
        self._next = now + self._pause
