"""What became of a rank that gdb let go, as /proc shows it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Dict, Optional, Sequence, Tuple

from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.attached_ranks import AttachedRank
from gdbext.model.codes import RankState
from gdbext.model.missing import Missing

_STOPS_AGAIN = 1.0  # seconds


def release_notes(rows: Sequence[AttachedRank]) -> Tuple[str, ...]:
    alive = [row for row in rows if row.state != RankState.CLOSED]
    still = any(row.problem or row.state == RankState.STILL_STOPPED for row in rows)
    return ("All of them are running again.",) if alive and not still else ()


def released_rank(rank: AttachedRank, problem: Optional[str], stopped_before: bool) -> AttachedRank:
    """How /proc shows the process after the release. `stopped_before`: it was stopped before gdb came."""
    if rank.state == RankState.CORE:
        return replace(rank, number=None, current=False, state=RankState.CLOSED, problem=problem)
    proc = ProcFS()
    status = proc.status(rank.process.pid)
    if isinstance(status, Missing):
        return replace(rank, state=RankState.ENDED, current=False, problem=problem)
    tracer = status.get("TracerPid", "0")
    if tracer != "0":
        problem = problem or f"process {tracer} still traces it"
    if stopped_before:
        status = _stops_again(proc, rank.process.pid, status)
    state = RankState.STILL_STOPPED if status.get("State", "")[:1] == "T" else RankState.RELEASED
    return replace(rank, number=None, current=False, state=state, problem=problem)


def _stops_again(proc: ProcFS, pid: int, status: Dict[str, str]) -> Dict[str, str]:
    """/proc/PID/status once a process has stopped that was stopped before: gdb gives it its SIGSTOP back, and it takes
    that when it gets a processor."""
    until = time.monotonic() + _STOPS_AGAIN
    while status.get("State", "T")[:1] == "R" and time.monotonic() < until:
        time.sleep(0.001)
        again = proc.status(pid)
        status = {} if isinstance(again, Missing) else again
    return status
