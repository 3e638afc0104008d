"""What the ranks did right before gdb stopped them, by the kernel's counters: it tells who works from who waits."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Dict, Mapping, Optional, Sequence

from gdbext.capture.without_stop import counters, kernel_threads
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
from gdbext.model.activity import Activity

LEAST = 1.0
"""Seconds for which running ranks are watched: in less a rank that works may not have got far enough to show it."""
_STEP = 0.05  # Python sees a Ctrl-C between two of them


@dataclass(frozen=True)
class BeforeStop:
    """The threads of one rank as they were last, and what happened in the `seconds` before."""

    seconds: Optional[float] = None  # None: nobody watched it
    times: Mapping[int, ThreadTimes] = field(default_factory=dict)
    cpu: Mapping[int, float] = field(default_factory=dict)
    switches: Mapping[int, int] = field(default_factory=dict)
    activity: Optional[Activity] = None


class RunningRanks:
    """Counters of ranks that are about to be stopped. Nothing is stopped for them."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._threads = {pid: kernel_threads.look(pid) for pid in pids}
        self._census = counters.take(pids)
        self._activity: Dict[int, Activity] = {}

    def finish(self) -> None:
        """To be called before the first of them is stopped: what the others do after that is an effect of it."""
        while time.monotonic() < self._census.at + LEAST:
            time.sleep(_STEP)
        self._activity = counters.activity_between(self._census, counters.take(self._pids), self._pids)

    def of(self, pid: int) -> BeforeStop:
        """Of a rank that is stopped next."""
        before, now = self._threads[pid], kernel_threads.look(pid)
        return BeforeStop(
            seconds=time.monotonic() - self._census.at,
            times=now,
            cpu=kernel_threads.processor_use_between(before, now),
            switches=kernel_threads.switches_between(before, now),
            activity=self._activity.get(pid),
        )


def unwatched(pid: int) -> BeforeStop:
    """Of a rank that is stopped at once."""
    return BeforeStop(times=kernel_threads.look(pid))
