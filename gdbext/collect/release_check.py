"""The last thing that is done for a rank: see that nobody traces it, that nothing of it is stopped, and that it lives.

A hung rank makes no progress by itself. So it is alive when one of its threads has used the processor since it was let
go, or when all of them are blocked in the very calls that they were in before. Some 40 microseconds a thread, twice.
"""

from __future__ import annotations

import time
from typing import Dict, List, Mapping, NamedTuple, Optional

from gdbext.capture.copies.syscall_line import REFUSED, RUNNING, Standing, call_number
from gdbext.capture.copies.thread_status import thread_state, tracer_of
from gdbext.capture.proc_texts import threads_of
from gdbext.capture.without_stop.kernel_threads import ThreadTimes
from gdbext.capture.without_stop.sleeping_threads import Mark, sleep_mark
from gdbext.knowledge.runtimes.system_calls import RESTART
from gdbext.model.missing import Maybe
from gdbext.model.text.ranges import ranges_text

Marks = Mapping[int, Maybe[Mark]]

_ONCE_MORE = 0.05  # seconds; only where something is wrong: another tool may hold a rank for a moment


class Sign(NamedTuple):
    """`word`: one of `AFTER` (model/job.py), None where nothing can be told. `trouble`: for people, "" when there is
    none."""

    word: Optional[str]
    trouble: str = ""


def marks_of(pid: int) -> Marks:
    """Where each thread stands, taken right after it was let go."""
    return {tid: sleep_mark(pid, tid) for tid in threads_of(pid)}


def sign_of(pid: int, before: Mapping[int, ThreadTimes], since: Marks) -> Sign:
    """What a process does now. `before`: its threads before the look, `since`: right after the last release."""
    found = _sign(pid, before, since)
    if found.trouble and found.word != "gone":
        time.sleep(_ONCE_MORE)
        found = _sign(pid, before, since)
    return found


def _sign(pid: int, before: Mapping[int, ThreadTimes], since: Marks) -> Sign:
    states = {tid: thread_state(pid, tid) for tid in threads_of(pid)}
    if all(state in "ZX" for state in states.values()):
        return Sign("gone")
    held = {tid: tracer for tid in (pid, *_pids_in_state(states, "t")) for tracer in [tracer_of(pid, tid)] if tracer}
    if held:
        was_held = pid in before and before[pid].state == "t"
        holds = _and_holds(_pids_in_state(states, "t"), states)
        return Sign("traced", "" if was_held else f"process {next(iter(held.values()))} traces it now{holds}")
    stopped = _pids_in_state(states, "tT")
    new = [tid for tid in stopped if tid not in before or before[tid].state not in ("t", "T")]
    if new:
        which = "it is" if len(new) == len(states) else f"threads {ranges_text(new)} are"
        return Sign(
            "stopped", f"{which} stopped now and {_state_before(before, pid)} before; kill -CONT {pid} resumes it"
        )
    if stopped:
        return Sign("stopped")
    if pid in before and before[pid].state == "T":
        return Sign(_end_or_state(pid, states, before, since), "it was stopped before and runs now")
    return Sign(_end_or_state(pid, states, before, since))


def _end_or_state(
    pid: int, states: Mapping[int, str], before: Mapping[int, ThreadTimes], since: Marks
) -> Optional[str]:
    standing: Dict[int, Standing] = {}
    for tid, state in states.items():
        now, then = sleep_mark(pid, tid), since.get(tid)
        if now == REFUSED:
            return None
        if now == RUNNING or state == "R" or (isinstance(now, Mark) and _has_run(then, now)):
            return "runs"
        if isinstance(now, Mark):
            standing[tid] = now.standing
    return "waits" if all(_is_same_call(before.get(tid), one) for tid, one in standing.items()) else "moved"


def _has_run(then: Optional[Maybe[Mark]], now: Mark) -> bool:
    """The counters of a thread change whenever it gets a processor; a thread that is new was made by another."""
    return then is None or then == RUNNING or (isinstance(then, Mark) and then.counters != now.counters)


def _is_same_call(before: Optional[ThreadTimes], now: Standing) -> bool:
    """The same call from the same place. One with a time-out goes on as restart_syscall(2) after a stop."""
    if before is None or (before.sp, before.pc) != (now.sp, now.pc):
        return False
    number = before.syscall[0] if before.syscall else None
    return call_number(now) in (number, RESTART)


def _pids_in_state(states: Mapping[int, str], letters: str) -> List[int]:
    return [tid for tid, state in states.items() if state in letters]


def _and_holds(held: List[int], states: Mapping[int, str]) -> str:
    return f" and holds {len(held)} of its {len(states)} threads" if held else ""


def _state_before(before: Mapping[int, ThreadTimes], pid: int) -> str:
    state = before[pid].state if pid in before else None
    return f"was in state {state}" if state else "was not"
