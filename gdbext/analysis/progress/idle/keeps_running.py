"""Programs whose threads have nothing to do, or go round in a loop that has no way out and sleep in there: main threads
that keep a server up, schedulers, heartbeats, watchers of files."""

from __future__ import annotations

from typing import Optional, Sequence

from gdbext.analysis.progress.begun import asks, begun, is_owed_answer
from gdbext.analysis.progress.named_waits import kind_of_loop
from gdbext.analysis.progress.own_work import has_code, is_independent_job, listens
from gdbext.analysis.progress.pool_tasks import FED_KINDS, stands
from gdbext.analysis.stacks.decisive import exits, is_main
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, threads
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import start, verb, who
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.untimed_calls import AT_EXIT, CHILD_WAITS
from gdbext.model.codes import Code, LoopKind


def keeps_running(view: JobView) -> Optional[Candidate]:
    """Each thread of the job rests or goes round in such a loop. Nobody waits for what another one should do."""
    if not is_independent_job(view) or any(process.clients for process in view.snapshot.processes):
        return None
    every = [one for one in threads(view) if one.judged.helper is None]
    going = [one for one in every if goes_round(one)]
    if not going or not (any(map(_does_something, going)) or _has_others(view)):
        return None
    if not all(one in going or _rests(view, one, every, going) for one in every):
        return None
    if any(begun(view, party) for party in view.parties if party.judged.rule not in (*CHILD_WAITS, AT_EXIT)):
        return None
    summary = (
        f"{start(who(going))} {verb(going, 'goes', 'go')} round in a loop that has no way out, in {where(going[0])}. "
        "No other thread has begun anything that it waits for, so nothing shows a hang."
    )
    return Candidate(cause="not-a-hang", confidence="low", summary=summary, evidence=evidence_of((), going))


def _does_something(one: Party) -> bool:
    return kind_of_loop(one) is LoopKind.ENDLESS


def _has_others(view: JobView) -> bool:
    """Whether there is somebody for whom those that only sleep may keep the program up."""
    return any(one.judged.helper is not None or _waits_for_requests(view, one) for one in threads(view))


def goes_round(one: Party) -> bool:
    """Whether it sleeps, or waits for files to change, in a loop that has no way out."""
    endless = kind_of_loop(one) in (LoopKind.ENDLESS, LoopKind.SLEEPS)
    return endless and (has_code(one, Code.CHANGES) or one.judged.rule in OWN_SLEEPS)


def _rests(view: JobView, one: Party, every: Sequence[Party], going: Sequence[Party]) -> bool:
    """Whether it waits for requests, for the end of a thread or process that goes round, or for what a thread that
    waits for requests may give it."""
    own = [other for other in every if other.index == one.index]
    if one.judged.rule == AT_EXIT or (one.thread is not None and exits(one.thread)):
        return any(other in going for other in own)
    if one.judged.rule in CHILD_WAITS:
        return any(other.index != one.index for other in going)
    if asks(one) or is_owed_answer(view, one):
        return False
    if _waits_for_requests(view, one):
        return True
    fed = any(_waits_for_requests(view, other) for other in own)
    return fed and one.kind in FED_KINDS and stands(one) and not _is_main(one)


def _waits_for_requests(view: JobView, one: Party) -> bool:
    return one.judged.idle or listens(view, one) or (has_code(one, Code.CHANGES) and not _is_main(one))


def _is_main(one: Party) -> bool:
    return one.thread is not None and is_main(one.process, one.thread)


PATTERNS = (keeps_running,)
