"""The verdict: every thread, every process, then the whole job as a wait-for graph."""

from __future__ import annotations

import dataclasses
from typing import Callable, Dict, Mapping, Optional, Tuple

from gdbext.analysis.causes.log_quotes import log_line_evidence, party_of_log_line
from gdbext.analysis.causes.witness_evidence import with_witness_statements
from gdbext.analysis.communicators.launch_counts import with_launch_counts
from gdbext.analysis.failures.gpu_findings import findings
from gdbext.analysis.logs.other_errors import other_errors
from gdbext.analysis.logs.progress_in_logs import members_counted
from gdbext.analysis.logs.repeated_by_ray import deaths_left_out
from gdbext.analysis.progress.between_looks import between_copies, between_looks
from gdbext.analysis.progress.slow import doubt_slow_work
from gdbext.analysis.stacks.process_kind import judge_process
from gdbext.analysis.stacks.thread_kind import Judged
from gdbext.analysis.unread import unread_ranks
from gdbext.analysis.unread.not_read import missing_lines
from gdbext.analysis.unread.open_stacks import less_sure
from gdbext.analysis.verdict.chosen_remedies import remedies, what_the_text_shows
from gdbext.analysis.verdict.kernel_tasks import beside_waits
from gdbext.analysis.verdict.several_jobs import jobs_of, join_answers, mixed_up, part
from gdbext.analysis.verdict.without_cause import without_cause
from gdbext.analysis.view.candidate import Candidate
from gdbext.analysis.view.job_view import JobView, Party, build_view
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import verb, who
from gdbext.analysis.waits.best_hypothesis import read_off
from gdbext.knowledge.frames.python.python_libraries import RESULTS_OF_OTHERS
from gdbext.knowledge.spinning import SPINNING_AFTER
from gdbext.model.considered_hypotheses import Regrade
from gdbext.model.job import JobSnapshot
from gdbext.model.verdict import Diagnosis, Evidence, Verdict

_REGRADES: Mapping[str, Callable[[JobView, Candidate], Candidate]] = {
    "skipped": lambda _, best: _doubt_order(best),
    "slow work": lambda _, best: doubt_slow_work(best),
    "unread": less_sure,
    "counters": with_launch_counts,
    "witnesses": with_witness_statements,
}
"""What changes the confidence after the graph was read, in this order, by keys of REGRADES
(model/considered_hypotheses.py)."""


def judge(
    snapshot: JobSnapshot, earlier: Optional[JobSnapshot] = None, spinning_after: float = SPINNING_AFTER
) -> Diagnosis:
    """Judge one look at a job, or the later of two: then what moved in between counts as well.

    Without `earlier` the snapshot's own earlier looks are taken, if there are some. A rank that its looks saw run at
    one place for `spinning_after` seconds, while the others waited for it, is named.
    The cause is "unknown" where the stacks do not prove more. Linear in the number of threads.
    """
    snapshot = _numbered(snapshot if earlier is None else dataclasses.replace(snapshot, earlier=(earlier,)))
    jobs = jobs_of(snapshot)
    if len(jobs) == 1:
        answer = _judge_job(snapshot, spinning_after)
        return dataclasses.replace(answer, verdict=mixed_up(snapshot, answer.verdict))
    answers = [judge(part(snapshot, indexes), None, spinning_after) for indexes in jobs]
    known = Judged()
    processes = tuple(judge_process(process, snapshot.engine, known) for process in snapshot.processes)
    return Diagnosis(
        snapshot=snapshot,
        processes=processes,
        verdict=join_answers(snapshot, jobs, answers),
        gpu_errors=findings(snapshot),
    )


def _judge_job(snapshot: JobSnapshot, spinning_after: float) -> Diagnosis:
    looks: Tuple[JobView, ...] = ()
    for one in (*snapshot.earlier, snapshot):
        looks = (*looks, _view(one, looks))
    view = dataclasses.replace(looks[-1], spinning_after=spinning_after)
    best = read_off(view, without_cause(view))
    for by, change in _REGRADES.items():
        best = _regraded(by, best, change(view, best))
    return Diagnosis(
        snapshot=snapshot,
        processes=view.processes,
        verdict=_verdict(view, best),
        gpu_errors=findings(snapshot),
    )


def _doubt_order(best: Candidate) -> Candidate:
    """That ranks in different communicators wait for each other is sure, not that all of them will come to both."""
    is_sure = best.cause == "multi-comm-ordering" and best.confidence == "high"
    return dataclasses.replace(best, confidence="medium") if is_sure else best


def _regraded(by: str, before: Candidate, after: Candidate) -> Candidate:
    """The candidate as it is now, with who changed its confidence."""
    if before.confidence == after.confidence:
        return after
    return dataclasses.replace(
        after, considered=after.considered.regraded(Regrade(by, before.confidence, after.confidence))
    )


def _view(snapshot: JobSnapshot, before: Tuple[JobView, ...]) -> JobView:
    """One look, compared with the one before it."""
    known = Judged()
    processes = tuple(judge_process(process, snapshot.engine, known) for process in snapshot.processes)
    went, unmoved = between_copies(snapshot, processes)
    if before:
        differs, alike = between_looks(before[-1].snapshot, snapshot, processes)
        # Equal calls in two snapshots count as standing still where no bytes were compared.
        unmoved = tuple(index for index in (unmoved or alike) if index in alike)
        went = tuple(sorted({*went, *differs}))
    return build_view(snapshot, processes, went, unmoved, before)


