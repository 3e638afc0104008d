"""Ranks that we may not read: what /proc tells everybody of their threads, looked at twice, in place of stacks."""

from __future__ import annotations

from typing import Collection, Mapping, Optional, Tuple

from gdbext.capture.copies.thread_status import tracer_of
from gdbext.capture.without_stop import kernel_threads
from gdbext.collect.one_rank import LiveRank
from gdbext.knowledge.frames import THREAD_NAMES
from gdbext.model.codes import ReadState, StackEnd
from gdbext.model.stack import OUTLINE, ThreadStack
from gdbext.model.text.patterns import regex

_LEAST = 0.1
"""Seconds between two looks from which processor time says something."""
_HELPER = regex("|".join(row.pattern for row in THREAD_NAMES))


def lacks_only_permission(rank: LiveRank) -> bool:
    """Whether nothing but the right to read it is missing: who is dead, or held by a debugger, is told as such."""
    read = rank.copy is not None and rank.copy.state != ReadState.LOST
    if read or (rank.blocked and not rank.barred) or tracer_of(rank.pid, rank.pid):
        return False
    now = kernel_threads.look(rank.pid)
    return any(one.state not in ("Z", "X") for one in now.values())


def complete(rank: LiveRank) -> None:
    """The threads of the rank, from its first look and one more now. Nothing was stopped or touched."""
    rank.stacks = stacks_of(rank.times, kernel_threads.look(rank.pid))
    rank.pause_ms = 0.0
    rank.cut = True


def stacks_of(
    first: Mapping[int, kernel_threads.ThreadTimes], second: Mapping[int, kernel_threads.ThreadTimes]
) -> Tuple[ThreadStack, ...]:
    """Threads without frames, as the second look saw them, and what they did since the first."""
    used = kernel_threads.processor_use_between(first, second)
    apart = {tid: one.at - first[tid].at for tid, one in second.items() if tid in first}
    return tuple(
        ThreadStack(
            id=str(tid),
            frames=(),
            lwp=tid,
            name=one.name,
            state=one.state,
            cpu=used.get(tid) if apart.get(tid, 0.0) >= _LEAST else None,
            wchan=one.wchan,
            syscall=one.syscall,
            truncated=OUTLINE,
            end=StackEnd.OUTLINE,
            switches=_switches(first.get(tid), one),
        )
        for tid, one in second.items()
        if one.state not in ("Z", "X")
    )


def helpers_of(times: Mapping[int, kernel_threads.ThreadTimes], known: Collection[int]) -> Tuple[ThreadStack, ...]:
    """Threads without frames whose names say which library they serve: `known` are those that were read."""
    named = {tid: one for tid, one in times.items() if tid not in known and _HELPER.match(one.name or "")}
    return stacks_of(named, named)


def _switches(before: Optional[kernel_threads.ThreadTimes], now: kernel_threads.ThreadTimes) -> Optional[int]:
    """How often it gave up its processor since; None where nobody counted."""
    if before is None or before.started != now.started or before.waited is None or now.waited is None:
        return None
    return now.waited - before.waited + (now.preempted or 0) - (before.preempted or 0)
