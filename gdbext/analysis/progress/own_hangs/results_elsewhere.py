"""A process waits for the result of a task, and none of the processes that were read carries it out: others may, or it
was lost."""

from __future__ import annotations

from typing import Collection, Optional

from gdbext.analysis.progress.not_clear import longer_look
from gdbext.analysis.progress.own_work import is_independent_job, looked_long
from gdbext.analysis.progress.pool_tasks import inside_task, stands, waits_for_result
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, other_ends, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.causes.slow import NO_RATE
from gdbext.knowledge.frames.python.python_libraries import RESULTS_OF_OTHERS
from gdbext.knowledge.runtimes.untimed_calls import POOL_WORKER


def waits_for_task(party: Party) -> bool:
    """Whether it waits for a result that any process may give, and not inside a task of its own. Of the parts of an
    engine more is known."""
    return party.judged.rule in RESULTS_OF_OTHERS and party.process.engine is None and not inside_task(party)


def nobody_here_has_the_task(view: JobView) -> Optional[Candidate]:
    """It may run on another node, or never have begun: the cluster's own commands tell."""
    if not is_independent_job(view):
        return None
    waiting = [one for one in view.parties if waits_for_task(one)]
    resting = parties_without(view.parties, waiting)
    if not waiting or not all(one.judged.idle for one in resting):
        return None
    workers = f"{who(resting)} {verb(resting, 'waits', 'wait')} for tasks" if resting else "no worker was read"
    return Candidate(
        cause="unknown",
        confidence="low",
        summary=(
            f"It is not clear yet whether anything hangs: {who(waiting)} {verb(waiting, 'waits', 'wait')} for the "
            f"result of a task in {closed(where(waiting[0]))} and {workers}. The task may run on another node, or wait "
            "for a worker or for resources."
        ),
        victims=tuple(waiting),
        evidence=evidence_of((), waiting),
        decided_by=RESULTS_OF_OTHERS[waiting[0].judged.rule or ""].command if looked_long(view) else longer_look(view),
    )


def result_lost(view: JobView) -> Optional[Candidate]:
    """A parent waits for the result of a pool, whose workers all wait for tasks."""
    idle = [party for party in view.parties if party.judged.rule == POOL_WORKER]
    waiting = [party for party in view.parties if waits_for_result(party)]
    if not idle or not waiting or not is_independent_job(view) or len(idle) + len(waiting) < len(view.parties):
        return None
    if any(thread.switches for process in view.snapshot.processes for thread in process.threads):
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} for a result in {where(waiting[0])}, and {who(idle)} "
        f"{verb(idle, 'waits', 'wait')} for tasks: no worker is running that task. A killed worker loses its task, and "
        "a result that cannot be unpickled ends the thread that reads results."
    )
    return Candidate(
        cause="other",
        confidence="medium",
        summary=summary,
        culprits=tuple(waiting),
        evidence=evidence_of(waiting, idle),
    )


def nobody_has_the_task(view: JobView) -> Optional[Candidate]:
    """The same for a pool whose parent has threads that look after its workers again and again: for as long as an
    endless loop takes to be called one, they had nothing else to do."""
    if not is_independent_job(view) or not looked_long(view):
        return None
    waiting = [party for party in view.parties if waits_for_result(party) and stands(party)]
    workers = parties_without(view.parties, waiting)
    pids = {party.process.pid for party in waiting}
    if not (waiting and workers) or not all(_waits_for_task_of(view, party, pids) for party in workers):
        return None
    if any(_works(one) for party in waiting for one in threads_of(view, party.index)):
        return None
    summary = (
        f"{start(who(waiting))} {verb(waiting, 'waits', 'wait')} for a result in {closed(where(waiting[0]))}, and "
        f"{who(workers)} {verb(workers, 'waits', 'wait')} for tasks in {where(workers[0])}: no worker is running that "
        "task, and no thread has sent it to one. The thread that sends tasks may have failed: look for its traceback."
    )
    return Candidate(
        cause="other",
        confidence="low",
        summary=summary,
        culprits=tuple(waiting),
        evidence=evidence_of(waiting, workers),
    )


def _waits_for_task_of(view: JobView, party: Party, pids: Collection[Optional[int]]) -> bool:
    """Whether its threads wait for messages of these processes alone."""
    own = threads_of(view, party.index, lambda one: one.helper is None)
    return all(stands(one) and _is_sent_by(one, pids) for one in own)


def _is_sent_by(one: Party, pids: Collection[Optional[int]]) -> bool:
    return bool(other_ends(one)) and all(set(pids) >= set(ends) for ends in other_ends(one))


def _works(one: Party) -> bool:
    return one.thread is None or one.thread.state == "R" or (one.thread.cpu or 0.0) >= NO_RATE


LOST = (result_lost, nobody_has_the_task)
PATTERNS = (nobody_here_has_the_task,)
