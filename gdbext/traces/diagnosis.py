"""`gdbext trace diagnose`: from files to the verdict for slowness."""

from __future__ import annotations

from typing import Dict, Sequence, Tuple

from gdbext.knowledge.causes.late_ranks import REMEDY_BEFORE
from gdbext.knowledge.causes.remedies import REMEDIES
from gdbext.model.evidence import Evidence
from gdbext.model.text.ranges import counted
from gdbext.model.text.ranges import ranks as ranks_of
from gdbext.model.trace import Lateness, Skew, TraceDiagnosis
from gdbext.model.verdict import Remedy, Verdict
from gdbext.traces.collective_times import Meeting, meetings
from gdbext.traces.late_verdict import LEAST, SLOW, SMALL, Finding, Tally, judge_lateness
from gdbext.traces.traces_of_job import Job
from gdbext.traces.verdict_sentences import doing_of, evidence_of, host_row, once_of, summary_of

_KEPT = 200  # collectives in the answer, those that cost most
_TIMELINE = 400


def diagnose(job: Job) -> TraceDiagnosis:
    """Pure: what the traces of a job say."""
    collectives = meetings(job.traces, job.clocks)
    residuals = [clock.residual_us for clock in job.clocks[1:] if clock.residual_us is not None]
    on_host = any(trace.on_host for trace in job.traces)
    noise = 0.0 if on_host or not residuals else max(residuals)
    finding = judge_lateness(collectives, job.traces, job.window, noise)
    start = min((one.first for one in collectives), default=0.0)
    verdict = _verdict(job, finding, collectives)
    counts: Dict[str, int] = dict.fromkeys(("skew", "transfer", "mixed", "inconclusive"), 0)
    for one in collectives:
        counts[one.sort] += 1
    costly = sorted(collectives, key=lambda one: -(one.delay + one.excess))[:_KEPT]
    thinned = collectives[:: max(1, -(-len(collectives) // _TIMELINE))]
    return TraceDiagnosis(
        files=job.files,
        verdict=verdict,
        window_us=job.window,
        counts=counts,
        delay_us=sum(tally.delay for tally in finding.tallies.values()),
        excess_us=sum(one.excess for one in collectives),
        lateness=_lateness(finding),
        shares={at: trace.shares for at, trace in enumerate(job.traces) if trace.shares is not None},
        skews=tuple(_skew(one, start) for one in costly),
        timeline=tuple(_skew(one, start) for one in thinned),
        problems=tuple(job.problems),
    )


def _skew(one: Meeting, start: float) -> Skew:
    first = one.first
    return Skew(
        kind=one.key[0],
        group=one.key[1],
        number=one.number,
        size=one.size if one.size >= 0 else None,
        at=first - start,
        arrivals={at: arrival - first for at, arrival in sorted(one.arrivals.items())},
        skew=one.skew,
        transfer=one.transfer,
        baseline=one.baseline,
        sort=one.sort,
        last=one.last,
    )


def _lateness(finding: Finding) -> Tuple[Lateness, ...]:
    total = sum(tally.delay for tally in finding.tallies.values())
    rows = [
        Lateness(
            process=at,
            delay_us=tally.delay,
            share=tally.delay / total if total else 0.0,
            times=tally.times,
            waited_us=tally.waited,
            before=tally.before,
            doing=doing_of(tally),
            action=_action(tally),
        )
        for at, tally in finding.tallies.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.delay_us))


def _action(tally: Tally) -> str:
    row = host_row(tally)
    return row.action if row else ""


def _verdict(job: Job, finding: Finding, collectives: Sequence[Meeting]) -> Verdict:
    cause, why = finding.cause, _why_not(job, collectives)
    named_missing = _members_missing(job)
    if named_missing and cause in ("not-late", "slow-transfer"):
        cause, why = "unknown", f"the one that is late may be among those without a trace ({named_missing})"
    if why and not collectives:
        cause = "unknown"
    finding.cause = cause
    culprits = finding.culprits if cause != "unknown" else ()
    ranks = {at for one in collectives for at in one.arrivals}
    victims = tuple(sorted(ranks - set(culprits))) if culprits and cause != "slow-transfer" else ()
    evidence = [f"{counted(len(collectives), 'collective')} compared on {len(ranks)} ranks"] if collectives else []
    evidence += once_of(finding, job.files)
    evidence += evidence_of(finding, job.files) if culprits and cause != "slow-transfer" else []
    rows = [host_row(finding.tallies[at]) for at in culprits[:3]]
    remedies = [Remedy(row.action, f"the late rank {row.doing}") for row in rows if row is not None]
    remedies = list(dict.fromkeys(remedies))
    did = {finding.tallies[at].before for at in culprits} - {""}
    useless = [rule for before, rule in REMEDY_BEFORE.items() if did and before not in did]
    if cause != "unknown":
        remedies += [Remedy(row.action, row.reason) for row in REMEDIES if row.cause == cause and row not in useless]
    missing = [why] if cause == "unknown" and why else []
    missing += [named_missing] if named_missing else []
    return Verdict(
        cause=cause,
        confidence=_confidence(job, finding, collectives, bool(named_missing)),
        summary=summary_of(finding, job.files, job.window, why or "waiting adds up, but no pattern stands out"),
        culprits=culprits,
        victims=victims,
        evidence=tuple(Evidence(text) for text in evidence),
        remedies=tuple(remedies),
        missing=tuple(dict.fromkeys(missing)),
    )


def _why_not(job: Job, collectives: Sequence[Meeting]) -> str:
    if len(job.traces) < 2:
        return "there is a trace of one rank only; lateness needs at least two"
    if not any(trace.calls for trace in job.traces):
        return (
            "the traces have no collectives that end together (NCCL, RCCL, HCCL, Gloo), so arrivals cannot be compared"
        )
    if not collectives:
        return "no collective of one rank could be matched to one of another: do the traces cover the same seconds?"
    if len(collectives) < LEAST:
        return f"only {counted(len(collectives), 'collective')} in common among the ranks: profile more steps"
    return ""


def _members_missing(job: Job) -> str:
    """Which ranks meet with ours and have no trace, in words."""
    return "" if not job.missing else f"no trace of {ranks_of(job.missing)}"


def _confidence(job: Job, finding: Finding, collectives: Sequence[Meeting], missing: bool) -> str:
    if finding.cause == "unknown":
        return "low"
    partial = missing or any(one.state != "ok" for one in job.files)
    if finding.cause == "not-late":
        is_close = finding.waiting >= SMALL or finding.excess >= SLOW / 2
        return "medium" if partial or is_close or len(collectives) < 20 else "high"
    times = sum(finding.tallies[at].times for at in finding.culprits)
    known_before = any(finding.tallies[at].before for at in finding.culprits)
    if (
        finding.cause == "late-rank"
        and finding.strength >= 0.8
        and finding.waiting >= 0.08
        and times >= 10
        and known_before
    ):
        return "medium" if partial else "high"
    if finding.waiting >= 0.05 and (known_before or finding.cause != "late-rank") and len(collectives) >= 10:
        return "medium"
    if finding.cause == "slow-transfer" and finding.excess >= 0.1:
        return "medium"
    return "low"
