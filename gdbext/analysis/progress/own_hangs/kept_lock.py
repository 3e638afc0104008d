"""A thread that keeps a lock while it sleeps again and again for something, and another thread that waits for the lock:
if that one is to do what the first looks for, neither gets on."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Optional

from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_hangs.kept_gil import in_all_looks
from gdbext.analysis.progress.own_work import is_independent_job, looked_long
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, who
from gdbext.knowledge.causes.slow import NO_RATE
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing


class _Kept(NamedTuple):
    wait: LockWait
    keeper: Party
    waiting: Party


def keeps_lock(view: JobView) -> Optional[Candidate]:
    """In all looks, over as long as an endless loop takes to be called one, the same thread had the lock, as memory
    shows, with the same local variables, and the other one waited for it."""
    kept = _kept(view) if looked_long(view) else None
    if kept is None:
        return None
    summary = (
        f"{start(_said(kept))} and was seen to do nothing else. If it looks for something that {who([kept.waiting])} "
        "is to do, neither gets on: release the lock before you wait."
    )
    return Candidate(
        cause="lock-order-deadlock",
        confidence="low",
        summary=summary,
        culprits=(kept.keeper,),
        evidence=evidence_of([kept.keeper], [kept.waiting]),
    )


def may_keep_lock(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    kept = None if looked_long(view) else _kept(view)
    if kept is None:
        return None
    text = f"It is not clear yet whether anything hangs: {_said(kept).rstrip(',')}."
    return not_clear(view, text, evidence_of((), [kept.keeper, kept.waiting]))


def _said(kept: _Kept) -> str:
    waiting, keeper = who([kept.waiting]), who([kept.keeper])
    return (
        f"{waiting} waits in {closed(where(kept.waiting))} for a lock that {keeper} holds, which sleeps again and "
        f"again in {closed(where(kept.keeper))}"
    )


def _kept(view: JobView) -> Optional[_Kept]:
    if not is_independent_job(view):
        return None
    found = (one for one in _candidates(view) if in_all_looks(view, one.keeper))
    return next((one for one in found if all(_waits_there_too(look, one) for look in view.before)), None)


def _candidates(view: JobView) -> Iterator[_Kept]:
    for process in view.snapshot.processes:
        waits = [wait for wait in process.locks if wait.still and wait.owner_process is None]
        if not waits:
            continue
        threads = {one.lwp: one for one in threads_of(view, process.index) if one.judged.helper is None}
        for wait in waits:
            keeper = None if isinstance(wait.owner, Missing) else threads.get(wait.owner)
            waiting = threads.get(wait.thread)
            if waiting is not None and keeper is not None and _naps(keeper):
                yield _Kept(wait, keeper, waiting)


def _naps(one: Party) -> bool:
    thread = one.thread
    return thread is not None and one.judged.rule in OWN_SLEEPS and (thread.cpu or 0.0) < NO_RATE


def _waits_there_too(look: JobView, kept: _Kept) -> bool:
    was = look.same_process(kept.keeper.process)
    same = (kept.wait.thread, kept.wait.address, kept.wait.owner)
    return was is not None and any((one.thread, one.address, one.owner) == same for one in was.locks)


LOST = (keeps_lock,)
PATTERNS = (may_keep_lock,)
