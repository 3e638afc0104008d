"""What the witnesses beside the stacks mean for the verdict: they prove, they support, they contradict."""

from __future__ import annotations

import dataclasses
from typing import Iterator, List, Optional, Tuple

from gdbext.analysis.view.candidate import Candidate, blame, evidence_of, one_lower
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import start, verb, who
from gdbext.knowledge.causes.witnesses import CONTRADICTS
from gdbext.model.verdict import Evidence, ThreadJudgement
from gdbext.model.witness import Statement

_EVIDENCE_STATEMENTS = (
    "gpu-fault",
    "gpu-error",
    "shm-full",
    "dead",
    "gone-wrong",
    "mismatch",
    "behind",
    "spins",
    "in-sync",
    "kernel",
)
"""What is worth a line of evidence, the weightiest first."""
_MOST = 4
_SPINNING = 0.7  # of a core


def gpu_fault(view: JobView) -> Optional[Candidate]:
    """The kernel's log or NVML says that the GPU of a rank has failed."""
    hit = _parties(view, "gpu-fault") + _closed(view, "gpu-fault")
    if not hit:
        return None
    failed = {party.index for party in hit}
    others = [party for party in view.of(*COMMUNICATION, "implicit", "init") if party.index not in failed]
    said = next(statement for _, statement in _statements(view, "gpu-fault"))
    summary = f"The GPU of {who(hit)} had a fault: {said.text}. Work on that GPU cannot complete" + (
        f", and {who(others)} {verb(others, 'waits', 'wait')} for it." if others else "."
    )
    return blame("gpu-fault", "high", summary, hit, others)


def shm_full(view: JobView) -> Optional[Candidate]:
    """No room in /dev/shm while NCCL sets up: the next connection cannot be made."""
    hit = _parties(view, "shm-full")
    setting_up = view.of("init") or [party for party in view.of("fatal") if party.kind == "sigbus"]
    if not hit or not setting_up:
        return None
    said = next(statement for _, statement in _statements(view, "shm-full"))
    summary = (
        f"{start(who(setting_up))} {verb(setting_up, 'sets', 'set')} up NCCL in {where(setting_up[0])}, "
        f"and /dev/shm is full: {said.text}."
    )
    fatal = any(party.kind == "sigbus" for party in setting_up)
    confidence = "high" if fatal else "medium"
    return Candidate(
        cause="shm-too-small",
        confidence=confidence,
        summary=summary,
        culprits=tuple(setting_up),
        evidence=evidence_of(setting_up, ()),
    )


def behind(view: JobView) -> Optional[Candidate]:
    """Nothing on the stacks tells the ranks apart, and a counter does while nobody moves."""
    late, odd = _parties(view, "behind"), _parties(view, "mismatch")
    suspects = odd or late
    if not suspects or len(suspects) == len(view.parties) or not view.stands_still:
        return None
    named = {party.index for party in suspects}
    others = [party for party in view.parties if party.index not in named]
    said = next(statement for _, statement in _statements(view, "mismatch" if odd else "behind"))
    what = "is in another operation than its peers" if odd else "has not launched the operation that its peers wait for"
    summary = f"No rank is making progress, and {who(suspects)} {what}: {said.text}."
    cause = "collective-mismatch" if odd else "missing-rank"
    return blame(cause, "medium", summary, suspects, others)


def gpu_cores_alone(view: JobView) -> Optional[Candidate]:
    """No stack was read, and GPU cores without an exception say which kernel sits where: no more than that."""
    if view.parties or all(process.kernels is None for process in view.snapshot.processes):
        return None
    texts = [one.text for says in ("spins", "behind", "kernel") for _, one in _statements(view, says)]
    places = "; ".join(texts[:_MOST]) or "no kernel is on a GPU"
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=f"The GPU cores hold no exception: {places}. Who holds them up is on the stacks of the host, which were"
        " not given.",
        decided_by="gdbext diagnose core.* *.nvcudmp",
    )


PATTERNS = (gpu_fault, shm_full, behind)


def with_witness_statements(view: JobView, best: Candidate) -> Candidate:
    """The candidate with what the witnesses say beside its own evidence, less sure where they contradict it."""
    contradicts = CONTRADICTS.get(best.cause, ())
    statements = [
        (name, one)
        for says in dict.fromkeys((*_EVIDENCE_STATEMENTS, *contradicts))
        for name, one in _statements(view, says)
    ]
    lines = [Evidence(f"{name}: {one.text}", one.process) for name, one in statements[:_MOST]]
    against = [f"{name}: {one.text}" for name, one in statements if one.says in contradicts]
    confidence, summary = best.confidence, best.summary
    if against:
        confidence = one_lower(confidence)
        summary += f" But this contradicts it: {against[0]}."
    evidence = (*best.evidence, *lines, *_processor_time(view, best))
    return dataclasses.replace(best, confidence=confidence, summary=summary, evidence=evidence)


def _processor_time(view: JobView, best: Candidate) -> Iterator[Evidence]:
    """Who spins: a thread that waits and uses the processor all the time polls, it is not blocked."""
    named = {one.index for one in (*best.culprits, *best.victims)} | {item.process for item in best.evidence}
    parties = [party for party in view.parties if party.index in named]
    spinning = [one for one in parties if one.thread is not None and (one.thread.cpu or 0) >= _SPINNING]
    if spinning and view.snapshot.apart is not None:
        used = min(one.thread.cpu or 0 for one in spinning if one.thread is not None)
        text = f"{who(spinning)} used {used:.0%} of a core or more {view.watched}: {verb(spinning, 'it', 'they')} "
        first = spinning[0]
        ending = f"{verb(spinning, 'polls', 'poll')} or {verb(spinning, 'computes', 'compute')}"
        yield Evidence(text + ending, first.index, first.id or None, first.judged.frame)


def _statements(view: JobView, says: str) -> Iterator[Tuple[str, Statement]]:
    for witness in view.snapshot.witnesses:
        for statement in witness.statements:
            if statement.says == says:
                yield witness.name, statement


def _parties(view: JobView, says: str) -> List[Party]:
    indexes = {statement.process for _, statement in _statements(view, says)}
    return [party for party in view.parties if party.index in indexes]


def _closed(view: JobView, says: str) -> List[Party]:
    """The same of ranks that nobody could read: for what is true whatever their stacks are."""
    indexes = {statement.process for _, statement in _statements(view, says)}
    closed = (one for one in view.unseen if one.outlined and one.index in indexes)
    return [Party(process=one, thread=None, judged=ThreadJudgement(kind="unknown"), group="unknown") for one in closed]
