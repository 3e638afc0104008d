"""A thread that keeps a lock while it looks again and again for something, and another thread that waits for the lock:
if that one is to do what the first looks for, neither gets on. Processes that keep a lock on a file while they are
idle."""

from __future__ import annotations

from typing import Collection, Iterator, NamedTuple, Optional, Sequence, Tuple

from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_work import is_independent_job, looked_long
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import own_locks, stays_in_place
from gdbext.analysis.progress.slow import busy_child, moves_much
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, calls_of, matches_any, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, who
from gdbext.knowledge.causes.slow import CHILD_CPU, NO_RATE
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing
from gdbext.model.text.patterns import regex

_MODULE_LOCK = regex(r"_ModuleLock\.acquire$")  # this and the next one: Lib/importlib/_bootstrap.py
_IMPORTS = regex(r"_find_and_load$|_load_unlocked$")


class _HeldLock(NamedTuple):
    wait: LockWait
    holder: Party
    waiter: Party
    imports: bool = False  # the lock is one of a module, and the holder the only other thread that imports any


def keeps_lock(view: JobView) -> Optional[Candidate]:
    """In all looks, over as long as an endless loop takes to be called one, the same thread had the lock, as memory
    shows, with the same local variables, and the other one waited for it. Who has the lock of a module, stacks show."""
    held = _held_while_napping(view) if looked_long(view) else None
    if held is None:
        return None
    advice = "do not wait for threads in what an import runs" if held.imports else "release the lock before you wait"
    summary = (
        f"{start(_said(held))} and was seen to do nothing else. If it looks for something that {who([held.waiter])} "
        f"is to do, neither gets on: {advice}."
    )
    return Candidate(
        cause="lock-order-deadlock",
        confidence="low",
        summary=summary,
        culprits=(held.holder,),
        evidence=evidence_of([held.holder], [held.waiter]),
    )


def may_keep_lock(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    held = None if looked_long(view) else _held_while_napping(view)
    if held is None:
        return None
    text = f"It is not clear yet whether anything hangs: {_said(held).rstrip(',')}."
    return not_clear(view, text, evidence_of((), [held.holder, held.waiter]))


def idle_keeps_lock(view: JobView) -> Optional[Candidate]:
    """For that long one process has waited for a lock on a file, and another one, which has it, for requests."""
    waiter, holder = _idle_holder(view)
    if waiter is None or holder is None or not looked_long(view):
        return None
    summary = (
        f"{start(_waits_for_idle(waiter, holder))}. Unless a request makes it release that lock, nobody does: it is to "
        "release the lock before it waits for requests."
    )
    return blame("other", "low", summary, [holder], [waiter])


def idle_may_keep_lock(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    waiter, holder = _idle_holder(view)
    if waiter is None or holder is None or looked_long(view):
        return None
    text = f"It is not clear yet whether anything hangs: {_waits_for_idle(waiter, holder)}."
    return not_clear(view, text, evidence_of((), [waiter, holder]))


def _idle_holder(view: JobView) -> Tuple[Optional[Party], Optional[Party]]:
    """Who waits for the lock, and who has it, where that is one other process of the program."""
    if not is_independent_job(view):
        return None, None
    parties = {party.process.pid: party for party in view.parties}
    for waiter in view.parties:
        for peer in waiter.process.peers:
            pids = () if isinstance(peer.processes, Missing) else peer.processes
            holder = parties.get(pids[0]) if peer.lock and peer.thread == waiter.lwp and len(pids) == 1 else None
            if holder is not None and holder is not waiter and holder.judged.idle and stands(waiter):
                return waiter, holder
    return None, None


def _waits_for_idle(waiter: Party, holder: Party) -> str:
    return (
        f"{who([waiter])} waits in {closed(where(waiter))} for a lock on a file that {who([holder])} has, which waits "
        f"for requests in {where(holder)}"
    )


def _said(held: _HeldLock) -> str:
    waiter, holder = who([held.waiter]), who([held.holder])
    if held.imports:
        return (
            f"{waiter} waits in {closed(where(held.waiter))} for a module that {holder} is importing, which wakes up "
            f"again and again in {closed(where(held.holder))}"
        )
    return (
        f"{waiter} waits in {closed(where(held.waiter))} for a lock that {holder} holds, which sleeps again and "
        f"again in {closed(where(held.holder))}"
    )


def _held_while_napping(view: JobView) -> Optional[_HeldLock]:
    if not is_independent_job(view):
        return None
    found = (one for one in _candidates(view) if one.imports or stays_in_place(view, one.holder))
    return next((one for one in found if all(_waits_there_too(look, one) for look in view.before)), None)


def _candidates(view: JobView) -> Iterator[_HeldLock]:
    for process in view.snapshot.processes:
        waits = [wait for wait in process.locks if wait.still and wait.owner_process is None]
        if not waits:
            continue
        threads = {one.lwp: one for one in threads_of(view, process.index)}
        for wait in waits:
            waiter = threads.get(wait.thread)
            if waiter is None:
                continue
            holder = None if isinstance(wait.owner, Missing) else threads.get(wait.owner)
            importing = _importing(threads.values(), waiter) if holder is None else ()
            if len(importing) == 1 and _does_little(importing[0]):
                yield _HeldLock(wait, importing[0], waiter, imports=True)
            elif holder is not None and _naps(holder) and not (holder.judged.helper or waiter.judged.helper):
                yield _HeldLock(wait, holder, waiter)


def _importing(threads: Collection[Party], waiter: Party) -> Sequence[Party]:
    """The other threads that import modules, where this one waits for a module's lock."""
    if not matches_any(_MODULE_LOCK, calls_of(waiter)):
        return ()
    return [one for one in threads if one is not waiter and matches_any(_IMPORTS, calls_of(one))]


def _does_little(one: Party) -> bool:
    """Whether it only looks again and again for something: who loads or compiles uses a processor, or reads much."""
    activity, thread = one.process.activity, one.thread
    if activity is None or thread is None or not thread.switches or busy_child(one) is not None:
        return False
    return (thread.cpu or 0.0) < CHILD_CPU and not moves_much(activity)


def _naps(one: Party) -> bool:
    """Whether it sleeps for a moment, or waits for one, again and again."""
    thread = one.thread
    if thread is None or (thread.cpu or 0.0) >= NO_RATE:
        return False
    return one.judged.rule in OWN_SLEEPS or (bool(thread.switches) and any(wait.timed for wait in own_locks(one)))


def _waits_there_too(look: JobView, held: _HeldLock) -> bool:
    was = look.same_process(held.holder.process)
    same = (held.wait.thread, held.wait.address, held.wait.owner)
    return was is not None and any((one.thread, one.address, one.owner) == same for one in was.locks)


LOST = (keeps_lock, idle_keeps_lock)
PATTERNS = (may_keep_lock, idle_may_keep_lock)
