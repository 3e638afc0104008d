"""The verdict: every thread, every process, then the whole job as a wait-for graph."""

from __future__ import annotations

import dataclasses
from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple

from gdbext.analysis.communicators.launch_counts import with_launch_counts
from gdbext.analysis.failures.gpu_findings import clean_reports, findings
from gdbext.analysis.logs.progress_in_logs import members_counted
from gdbext.analysis.progress.between_looks import between_copies, between_looks, has_run
from gdbext.analysis.progress.nobody_acts import nobody_asks
from gdbext.analysis.progress.running import longer_look, was_woken
from gdbext.analysis.progress.slow import doubt_slow_work
from gdbext.analysis.stacks.decisive import decisive_thread
from gdbext.analysis.stacks.text_kind import killed
from gdbext.analysis.stacks.thread_kind import Judged, kind_of_log, kind_said
from gdbext.analysis.verdict import causes_in_logs as told
from gdbext.analysis.verdict import unread_ranks
from gdbext.analysis.verdict.candidate import Candidate, evidence_of
from gdbext.analysis.verdict.chosen_remedies import remedies, what_the_text_shows
from gdbext.analysis.verdict.job_view import JobView, Party, build_view
from gdbext.analysis.verdict.not_read import missing_lines
from gdbext.analysis.verdict.open_stacks import less_sure
from gdbext.analysis.verdict.several_jobs import jobs_of, join_answers, mixed_up, part
from gdbext.analysis.verdict.witness_evidence import gpu_cores_alone, with_witness_statements
from gdbext.analysis.verdict.wording import in_places, label_list, single_process_text, start, verb, where, who
from gdbext.analysis.waits.best_hypothesis import read_off
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.frames.networks.gloo import GLOO_WORKER
from gdbext.knowledge.frames.python.python_libraries import REQUESTS, RESULTS_OF_OTHERS
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines.last_words import FATAL_ERROR
from gdbext.knowledge.spinning import SPINNING_AFTER
from gdbext.model.codes import Given, ReadState
from gdbext.model.considered_hypotheses import Regrade
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Diagnosis, Evidence, ProcessJudgement, ThreadJudgement, Verdict, Wait, grouped

_FOR_GPUS = regex(r".*lib(nccl|rccl|cuda|hccl|ascendcl)\b")
_OF_GLOO = regex(r"gloo/transport/|ProcessGroupGloo|\[gloo\]|Timed out waiting \d+ ?ms for (?:send|recv) operation")
_PROFILES = {profile.name: profile for profile in PROFILES}
_REGRADES: Mapping[str, Callable[[JobView, Candidate], Candidate]] = {
    "skipped": lambda _, best: _doubt_order(best),
    "slow work": lambda _, best: doubt_slow_work(best),
    "unread": less_sure,
    "counters": with_launch_counts,
    "witnesses": with_witness_statements,
}
"""What changes the confidence after the graph was read, in this order, by keys of REGRADES
(model/considered_hypotheses.py)."""
_OPERATION_COUNTS = {"comm->opCount": "op", "comm->collOpCount": "collective"}


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
    best = read_off(view, _unknown(view))
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


def judge_process(
    process: RankSnapshot, engine: Optional[str] = None, known: Optional[Judged] = None
) -> ProcessJudgement:
    """All threads of one process, and the one that decides. `known`: what was judged of the same look before."""
    known = known or Judged()
    profile = _PROFILES.get(process.engine or engine or "")
    texts = (*process.problems, *process.said) if len(process.threads) == 1 else ()
    judged = _with_backend(process, tuple(known.of(thread, profile, texts) for thread in process.threads))
    best = decisive_thread(process, judged)
    if best is None:
        dead = process.state == ReadState.LOST and not process.alive and process.given is not Given.UNASKED
        kind = "exited-or-crashed" if dead else (None if process.threads else kind_of_log(process.said)) or "unknown"
        return ProcessJudgement(process.index, Wait(kind=kind, collective=told.given_up(process.said)), judged)
    one = judged[best]
    died = _died_unseen(process, judged)
    if died:
        return ProcessJudgement(process.index, Wait(kind=died), judged)
    wait = Wait(
        kind=one.kind,
        thread=process.threads[best].id,
        frame=one.frame,
        collective=one.collective,
        communicator=one.communicator,
        op_count=_operation_counts(one),
    )
    return ProcessJudgement(process.index, wait, judged, idle=one.idle)


def _died_unseen(process: RankSnapshot, judged: Sequence[ThreadJudgement]) -> Optional[str]:
    """Of what a process died whose threads CPython then printed, where the one that died is not among them."""
    words = [text for text in process.said if text.startswith(FATAL_ERROR)]
    if process.source != "text:faulthandler" or not words:
        return None
    return None if any(WAIT_GROUPS[one.kind] == "fatal" for one in judged) else kind_said(words)


def _with_backend(process: RankSnapshot, judged: Tuple[ThreadJudgement, ...]) -> Tuple[ThreadJudgement, ...]:
    """A Python collective says nothing of its backend; where the process has a thread inside Gloo it is Gloo, and where
    it has Gloo's threads and no library for GPUs."""
    different = [one for one, _ in grouped(judged)]
    inside = any(one.kind == "gloo" and one.helper is None and one.collective for one in different)
    messages = (*process.said, *(text for thread in process.threads for text in thread.problems))
    inside = inside or any(_OF_GLOO.search(text) for text in messages)
    threads = any(one.helper == GLOO_WORKER for one in different)
    if not inside and (not threads or any(_FOR_GPUS.search(path) for path in process.libraries)):
        return judged
    gloo = {
        id(one): dataclasses.replace(one, kind="gloo")
        for one in different
        if one.kind == "nccl-group-launch" and (one.rule or "").startswith(("python-", "torch-work"))
    }
    return tuple(gloo.get(id(one), one) for one in judged)


