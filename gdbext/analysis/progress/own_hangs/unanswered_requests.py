"""Requests that one process of a job has sent to another, which rests: nobody works on the answer."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from gdbext.analysis.progress.begun import awaits_answer
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import is_independent_job, is_working, looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    matches_any,
    other_ends,
    parties_without,
    threads_of,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.frames.networks.fabrics import RAY_GET, RAY_TASK
from gdbext.model.text.patterns import regex

_TASK = regex(rf"(\w+\.)*({RAY_TASK})$")


def request_unanswered(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, the one waited, and no thread of the other one moved."""
    if not is_independent_job(view) or not looked_long(view) or any(is_working(view, party) for party in view.parties):
        return None
    for asking, asked in _requests(view):
        if not all(map(_rests, asked)):
            continue
        owe = [party for party in view.parties if party.index in {one.index for one in asked}]
        others = parties_without(view.parties, owe)
        summary = (
            f"{start(who([asking]))} waits in {closed(where(asking))} for the answer to a request. It has sent that to "
            f"{who(owe)}, which {verb(owe, 'is', 'are')} idle in {closed(where(owe[0]))}: nobody works on the answer."
        )
        sure = all(map(stands, asked))  # else a timer may lead to the answer
        return blame("other", "medium" if sure else "low", summary, owe, others)
    return None


def tasks_wait_for_tasks(view: JobView) -> Optional[Candidate]:
    """Every process of Ray waits for results of tasks, and none runs a task."""
    busy = [party for party in view.parties if not party.judged.idle]
    if len(busy) < 2 or not is_independent_job(view) or any(party.judged.rule != RAY_GET for party in busy):
        return None
    if view.moved or any(is_working(view, party) for party in busy):
        return None
    lead = f"{who(busy)} all wait in {closed(where(busy[0]))} for results of tasks"
    if not looked_long(view):
        text = f"It is not clear yet whether anything hangs: {lead}. The tasks may run on another host, or start soon."
        return not_clear(view, text, evidence_of((), busy), busy)
    summary = (
        f"{start(lead)}, and no process that was read works on one. Either those tasks cannot start, because the "
        "waiting ones hold the CPUs or GPUs that they need, or they run on another host."
    )
    inside = [party for party in busy if matches_any(_TASK, calls_of(party))] or busy
    outside = parties_without(busy, inside)
    return blame("other", "low", summary, inside, outside)


def _requests(view: JobView) -> Iterator[Tuple[Party, List[Party]]]:
    """Each thread that waits for an answer, and all threads of the processes that may give it."""
    indexes = {process.pid: process.index for process in view.snapshot.processes}
    for index in range(len(view.processes)):
        for one in threads_of(view, index):
            if stands(one) and awaits_answer(view, one):
                pids = {pid for pids in other_ends(one) for pid in pids}
                asking = next((party for party in view.parties if party.thread is one.thread), one)
                yield asking, [other for pid in pids for other in threads_of(view, indexes[pid])]


def _rests(one: Party) -> bool:
    """Whether it waits for work, or serves others, and was not woken in between."""
    idle = one.judged.idle or one.judged.helper is not None or one.kind in ("ipc-queue", "condvar-idle")
    return idle and one.thread is not None and not one.thread.switches


LOST = (request_unanswered, tasks_wait_for_tasks)
