"""Model objects as the JSON documents of `--json`: one object, `schema`, stable keys, unknown = null, never colour."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext import __version__
from gdbext.model.attached import RankOutputs, RankTable
from gdbext.model.backtrace import Backtrace
from gdbext.model.break_points import BreakTable
from gdbext.model.checkup import Checkup
from gdbext.model.communicator_table import CommunicatorTable
from gdbext.model.dumps import DumpListing
from gdbext.model.error_code import ErrorAnswer
from gdbext.model.explanation import Explanation, Glossary
from gdbext.model.job import SCHEMA, Job, JobSnapshot, RankProcess, RankSnapshot
from gdbext.model.locks import LockReport
from gdbext.model.origin import FromFile
from gdbext.model.profiling import ProfileAnswer, ProfileReport, ProfileStatuses
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.tensor import TensorInfo
from gdbext.model.tree import StackTree, TreeNode
from gdbext.model.verdict import Diagnosis, Evidence, ProcessJudgement, ThreadJudgement, Verdict, Wait
from gdbext.render.json.json_text import Lines, json_text
from gdbext.render.json.streams import STREAM_DOCUMENTS
from gdbext.render.json.tensors import TENSOR_DOCUMENTS
from gdbext.render.json.trace_document import TRACE_DOCUMENTS
from gdbext.render.text.backtrace import backtrace_document
from gdbext.render.text.break_points import break_document
from gdbext.render.text.check_report import CHECK_DOCUMENTS
from gdbext.render.text.checkup import checkup_document
from gdbext.render.text.comms import communicator_document
from gdbext.render.text.dumps import listing_document
from gdbext.render.text.error import answer_document
from gdbext.render.text.explanation import explanation_document, glossary_document
from gdbext.render.text.locks import lock_document, peer_document, wait_document
from gdbext.render.text.profiler.profiling import answer_document as profile_document
from gdbext.render.text.profiler.profiling import report_document, statuses_document
from gdbext.render.text.verdict.chain import alternative_document, chain_document, node_document
from gdbext.render.text.verdict.considered import considered_document
from gdbext.render.text.verdict.origin import origin_document
from gdbext.render.text.verdict.witnesses import witness_document

Document = Dict[str, Any]

TOOL = f"gdbext {__version__}"
_NOT_JUDGED = Wait(kind="unknown")


def document(obj: Any) -> Document:
    """The JSON-ready document of a model object, or of a list of jobs, processes or snapshots of ranks.

    Raises `TypeError` for a type that has none.
    """
    if isinstance(obj, FromFile):
        return {**document(obj.answer), "read_from": origin_document(obj.origin)}
    if isinstance(obj, (list, tuple)):
        return _headed(_list(obj))
    encode = _DOCUMENTS.get(type(obj))
    if encode is None:
        raise TypeError(f"no document for {type(obj).__name__}")
    return _headed(encode(obj))


def _list(objects: Sequence[Any]) -> Document:
    """An empty list is one of jobs: that is what a search brings back."""
    for kind, (key, encode) in _LISTS.items():
        if all(isinstance(item, kind) for item in objects):
            return {key: [encode(item) for item in objects]}
    raise TypeError(f"no document for a list of {type(objects[0]).__name__}")


def dumps(obj: Any, indent: Optional[int] = None) -> str:
    """The text of `document(obj)`."""
    return json_text(document(obj), indent)


def _headed(body: Document) -> Document:
    return {"schema": SCHEMA, "tool": TOOL, **body}


def _diagnosis(diagnosis: Diagnosis) -> Document:
    snapshot = diagnosis.snapshot
    judged = {judgement.index: judgement for judgement in diagnosis.processes}
    return {
        "taken_at": snapshot.taken_at,
        "pause_ms": _pauses(snapshot.processes),
        "processes": [_judged_process(process, judged.get(process.index)) for process in snapshot.processes],
        "verdict": {**_verdict(diagnosis.verdict), "hangs": diagnosis.hangs, **_reasons(diagnosis)},
        "problems": list(snapshot.problems),
        "witnesses": [witness_document(witness) for witness in snapshot.witnesses],
    }


def _reasons(diagnosis: Diagnosis) -> Document:
    """How the verdict came about, where that was asked for."""
    return considered_document(diagnosis.verdict.considered) if diagnosis.explains else {}


def _pauses(processes: Sequence[RankSnapshot]) -> Document:
    """How long each process stood still, by rank number where every process has its own, else by index."""
    ranks = {process.rank for process in processes}
    by_rank = None not in ranks and len(ranks) == len(processes)
    known = [process.pause_ms for process in processes if process.pause_ms is not None]
    return {
        "max": max(known) if known else None,
        "per_rank": {str(one.rank if by_rank else one.index): one.pause_ms for one in processes},
    }


def _judged_process(process: RankSnapshot, judgement: Optional[ProcessJudgement]) -> Document:
    wait = judgement.wait if judgement else _NOT_JUDGED
    judged = judgement.threads if judgement else [ThreadJudgement(kind="unknown")] * len(process.threads)
    return {
        "index": process.index,
        "rank": process.rank,
        "pid": process.pid,
        "host": process.host,
        "engine": process.engine,
        "title": process.title,
        "state": process.state,
        "problems": list(process.problems),
        "wait": {
            "kind": wait.kind,
            "thread": wait.thread,
            "frame": wait.frame,
            "collective": wait.collective,
            "communicator": wait.communicator,
            "op_count": None if wait.op_count is None else dict(wait.op_count),
        },
        "threads": list(map(_judged_thread, process.threads, judged)),
        "locks": [wait_document(wait) for wait in process.locks],
        "peers": [peer_document(peer) for peer in process.peers],
        "after": process.after,
    }


def _judged_thread(thread: ThreadStack, judged: ThreadJudgement) -> Document:
    return {
        "id": thread.id,
        "name": thread.name,
        "kind": judged.kind,
        "helper": judged.helper,
        "idle": judged.idle,
        "state": thread.state,
        "cpu": thread.cpu,
        "wchan": thread.wchan,
    }


def _verdict(verdict: Verdict) -> Document:
    return {
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "summary": verdict.summary,
        "culprits": list(verdict.culprits),
        "victims": list(verdict.victims),
        "absent": list(verdict.absent),
        "decisive": {"process": verdict.decisive_process, "thread": verdict.decisive_thread},
        "evidence": [_evidence(item) for item in verdict.evidence],
        "remedies": [{"action": remedy.action, "reason": remedy.reason} for remedy in verdict.remedies],
        "missing": list(verdict.missing),
        "decided_by": verdict.decided_by,
        "root": None if verdict.root is None else node_document(verdict.root),
        "chain": chain_document(verdict.chain),
        "alternatives": [alternative_document(one) for one in verdict.alternatives],
        "unexplained": list(verdict.unexplained),
    }


def _evidence(item: Evidence) -> Document:
    return {"text": item.text, "process": item.process, "thread": item.thread, "frame": item.frame}


def _snapshot(snapshot: JobSnapshot) -> Document:
    """What was seen, not judged: the processes without their stacks (`--save` keeps those)."""
    return {
        "taken_at": snapshot.taken_at,
        "pause_ms": _pauses(snapshot.processes),
        "engine": snapshot.engine,
        "world_size": snapshot.world_size,
        "absent": list(snapshot.absent),
        "processes": [_seen_process(process) for process in snapshot.processes],
        "problems": list(snapshot.problems),
    }


def _seen_process(process: RankSnapshot) -> Document:
    return {
        "index": process.index,
        "rank": process.rank,
        "local_rank": process.local_rank,
        "world_size": process.world_size,
        "pid": process.pid,
        "host": process.host,
        "engine": process.engine,
        "title": process.title,
        "device": process.device,
        "state": process.state,
        "threads": len(process.threads),
        "pause_ms": process.pause_ms,
        "problems": list(process.problems),
    }


def _job(job: Job) -> Document:
    return {
        "job": job.key,
        "engine": job.engine,
        "world_size": job.world_size,
        "absent": list(job.absent),
        "ranks": [_process(process) for process in job.ranks],
        "others": [_process(process) for process in job.others],
        "notes": list(job.notes),
    }


def _process(process: RankProcess) -> Document:
    return {
        "pid": process.pid,
        "role": process.role,
        "engine": process.engine,
        "title": process.title,
        "rank": process.rank,
        "local_rank": process.local_rank,
        "world_size": process.world_size,
        "rank_source": process.rank_source,
        "device": process.device,
        "host": process.host,
        "threads": process.threads,
        "state": process.state,
        "labels": dict(process.labels),
    }


def _tree(tree: StackTree) -> Document:
    """A flat list, callers before callees, each naming its caller: recursion of any depth stays readable to parsers."""
    nodes: List[Document] = []
    todo: List[Tuple[Optional[int], TreeNode]] = [(None, root) for root in reversed(tree.roots)]
    while todo:
        caller, node = todo.pop()
        todo.extend((len(nodes), child) for child in reversed(node.children))
        nodes.append(
            {
                "id": len(nodes),
                "caller": caller,
                "function": node.function,
                "module": node.module,
                "file": node.file,
                "line": node.line,
                "language": node.language,
                "ranks": list(node.ranks),
                "threads": node.threads,
            }
        )
    return {"counts": tree.counts, "nodes": nodes, "folded": dict(tree.folded)}


def _thread(thread: ThreadStack) -> Document:
    return {
        "id": thread.id,
        "lwp": thread.lwp,
        "name": thread.name,
        "state": thread.state,
        "gil": thread.gil,
        "truncated": thread.truncated,
        "problems": list(thread.problems),
        "frames": [_frame(frame) for frame in thread.frames],
    }


def _backtrace(one: Backtrace) -> Document:
    return backtrace_document(one, _thread(one.thread))


def _frame(frame: Frame) -> Document:
    return {
        "function": frame.function,
        "module": frame.module,
        "module_offset": frame.module_offset,
        "pc": frame.pc,
        "file": frame.file,
        "line": frame.line,
        "language": frame.language,
        "inlined": frame.inlined,
    }


def _attached(table: RankTable) -> Document:
    return {
        "ranks": [
            {
                "inferior": one.number,
                "current": one.current,
                "state": one.state,
                "attach_ms": one.attach_ms,
                "held_ms": one.held_ms,
                "problem": one.problem,
                "process": _process(one.process),
            }
            for one in table.ranks
        ],
        "absent": list(table.absent),
        "notes": list(table.notes),
    }


def _outputs(outputs: RankOutputs) -> Document:
    return {
        "command": outputs.command,
        "outputs": [
            {
                "rank": one.process.rank,
                "pid": one.process.pid,
                "inferior": one.number,
                "text": Lines(one.text),
                "error": one.error and Lines(one.error),
            }
            for one in outputs.outputs
        ],
    }


_DOCUMENTS: Mapping[type, Callable[[Any], Document]] = {
    Diagnosis: _diagnosis,
    JobSnapshot: _snapshot,
    Job: _job,
    StackTree: _tree,
    Backtrace: _backtrace,
    ThreadStack: _thread,
    RankTable: _attached,
    RankOutputs: _outputs,
    Checkup: checkup_document,
    LockReport: lock_document,
    CommunicatorTable: communicator_document,
    Explanation: explanation_document,
    Glossary: glossary_document,
    ErrorAnswer: answer_document,
    ProfileStatuses: statuses_document,
    DumpListing: listing_document,
    ProfileAnswer: profile_document,
    ProfileReport: report_document,
    **STREAM_DOCUMENTS,
    **TENSOR_DOCUMENTS,
    BreakTable: break_document,
    **CHECK_DOCUMENTS,
    **TRACE_DOCUMENTS,
}

_LISTS: Mapping[type, Tuple[str, Callable[[Any], Document]]] = {
    Job: ("jobs", _job),
    RankProcess: ("processes", _process),
    RankSnapshot: ("processes", _seen_process),
    Backtrace: ("threads", _backtrace),
    ThreadStack: ("threads", _thread),
    TensorInfo: ("tensors", TENSOR_DOCUMENTS[TensorInfo]),
}
