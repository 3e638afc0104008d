"""What a look that stopped nobody leaves open: threads that ran were not read, and some stacks end too early."""

from __future__ import annotations

import dataclasses
from typing import List, Sequence, Tuple

from gdbext.analysis.unread.unread_ranks import labels
from gdbext.analysis.view.candidate import Candidate, one_lower
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party
from gdbext.model.job import RankSnapshot
from gdbext.model.verdict import ProcessJudgement, Remedy

_SPEAKS_FOR_ITSELF = ("fatal", "implicit", "init", "teardown", *COMMUNICATION)
"""Groups of waits that explain a standstill whatever the other threads do."""


_LOOSE = ("text:loose", "text:chain", "text:boost")
"""Stacks of texts that no tool's format knew (parsers/formats/unknown_frames.py)."""


def less_sure(view: JobView, best: Candidate) -> Candidate:
    """One grade less where the verdict rests on a stack that is cut, or on a rank that has threads which were not read
    and may be the ones that matter."""
    parties = (*best.culprits, *best.victims) or view.parties
    if memory_alone(view):
        return dataclasses.replace(best, confidence="low")  # it rests on memory alone: nobody knows what the ranks do
    if parties and all(party.process.source in _LOOSE for party in parties):
        return dataclasses.replace(best, confidence="low")  # lines that only look like frames
    if any(map(_cut, parties)) or _others_matter(view, parties):
        return dataclasses.replace(best, confidence=one_lower(best.confidence))
    return best


def memory_alone(view: JobView) -> bool:
    """No thread that does the work of a rank was read, because they ran."""
    return not view.parties and any(_workers(*one) for one in zip(view.snapshot.processes, view.processes))


def not_read(view: JobView) -> List[str]:
    """Lines for people: which ranks have threads that ran, and whose stacks are cut."""
    lines: List[str] = []
    ran = _ran(view)
    if ran:
        threads = sum(map(_workers, view.snapshot.processes, view.processes))
        lines.append(
            f"{threads} {'thread' if threads == 1 else 'threads'} of {labels(ran)} that ran, not read without a stop: "
            "run again without --no-stop"
        )
    closed = [process for process in view.snapshot.processes if process.outlined]
    if closed:
        lines.append(f"all stacks of {labels(closed)}: the kernel shows no more than states and counters")
    cut = {party.index: party.process for party in view.parties if _cut(party)}
    if cut:
        lines.append(
            f"the outer frames of {labels(list(cut.values()))}: they need registers that only a stop shows; run again "
            "without --no-stop"
        )
    return lines


def look_again_remedy(view: JobView, best: Candidate) -> Tuple[Remedy, ...]:
    """Where threads that ran are what the answer lacks, no other advice is worth as much as a look that stops them."""
    ran = _ran(view)
    if not ran or (best.cause != "unknown" and not memory_alone(view)):
        return ()
    action = "Run again without --no-stop: gdbext then stops each rank for milliseconds, and reads running threads too"
    return (Remedy(action, f"threads of {labels(ran)} were running and could not be read; they may show the cause"),)


def _ran(view: JobView) -> List[RankSnapshot]:
    """Ranks with threads that ran and may be the ones that matter."""
    return [one for one, judged in zip(view.snapshot.processes, view.processes) if _workers(one, judged)]


def _cut(party: Party) -> bool:
    return party.process.unstopped and party.thread is not None and bool(party.thread.truncated)


def _others_matter(view: JobView, parties: Sequence[Party]) -> bool:
    """Whether a process has threads that ran, and is among the parties with a wait that they could explain."""
    asked = {party.index for party in parties if party.group not in _SPEAKS_FOR_ITSELF}
    return any(one.index in asked for one in _ran(view))


def _workers(process: RankSnapshot, judged: ProcessJudgement) -> int:
    """Threads that ran and are not known to be helpers."""
    workers = judged.positions_where(lambda one: one.helper is None)
    return sum(thread.unread and not thread.outlined for thread in map(process.threads.__getitem__, workers))
