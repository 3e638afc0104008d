"""Tasks of pools of Python that wait without a limit for what another task, a thread or a lock gives.

Such a worker is not at rest: it has begun something. Where all threads of an executor do that, none is left for the
tasks whose results they wait for.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from gdbext.analysis.progress.running import for_ever
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, calls_of, matches_any, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.frames.python.python_helpers import EVENT_LOOP
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.untimed_calls import POOL_RESULTS, POOL_TASKS, POOL_THREAD
from gdbext.model.codes import Given
from gdbext.model.locks import LISTENING
from gdbext.model.text.patterns import regex

FED_KINDS = ("ipc-queue", "condvar-idle", "mutex")
"""Waits that a thread of the same process may end."""

_RESULTS = regex(POOL_RESULTS)
_TASKS = [(regex(function), regex(file)) for function, file in POOL_TASKS]
_THREAD = tuple(map(regex, POOL_THREAD))
_LOCKS = regex(r"(^|/)threading\.py$")
_TAKES = regex(r"(\w+\.)?(acquire|__enter__)$")


def waits_for_result(party: Party) -> bool:
    """Whether it is the parent of a pool that waits for what its workers do."""
    return party.kind in FED_KINDS and _calls_for_result(party)


def asks_for_result(one: Party) -> bool:
    """Whether its task looks again and again for what another task does, and sleeps in between."""
    return one.judged.rule in OWN_SLEEPS and inside_task(one) and _calls_for_result(one)


def _calls_for_result(one: Party) -> bool:
    return matches_any(_RESULTS, (name.rsplit("::", 1)[-1] for name in calls_of(one)))


def inside_task(one: Party) -> bool:
    """Whether what it is in was called by a pool."""
    outer = one.calls[(one.judged.frame or 0) + 1 :]
    return any(frame.is_in(function, file) for frame in outer for function, file in _TASKS)


def unfinished_tasks(view: JobView, index: int) -> List[Party]:
    """Threads of a process that wait inside of a task: for a lock, a condition or a result, and without a limit."""
    own = threads_of(view, index, lambda one: one.helper is None and not one.idle)
    return [one for one in own if _waits_inside_of_task(one)]


def starved(view: JobView) -> Optional[Candidate]:
    """All threads of a process' executors wait inside of tasks for results, and its event loop for clients alone, or
    its other threads for results as well."""
    if view.given is not Given.LIVE or not view.has_two_looks:
        return None
    for index in range(len(view.processes)):
        own = threads_of(view, index, lambda one: one.helper in (None, EVENT_LOOP))
        workers = [one for one in own if one.is_inside(*_THREAD)]
        others = parties_without(own, workers)
        if not workers or not all(waits_for_result(one) and _waits_inside_of_task(one) for one in workers):
            continue
        if others and all(waits_for_result(one) and stands(one) for one in others):
            return _starved_for_good(view, workers, others)
        if len(workers) < 2:
            continue
        loops = [one for one in others if one.judged.idle or one.judged.helper]
        if loops and all(takes_clients_alone(one) for one in loops) and all(map(stands, others)):
            return _starved(workers, loops)
    return None


def _starved(workers: Sequence[Party], loops: Sequence[Party]) -> Candidate:
    summary = (
        f"{start(who(workers))} are all threads of its executors, and each waits inside of a task for a result, in "
        f"{where(workers[0])}. No thread is left that could run another task; the event loop waits in "
        f"{closed(where(loops[0]))} for clients alone. If a client's request may end these waits, the program is idle."
    )
    return Candidate(
        cause="lock-order-deadlock",
        confidence="low",
        summary=summary,
        culprits=tuple(workers),
        evidence=evidence_of(workers, loops),
    )


def _starved_for_good(view: JobView, workers: Sequence[Party], others: Sequence[Party]) -> Candidate:
    """Only a thread of the same process can set a result."""
    are = "is the only thread" if len(workers) == 1 else "are all threads"
    summary = (
        f"{start(who(workers))} {are} of its executors, and {verb(workers, 'waits', 'wait')} inside of a task for a "
        f"result, in {where(workers[0])}. No thread is left that could run another task: {who(others)} "
        f"{verb(others, 'waits', 'wait')} for a result too, in {where(others[0])}."
    )
    victims = [party for party in view.parties if party.index != workers[0].index]
    return Candidate(
        cause="lock-order-deadlock",
        confidence="medium",
        summary=summary,
        culprits=tuple(workers),
        victims=tuple(victims),
        evidence=evidence_of(workers, [*others, *victims]),
    )


def _waits_inside_of_task(one: Party) -> bool:
    """Who waits for its next order, in a queue or for an event, may do so for as long as it likes; but who waits
    for a semaphore has work to do."""
    thread = one.thread
    if thread is None or thread.switches or not for_ever(thread):
        return False
    outer = thread.calls[(one.judged.frame or 0) + 1 :]
    if not inside_task(one):
        return False
    if one.kind == "mutex" or waits_for_result(one):
        return True
    if one.judged.rule != "python-wait" or not outer:
        return one.judged.rule == "python-wait"
    return not _LOCKS.search(outer[0].file or "") or bool(_TAKES.match(outer[0].function or ""))


def takes_clients_alone(loop: Party) -> bool:
    files: Tuple[str, ...] = tuple(one.file for one in loop.process.peers if one.thread == loop.lwp)
    return stands(loop) and bool(files) and all(file.endswith(LISTENING) for file in files)


def stands(one: Party) -> bool:
    """Whether it waits without a limit, and was not woken."""
    return one.thread is not None and not one.thread.switches and for_ever(one.thread)


LOST = (starved,)
