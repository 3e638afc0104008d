"""One job, polled through /proc without stopping it: for how long it has stood still, and when a look is due."""

from __future__ import annotations

import time
from typing import Dict, Optional

from gdbext.analysis.progress.standstill import Patience, Stillness
from gdbext.capture.symbols.environ import recorded
from gdbext.capture.without_stop import kernel_threads
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.job import Job
from gdbext.model.watching import Pulse, ThreadPulse
from gdbext.witnesses import ras
from gdbext.witnesses.question import Asked, Question

_RAS_EVERY = 10.0  # seconds; every rank answers it


class FollowedJob:
    """What the polls of a job say. `poll` asks; `wants_look` and `looked` go before and after each full look."""

    def __init__(self, job: Job, still: float, spinning_after: float, proc: ProcFS) -> None:
        self.job = job
        self.stood = 0.0
        """Seconds, at the last poll."""
        self.whole = True
        """Whether every rank had threads at the last poll."""
        self._still, self._spinning_after, self._proc = still, spinning_after, proc
        self._stillness, self._patience = Stillness(), Patience(still)
        self._counters, self._asked_at = "", 0.0
        self._still_since_look = False

    def poll(self) -> bool:
        """Whether the job makes progress again: it does, and a look was taken while it stood."""
        pulses = self._pulses()
        now = time.monotonic()
        self.whole = all(pulse.threads for pulse in pulses.values())
        if now - self._asked_at > _RAS_EVERY:
            self._counters, self._asked_at = _counters(self.job, self._proc), now
        self.stood = self._stillness.poll(pulses, self._counters)
        again = self._still_since_look and self.stood < self._still
        self._still_since_look = self._still_since_look and not again
        return again

    @property
    def still_since_look(self) -> bool:
        """Whether it has stood still since it was looked at."""
        return self._still_since_look

    def wants_look(self) -> bool:
        return self._patience.wants_look(time.monotonic(), self.stood, self._stillness)

    def looked(self, hang: bool, undecided: bool) -> float:
        """A look was taken: it found a hang, or could not tell and is to be followed by one more. Returns when it
        ended: the next poll is due a whole interval later, for after a moment nobody's share of a core means much."""
        self._still_since_look = True
        self._stillness.settle(self._pulses())
        now = time.monotonic()
        if undecided:
            self._patience.undecided(now, self._spinning_after)
        else:
            self._patience.looked(now, hang, self._stillness)
        return now

    def _pulses(self) -> Dict[int, Pulse]:
        return {rank.pid: pulse_of(rank.pid) for rank in self.job.ranks}


def _counters(job: Job, proc: ProcFS) -> str:
    """What NCCL's status service counts; "" where it does not answer."""
    ranks = []
    for index, rank in enumerate(job.ranks):
        known = recorded(proc.environ(rank.pid))
        ranks.append(Asked(index=index, pid=rank.pid, rank=rank.rank, device=rank.device, environment=known))
    witness = ras.ask(Question(tuple(ranks), time.monotonic() + 1.0))
    return "\n".join(one.text for one in witness.statements) if witness.state == "present" else ""


def pulse_of(pid: int) -> Pulse:
    """One poll of a rank, some 0.05 ms a thread; without threads when it is gone."""
    seen: Dict[int, ThreadPulse] = {}
    looked_at = kernel_threads.look(pid, glance=True)
    has_stack_pointers = any(one.sp is not None for one in looked_at.values())
    for tid, one in looked_at.items():
        if one.state not in ("Z", "X"):
            seen[tid] = ThreadPulse(one.started, one.cpu_ns, one.waited, place_of(one, has_stack_pointers))
    return Pulse(time.monotonic(), seen)


def place_of(one: kernel_threads.ThreadTimes, with_stack_pointer: bool = False) -> Optional[str]:
    """Where a thread sleeps: the system call and its stack pointer, else what the kernel still says; None: it runs.

    `with_stack_pointer`: the kernel tells the calls of this process. A thread without one has woken up between two
    files then.
    """
    if one.state not in ("S", "D", "I", "T", "t"):
        return None
    if one.sp is not None:
        return f"{one.syscall[0] if one.syscall else -1}@{one.sp:x}"
    return None if with_stack_pointer else one.wchan or one.state
