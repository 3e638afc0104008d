"""What the kernel says of every thread without stopping it: state, processor time, what it waits in (proc(5))."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Dict, Mapping, Optional, Tuple

from gdbext.capture.copies.syscall_line import call_number, parse_standing
from gdbext.capture.proc_texts import text_of, threads_of
from gdbext.knowledge.runtimes.system_calls import FOR_FILES
from gdbext.model.missing import Missing

_TICKS = os.sysconf("SC_CLK_TCK")
_MOST = 20_000  # threads
_PIPE_WRITE = "pipe_write"
"""How `wchan` ends in a write() to a full pipe: pipe_write, anon_pipe_write, fifo_pipe_write (Linux, fs/pipe.c)."""


@dataclass(frozen=True)
class ThreadTimes:
    """One thread at the moment `at` (CLOCK_MONOTONIC seconds). `None`: the kernel does not say."""

    tid: int
    at: float
    state: Optional[str] = None  # letter: R, S, D, T, ...
    name: Optional[str] = None
    started: Optional[int] = None  # clock ticks after boot: tells a reused tid from the thread we know
    cpu_ns: Optional[int] = None  # nanoseconds; in steps of a clock tick (10 ms) where the kernel has no schedstat
    waited: Optional[int] = None  # voluntary context switches: it went to sleep
    preempted: Optional[int] = None  # involuntary ones: it wanted to go on
    wchan: Optional[str] = None  # kernel function it sleeps in
    syscall: Optional[Tuple[int, ...]] = None  # number and six arguments of the system call it is blocked in
    sp: Optional[int] = None
    pc: Optional[int] = None


def look(pid: int, proc: str = "/proc", glance: bool = False) -> Dict[int, ThreadTimes]:
    """All threads of a process by tid, in the kernel's order (the main thread first); empty when it is gone.

    Threads that end while we look are left out. About 60 microseconds per thread. `glance`: half of that, for a poll
    that is repeated: processor time in clock ticks, and where the kernel tells the call no `wchan`.
    """
    looks = (_look_at(f"{proc}/{pid}/task/{tid}", tid, glance) for tid in threads_of(pid, proc)[:_MOST])
    return {found.tid: found for found in looks if found}


def is_in_pipe_write(one: ThreadTimes) -> bool:
    """Whether a thread is blocked in a write() to a full pipe. A stop makes the call return with the part that is
    written, and nothing restarts it (signal(7), pipe(7))."""
    return one.syscall is not None and (one.wchan or "").endswith(_PIPE_WRITE)


def is_on_closed_file(pid: int, one: ThreadTimes, proc: str = "/proc") -> bool:
    """Whether a thread is blocked in a call for a file whose descriptor another thread has closed meanwhile. A call
    that is restarted after a stop looks the descriptor up again, and fails."""
    if one.syscall is None or one.syscall[0] not in FOR_FILES:
        return False
    try:
        os.readlink(f"{proc}/{pid}/fd/{one.syscall[1]}")
    except FileNotFoundError:
        return True
    except OSError:
        pass
    return False


def processor_use_between(first: Mapping[int, ThreadTimes], second: Mapping[int, ThreadTimes]) -> Dict[int, float]:
    """Processor time that each thread used between two looks, as a fraction of one core; threads in both looks only."""
    fractions = {}
    for tid, now in second.items():
        before = first.get(tid)
        if before is None or before.started != now.started or before.cpu_ns is None or now.cpu_ns is None:
            continue
        seconds = now.at - before.at
        if seconds > 0:
            fractions[tid] = min(1.0, max(0.0, (now.cpu_ns - before.cpu_ns) / (seconds * 1e9)))
    return fractions


def switches_between(first: Mapping[int, ThreadTimes], second: Mapping[int, ThreadTimes]) -> Dict[int, int]:
    """How often each thread went to sleep or was preempted between two looks; threads in both looks only."""
    both = {tid: turns_in_both(first.get(tid), now) for tid, now in second.items()}
    return {tid: turns[1] - turns[0] for tid, turns in both.items() if turns is not None}


def turns_in_both(old: Optional[ThreadTimes], new: Optional[ThreadTimes]) -> Optional[Tuple[int, int]]:
    """How often a thread had gone to sleep or was preempted in each of two looks; None if it is not the same thread, or
    the kernel does not say."""
    before, after = _turns(old), _turns(new)
    if old is None or new is None or old.started != new.started or before is None or after is None:
        return None
    return before, after


def _turns(one: Optional[ThreadTimes]) -> Optional[int]:
    return None if one is None or one.waited is None or one.preempted is None else one.waited + one.preempted


def with_lasting_stops(first: Mapping[int, ThreadTimes], second: Mapping[int, ThreadTimes]) -> Dict[int, ThreadTimes]:
    """The first look, with state T only where the second saw it too: another tool may have held it for a moment."""
    return {
        tid: replace(one, state=second[tid].state) if one.state == "T" and tid in second else one
        for tid, one in first.items()
    }


def _look_at(folder: str, tid: int, glance: bool) -> Optional[ThreadTimes]:
    stat = text_of(f"{folder}/stat")
    if not stat:
        return None
    at = time.monotonic()
    name, _, rest = stat.partition("(")[2].rpartition(")")
    fields = rest.split()
    try:
        state, ticks, started = fields[0], int(fields[11]) + int(fields[12]), int(fields[19])
    except (IndexError, ValueError):
        return None
    switches = _switches(text_of(f"{folder}/status"))
    number, sp, pc = _syscall(text_of(f"{folder}/syscall"))
    wchan = "" if glance and (sp is not None or state == "R") else text_of(f"{folder}/wchan")
    return ThreadTimes(
        tid=tid,
        at=at,
        state=state,
        name=name,
        started=started,
        cpu_ns=_scheduled("" if glance else text_of(f"{folder}/schedstat"), ticks),
        waited=switches.get("voluntary_ctxt_switches"),
        preempted=switches.get("nonvoluntary_ctxt_switches"),
        wchan=wchan.strip("\0 0\n") or None,  # "0": it runs, or the kernel keeps it to itself
        syscall=number,
        sp=sp,
        pc=pc,
    )


def _scheduled(schedstat: str, ticks: int) -> int:
    """Nanoseconds on a processor: exact by the scheduler's statistics, else by the clock ticks of stat."""
    first = schedstat.split(" ", 1)[0]
    return int(first) if first.isdigit() else ticks * 1_000_000_000 // _TICKS


def _switches(status: str) -> Dict[str, int]:
    found = {}
    for line in status.splitlines()[-4:]:
        name, _, number = line.partition(":")
        if name.endswith("ctxt_switches") and number.strip().isdigit():
            found[name] = int(number)
    return found


def _syscall(text: str) -> Tuple[Optional[Tuple[int, ...]], Optional[int], Optional[int]]:
    """Number and arguments of the call that it is blocked in, sp, pc."""
    found = parse_standing(text)
    if isinstance(found, Missing):
        return None, None, None
    number = call_number(found)
    return None if number is None else (number, *found.arguments), found.sp, found.pc