def _operation_counts(one: ThreadJudgement) -> Optional[Dict[str, int]]:
    counts = {}
    for name, short in _OPERATION_COUNTS.items():
        value = one.captures.get(name, Missing("not captured"))
        if isinstance(value, int):
            counts[short] = value
    return counts or None


def _unknown(view: JobView) -> Candidate:
    """What can be said without a cause: who waits where, and what would help."""
    parties = [party for party in view.parties if party.group not in ("idle",)] or list(view.parties)
    if not parties:
        found = gpu_cores_alone(view) or clean_reports(view)
        return found or Candidate(cause="unknown", confidence="low", summary=told.without_stacks(view))
    kinds = {party.group for party in parties}
    stop = what_the_text_shows(view)
    if len(parties) == 1:
        idle = [party for party in view.parties if party.group == "idle"]
        text = single_process_text(parties[0], idle, told.last_words(view, parties[0]))
        also = _died_too(view, parties[0])
        text += f"{'' if text.endswith('.') else '.'} {also}" if also else ""
    elif {party.judged.collective for party in parties} == {"recv"}:
        text = (
            f"{start(who(parties))} {_all(parties)} wait to receive in {where(parties[0])}, and none of them sends. "
            "Either the sender is not among them, or they wait for each other."
        )
    elif stop is not None and stop.at_a_stop:
        text = f"{start(in_places(parties))}. {stop.open}"
    elif len({(party.kind, where(party)) for party in parties}) == 1:
        on_gpu = not {party.kind for party in parties} & {"gloo", "mpi", "io", "ipc-queue"}
        text = (
            f"{start(who(parties))} {_all(parties)} wait in {where(parties[0])}; on the CPU side they look the same. "
            f"Either the {'device or the ' if on_gpu else ''}network is stuck, or the step just takes long; "
            f"{'a second sample' if view.given is Given.LIVE else 'a second dump'} shows which."
        )
    elif kinds == {"fatal"}:
        text = f"{start(in_places(parties))}. The logs before these stacks give the reason."
    elif "fatal" in kinds:
        dying = [party for party in parties if party.group == "fatal"]
        others = [party for party in parties if party.group != "fatal"]
        text = (
            f"{start(who(dying))} died in {where(dying[0])}; {in_places(others)}. "
            f"The log of {who(dying[:1])} around the stack gives the reason."
        )
    elif view.given is Given.TEXT and sorted(str(party.judged.collective) for party in parties) == ["recv", "send"]:
        text = (
            f"{start(in_places(parties))}. If these are two ranks, they fit each other: check that rank, tag and "
            "communicator are the same; if they are, the transport between them does not deliver."
        )
    else:
        text = f"{start(in_places(parties))}. Together they fit no known pattern."
    waiting = tuple(party for party in parties if party.group != "fatal") if len(parties) > 1 else ()
    # Who sleeps, and ran between the two copies, may have got what it waited for.
    may_go_on = view.given is Given.LIVE and view.has_two_looks and any(map(_may_go_on, parties))
    may_go_on = may_go_on or nobody_asks(view)
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=f"It is not clear yet whether anything hangs. {text}" if may_go_on else text,
        victims=waiting,
        evidence=evidence_of((), parties),
        decided_by=longer_look(view) if may_go_on else None,
    )


def _died_too(view: JobView, party: Party) -> str:
    """Others of which no stack was read, but the line of their own end."""
    kinds = {one.index: one.wait.kind for one in view.processes}
    others = [
        process
        for process in view.snapshot.processes
        if process.index != party.index and not process.threads and kinds.get(process.index) == party.kind
    ]
    if party.group != "fatal" or not others:
        return ""
    names = label_list([process.label for process in others])
    return f"{start(names)} died too; {'its stack is' if len(others) == 1 else 'their stacks are'} not in the text."


def _all(parties: Sequence[Party]) -> str:
    return "both" if len(parties) == 2 else "all"


def _may_go_on(party: Party) -> bool:
    """Whether it got what it waited for between the two copies, or runs and waits for nobody, or has asked another
    process for one thing: the answer may be on its way while nobody is seen to work on it."""
    if party.thread is None:
        return False
    runs = party.thread.state == "R" and party.group in ("elsewhere", "unknown")
    return was_woken(party.thread) or (runs and has_run(party.thread)) or party.judged.rule in REQUESTS


def _verdict(view: JobView, best: Candidate) -> Verdict:
    culprits, victims = _indexes(best.culprits), _indexes(best.victims)
    victims = tuple(index for index in victims if index not in culprits)
    shown = _decisive_party(view, best) or told.party_of_log_line(view)
    return Verdict(
        cause=best.cause,
        confidence=best.confidence,
        summary=best.summary + (members_counted(view) if best.cause == "init-rendezvous" else "") + _moment(view, best),
        culprits=culprits,
        victims=victims,
        absent=best.absent,
        decisive_process=shown.index if shown else None,
        decisive_thread=(shown.id or None) if shown else None,
        evidence=(
            *best.evidence,
            *told.log_line_evidence(view, best),
            *_stood_still(view, best),
            *unread_ranks.unread_evidence(view),
        ),
        remedies=unread_ranks.how_to_read(view, best) or remedies(view, best),
        missing=missing_lines(view, best),
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
    dead = [one for one in best.culprits if one.group != "fatal" and killed(one.thread)]
    if len(dead) == 1:
        added = f"{start(who(dead))} {killed(dead[0].thread)}."
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
    text = f"{threads} did not run in the {view.snapshot.apart:.1f} s between two copies"
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
