"""Requests that one process of a job has sent to another, which rests: nobody works on the answer."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from gdbext.analysis.progress.begun import HANDLERS, asks_own_process, awaits_answer, seems_to_ask
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import is_at_rest, is_independent_job, is_working, looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import was_woken
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    matches_any,
    other_ends,
    parties_of,
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
        if not all(_rests(view, one) for one in asked):
            continue
        owe = parties_of(view, asked)
        others = parties_without(view.parties, owe)
        summary = (
            f"{start(who([asking]))} waits in {closed(where(asking))} for the answer to a request. It has sent that to "
            f"{who(owe)}, which {verb(owe, 'is', 'are')} idle in {closed(where(owe[0]))}: nobody works on the answer."
        )
        sure = all(map(stands, asked))  # else a timer may lead to the answer
        return blame("other", "medium" if sure else "low", summary, owe, others)
    return None


def own_request_unanswered(view: JobView) -> Optional[Candidate]:
    """For that long a thread has waited for an answer of its own process, where a thread waits inside of a request and
    all the others wait for new ones or without a limit."""
    if not is_independent_job(view) or not looked_long(view) or any(is_working(view, party) for party in view.parties):
        return None
    for index in range(len(view.processes)):
        own = threads_of(view, index, lambda one: one.helper is None)
        asking = [one for one in own if stands(one) and asks_own_process(one)]
        answering = [one for one in own if one.kind != "io" and stands(one) and matches_any(HANDLERS, calls_of(one))]
        rest = parties_without(own, [*asking, *answering])
        if asking and answering and all(stands(one) or _awaits_requests(one) for one in rest):
            summary = (
                f"{start(who(asking))} {verb(asking, 'waits', 'wait')} in {closed(where(asking[0]))} for the answer to "
                f"a request to the same process. {start(who(answering))} {verb(answering, 'waits', 'wait')} inside of "
                f"a request in {closed(where(answering[0]))}, and no thread works on what would end that."
            )
            return blame("other", "low", summary, view.parties, shown=[*answering, *asking])
    return None


def _awaits_requests(one: Party) -> bool:
    return one.judged.idle and one.thread is not None and not was_woken(one.thread)


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
            pids = {pid for pids in other_ends(one) for pid in pids}
            asks = awaits_answer(view, one) or (bool(pids) and pids <= set(indexes) and seems_to_ask(one))
            if asks and stands(one) and one.process.pid not in pids:
                asking = next((party for party in view.parties if party.thread is one.thread), one)
                yield asking, [other for pid in pids for other in threads_of(view, indexes[pid])]


def _rests(view: JobView, one: Party) -> bool:
    """Whether it waits for work, or serves others, and was not woken in between."""
    idle = one.judged.idle or one.judged.helper is not None or one.kind in ("ipc-queue", "condvar-idle")
    idle = idle or any(is_at_rest(view, peer) for peer in one.process.peers if peer.thread == one.lwp)
    return idle and one.thread is not None and not one.thread.switches


LOST = (request_unanswered, own_request_unanswered, tasks_wait_for_tasks)
