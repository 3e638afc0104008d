"""A process waits for the result of a task that others may carry out, and none of the processes that were read does."""

from __future__ import annotations

from typing import Optional

from gdbext.analysis.progress.not_clear import longer_look
from gdbext.analysis.progress.own_work import is_independent_job, looked_long
from gdbext.analysis.progress.pool_tasks import inside_task
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, parties_without
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, verb, who
from gdbext.knowledge.frames.python.python_libraries import RESULTS_OF_OTHERS


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


PATTERNS = (nobody_here_has_the_task,)