def _numbered(snapshot: JobSnapshot) -> JobSnapshot:
    """The snapshot with `processes[i].index == i`, which files from elsewhere need not keep."""
    if all(process.index == number for number, process in enumerate(snapshot.processes)):
        return snapshot
    renumbered = (dataclasses.replace(process, index=number) for number, process in enumerate(snapshot.processes))
    return dataclasses.replace(snapshot, processes=tuple(renumbered))


def _verdict(view: JobView, best: Candidate) -> Verdict:
    culprits, victims = _indexes(best.culprits), _indexes(best.victims)
    victims = tuple(index for index in victims if index not in culprits)
    shown = _decisive_party(view, best) or party_of_log_line(view)
    counted = members_counted(view) if best.cause == "init-rendezvous" else ""
    return Verdict(
        cause=best.cause,
        confidence=best.confidence,
        summary=f"{best.summary}{counted}{_moment(view, best)}{deaths_left_out(view)}",
        culprits=culprits,
        victims=victims,
        absent=best.absent,
        decisive_process=shown.index if shown else None,
        decisive_thread=(shown.id or None) if shown else None,
        evidence=(
            *best.evidence,
            *log_line_evidence(view, best),
            *_stood_still(view, best),
            *unread_ranks.unread_evidence(view),
        ),
        remedies=unread_ranks.how_to_read(view, best) or remedies(view, best),
        missing=missing_lines(view, best),
        other_errors=other_errors(view, best),
        decided_by=best.decided_by,
        chain=best.chain,
        root=best.root,
        alternatives=best.alternatives,
        unexplained=tuple(index for index in best.unexplained if index not in culprits and index not in victims),
        considered=best.considered,
    )


def _moment(view: JobView, best: Candidate) -> str:
    """When the text shows its processes, where that is no look at living ones and the summary does not say it."""
    shown = what_the_text_shows(view)
    alive = not any(party.group == "fatal" for party in view.parties)
    added = shown.added(len(view.parties)) if shown is not None and alive else ""
    added = beside_waits(view, best) or added
    return (
        f" {added}"
        if added and added not in best.summary and not (shown and shown.when and shown.when in best.summary)
        else ""
    )


def _stood_still(view: JobView, best: Candidate) -> Tuple[Evidence, ...]:
    """Whose deciding thread had no processor between the two copies of the look: proof that it is stuck. Other threads
    of the process may have run."""
    asleep = [party for party in (*best.culprits, *best.victims) if party.index in view.still]
    if not asleep or view.snapshot.apart is None or best.cause == "not-a-hang":
        return ()
    threads = who(asleep)
    if not any(party.is_thread for party in asleep):
        threads = f"the waiting {verb(asleep, 'thread', 'threads')} of {threads}"
    text = f"{threads} did not run in the {view.snapshot.apart:.1f} s {view.watched}"
    return (Evidence(text, asleep[0].index, asleep[0].id or None, asleep[0].judged.frame),)


def _indexes(parties: Tuple[Party, ...]) -> Tuple[int, ...]:
    return tuple(sorted({party.index for party in parties}))


def _decisive_party(view: JobView, best: Candidate) -> Optional[Party]:
    """The culprit's thread; without a culprit the one that the evidence names first (who is busy, where nothing hangs);
    then that of the only victim that stands elsewhere than all others, or the first victim's that does not wait for
    what others do; else the first that does not wait for work, or that was judged at all."""
    nobody = best.cause == "not-a-hang" or best.decided_by is not None
    shown = [item.process for item in best.evidence[:1]] if nobody else []
    first = tuple(party for party in view.parties if party.index in shown)
    dying = tuple(view.of("fatal")) if best.cause == "unknown" else ()
    busy = tuple(party for party in view.parties if party.group != "idle")
    asked = tuple(party for party in best.victims if party.judged.rule not in RESULTS_OF_OTHERS)
    for parties in (best.culprits, first, dying, _odd_one(best), asked, best.victims, busy, view.parties):
        named = [party for party in parties if party.id]
        for party in named:
            if view.processes[party.index].wait.thread == party.id:
                return party
        if named:
            return named[0]
    return _any_thread(view)


def _odd_one(best: Candidate) -> Tuple[Party, ...]:
    """Where no cause is known: the one victim that does not stand where all others stand."""
    places: Dict[Tuple[str, str], Tuple[Party, ...]] = {}
    for party in best.victims if best.cause == "unknown" else ():
        places[party.kind, where(party)] = (*places.get((party.kind, where(party)), ()), party)
    if len(places) != 2 or len(best.victims) == 2:
        return ()
    return next((parties for parties in places.values() if len(parties) == 1), ())


def _any_thread(view: JobView) -> Optional[Party]:
    """Where only helpers were seen: the one that the process judgement chose."""
    for process, judged in zip(view.snapshot.processes, view.processes):
        for thread, one in zip(process.threads, judged.threads):
            if thread.id == judged.wait.thread:
                return Party(process=process, thread=thread, judged=one, group="unknown")
    return None
