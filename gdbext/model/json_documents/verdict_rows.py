"""Documents of looks, of the verdict about them and of the labels in it."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Optional, Sequence

from gdbext.model.clients import WaitingClient
from gdbext.model.considered_hypotheses import Regrade
from gdbext.model.explanation import Explanation, Glossary, Sign
from gdbext.model.gpu_errors import DevicePlace, GpuError, GpuFinding, NearestAllocation, SeenIn
from gdbext.model.job import RANK, RankSnapshot
from gdbext.model.json_documents.document_row import Rows, computed, nested, rows
from gdbext.model.locks import LockReport, LockRow, LockWait, Peer, PeerRow
from gdbext.model.stack import ThreadStack
from gdbext.model.verdict import Diagnosis, ThreadJudgement, Verdict, Wait
from gdbext.model.waits import Edge, Hypothesis, Node


class Pauses(NamedTuple):
    """How long processes stood still, by rank number where every rank has its own (by role those beside the ranks),
    else by index."""

    max: Optional[float]
    per_rank: Mapping[str, Optional[float]]


class JudgedThread(NamedTuple):
    """A thread and what it does."""

    stack: ThreadStack
    judged: ThreadJudgement


class JudgedProcess(NamedTuple):
    """A process as the verdict sees it."""

    process: RankSnapshot
    wait: Wait
    threads: Iterable[JudgedThread]


class WeighedHypothesis(NamedTuple):
    """A hypothesis, and whether it blames whom the answer blames."""

    hypothesis: Hypothesis
    agrees: bool


class Weighed(NamedTuple):
    """How the verdict came about."""

    hypotheses: Sequence[WeighedHypothesis]
    regrades: Sequence[Regrade]


_NOT_JUDGED = Wait(kind="unknown")
_NOT_KNOWN = ThreadJudgement(kind="unknown")


def _pauses(diagnosis: Diagnosis) -> Pauses:
    processes = diagnosis.snapshot.processes
    keys = [str(one.rank) if one.role == RANK else one.role for one in processes]
    by_rank = str(None) not in keys and len(set(keys)) == len(keys)
    known = [process.pause_ms for process in processes if process.pause_ms is not None]
    per_rank = {key if by_rank else str(one.index): one.pause_ms for key, one in zip(keys, processes)}
    return Pauses(max(known) if known else None, per_rank)


def _judged(diagnosis: Diagnosis) -> Sequence[JudgedProcess]:
    found = []
    judged = {judgement.index: judgement for judgement in diagnosis.processes}
    for process in diagnosis.snapshot.processes:
        one = judged.get(process.index)
        threads = one.threads if one else [_NOT_KNOWN] * len(process.threads)
        wait = one.wait if one else _NOT_JUDGED
        found.append(JudgedProcess(process, wait, map(JudgedThread, process.threads, threads)))
    return found


def _weighed(diagnosis: Diagnosis) -> Optional[Weighed]:
    if not diagnosis.explains:
        return None
    considered = diagnosis.verdict.considered
    found = [WeighedHypothesis(one, at == considered.answer) for at, one in enumerate(considered.hypotheses)]
    return Weighed(found, considered.regrades)


def _share(one: WeighedHypothesis) -> float:
    return round(one.hypothesis.share, 4)


def _ownerless(report: LockReport) -> Mapping[str, int]:
    return dict(report.ownerless)


def _causes(glossary: Glossary) -> Mapping[str, str]:
    return {one.label: one.meaning for one in glossary.causes}


def _waits(glossary: Glossary) -> Mapping[str, str]:
    return {one.label: one.meaning for one in glossary.waits}


def _states(glossary: Glossary) -> Mapping[str, str]:
    return {one.label: one.meaning for one in glossary.states}


ROWS: Mapping[type, Rows] = {
    Diagnosis: rows(
        "taken_at=snapshot.taken_at",
        computed("pause_ms", _pauses),
        computed("processes", _judged),
        nested("verdict", "**verdict hangs", computed("", _weighed)),
        "problems=snapshot.problems witnesses=snapshot.witnesses hosts=snapshot.hosts gpu_errors",
    ),
    GpuFinding: rows("**error count seen engine_frame python_frame told=text"),
    GpuError: rows(
        "kind text tool? space? access? size address:hex problem? kernel? places nearest call? error_name=error?",
        "hazards device_frames host_thread host_frames",
    ),
    DevicePlace: rows("function? file? line offset:hex access? thread? block?"),
    NearestAllocation: rows("side distance address:hex size"),
    SeenIn: rows("process count"),
    JudgedProcess: rows(
        "index=process.index rank=process.rank role=process.role pid=process.pid host=process.host",
        "engine=process.engine title=process.title state=process.state problems=process.problems wait threads",
        "locks=process.locks peers=process.peers clients=process.clients after=process.after kernels=process.kernels",
    ),
    JudgedThread: rows(
        "id=stack.id name=stack.name kind=judged.kind helper=judged.helper idle=judged.idle state=stack.state",
        "cpu=stack.cpu wchan=stack.wchan",
    ),
    Verdict: rows(
        "cause confidence summary culprits victims absent",
        nested("decisive", "process=decisive_process thread=decisive_thread"),
        "evidence other_errors remedies missing decided_by root chain alternatives unexplained",
    ),
    Node: rows("id kind label process thread pid state"),
    Edge: rows("from=source to=target kind strength needs facts"),
    Hypothesis: rows("cause confidence culprits absent explained weakest chain"),
    WeighedHypothesis: rows(
        "source=hypothesis.source row=hypothesis.row **hypothesis unexplained=hypothesis.unexplained",
        computed("share", _share),
        "contradictions=hypothesis.contradictions weakest_edge=hypothesis.weakest_edge limits=hypothesis.limits agrees",
    ),
    LockReport: rows("stories waits=rows peers", computed("ownerless", _ownerless), "suspected notes"),
    LockRow: rows("process label thread name **wait in=where owner_does circle"),
    LockWait: rows(
        "lwp=thread? kind address:hex? symbol=name? owner owner_unknown=owner:reason owner_pid=owner_process",
        "owner_gone=gone timed shared place detail? still",
    ),
    PeerRow: rows("process thread file other_end"),
    WaitingClient: rows("server address seconds pids names unread"),
    Peer: rows("lwp=thread file pids=processes unknown=processes:reason states lock"),
    Explanation: rows("label sort meaning signs remedies related sources calls"),
    Sign: rows("text why=reason? source"),
    Glossary: rows(computed("causes", _causes), computed("waits", _waits), computed("states", _states)),
}
