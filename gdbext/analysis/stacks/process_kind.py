"""Where one process stands: what each of its threads does, and which of them decides."""

from __future__ import annotations

import dataclasses
from typing import Dict, Optional, Sequence, Tuple

from gdbext.analysis.stacks.decisive import decisive_thread
from gdbext.analysis.stacks.thread_kind import Judged, kind_of_log, kind_said
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.frames.networks.gloo import GLOO_WORKER
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines import TIMED_OUT
from gdbext.knowledge.log_lines.last_words import FATAL_ERROR
from gdbext.model.codes import Given, ReadState
from gdbext.model.job import RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import ProcessJudgement, ThreadJudgement, Wait, grouped

_FOR_GPUS = regex(r".*lib(nccl|rccl|cuda|hccl|ascendcl)\b")
_OF_GLOO = regex(r"gloo/transport/|ProcessGroupGloo|\[gloo\]|Timed out waiting \d+ ?ms for (?:send|recv) operation")
_PROFILES = {profile.name: profile for profile in PROFILES}
_TIMED_OUT = regex(TIMED_OUT)
_OPERATION_COUNTS = {"comm->opCount": "op", "comm->collOpCount": "collective"}


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
        return ProcessJudgement(process.index, Wait(kind=kind, collective=_given_up(process.said)), judged)
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


def has_gpu_libraries(process: RankSnapshot) -> bool:
    """Whether it has loaded a library for GPUs."""
    return any(_FOR_GPUS.search(path) for path in process.libraries)


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
    if not inside and (not threads or has_gpu_libraries(process)):
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


def _given_up(said: Sequence[str]) -> Optional[str]:
    """`alltoall_base`: the operation that torch's watchdog of this process gave up."""
    found = next(filter(None, map(_TIMED_OUT.search, said)), None)
    return found["op"].lower().lstrip("_") if found is not None else None
