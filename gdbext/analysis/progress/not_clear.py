"""The answer that only a longer look can tell, with the command that takes one."""

from __future__ import annotations

from typing import Sequence

from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.knowledge.causes.remedies.remedy_constants import LET_RUN
from gdbext.model.verdict import Evidence

LONGER = "gdbext diagnose --samples"
"""How the command begins that looks for longer."""
_MOST_PIDS = 16


def not_clear(view: JobView, summary: str, evidence: Sequence[Evidence], victims: Sequence[Party] = ()) -> Candidate:
    """Only a longer look can tell whether anything hangs."""
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=summary,
        victims=tuple(victims),
        evidence=tuple(evidence),
        decided_by=longer_look(view),
    )


def longer_look(view: JobView) -> str:
    """The command that looks for long enough."""
    if view.is_held:
        return LET_RUN
    pids = [process.pid for process in view.snapshot.processes]
    named = "".join(f" {pid}" for pid in pids) if None not in pids and len(pids) <= _MOST_PIDS else ""
    return f"{LONGER} 3 --interval {max(1.0, view.spinning_after / 2):g}{named}"
