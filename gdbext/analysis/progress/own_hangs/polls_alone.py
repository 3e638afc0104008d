"""Threads that look again and again whether something has ended, a lock is free, there is room, or memory has changed,
while nothing else in their program runs."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from gdbext.analysis.progress.named_waits import naps_for_others, naps_for_part, tries_lock
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.own_hangs.loop_tasks import naps_in_loop
from gdbext.analysis.progress.own_work import (
    is_independent_job,
    is_working,
    is_yielding,
    listens,
    looked_long,
    spins_for_lock,
)
from gdbext.analysis.progress.pool_tasks import stands
from gdbext.analysis.progress.running import (
    handler_of,
    has_acted,
    in_own_code,
    is_alive,
    seconds_in_place,
    stays_in_place,
)
from gdbext.analysis.view.candidate import Candidate, blame, evidence_of
from gdbext.analysis.view.job_view import JobView, Party, calls_of, matches_any, parties_without, threads_of
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.runtimes.system_calls import FUTEX
from gdbext.knowledge.runtimes.tried_locks import TRIES_OPENED
from gdbext.model.activity import Activity
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import counted

_OF_FILES = regex(TRIES_OPENED)
"""Functions that try again to lock a file, which another process may have."""


def end_not_seen(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, they were at one place, and nothing else moved."""
    if not is_independent_job(view) or not looked_long(view) or any(is_working(view, party) for party in view.parties):
        return None
    naps = [party for party in view.parties if naps_for_others(party) and _is_alone(view, party)]
    others = parties_without(view.parties, naps)
    if not naps or any(acts(one) for party in others for one in threads_of(view, party.index)):
        return None
    seconds = min(seconds_in_place(view, one, ()) for one in naps)
    if seconds < view.spinning_after:
        return None
    awaited, reason = _awaited(naps)
    summary = (
        f"{start(who(naps))} {verb(naps, 'has', 'have')} been checking for {seconds:.0f} s, with sleeps in between, "
        f"whether {awaited}, in {where(naps[0])}. Nothing that was read "
        f"works on it: {_nobody_else(naps)}. {reason}"
    )
    return blame("other", "low", summary, naps, others)


def _awaited(naps: Sequence[Party]) -> Tuple[str, str]:
    """What they check, and why it may never be so."""
    if all(map(tries_lock, naps)):
        why = "Who has that lock was not read (another program, another host), or has ended and left it behind."
        return "a lock is free", why
    if all(map(naps_for_part, naps)):
        return "there is room", "What takes up that room is most likely its own, and goes back only after this call."
    why = "What it looks for was lost, has ended in silence, or is to come from elsewhere (a file, another host)."
    return "something has ended", why


def nobody_changes_it(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, some threads of the only process looked again and again at
    memory in the same functions, and all the others waited for a thread of this process without a limit. A process
    that was not read may still change memory that it shares with this one."""
    spinning, others = _spinning_alone(view)
    if not spinning or not looked_long(view) or not all(stays_in_place(view, one) for one in spinning):
        return None
    summary = (
        f"{start(_looks_at_memory(spinning))}, and only another thread could change what "
        f"{verb(spinning, 'it sees', 'they see')} there: {_left(others)}."
    )
    return blame("other", "low", summary, view.parties, shown=[*spinning, *others])


def may_change_nothing(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    spinning, others = _spinning_alone(view)
    if not spinning or looked_long(view):
        return None
    text = f"It is not clear yet whether anything hangs: {_looks_at_memory(spinning)}, and {_left(others)}."
    return not_clear(view, text, evidence_of((), [*spinning, *others]))


def _spinning_alone(view: JobView) -> Tuple[Sequence[Party], Sequence[Party]]:
    """The threads of the only process that look at memory, by giving their processor away or in a function that takes a
    lock, and the others, none of which may change it; nobody where one may."""
    if not is_independent_job(view) or len(view.snapshot.processes) != 1:
        return (), ()
    threads = threads_of(view, 0)
    spinning = [one for one in threads if one.judged.helper is None and (is_yielding(one) or spins_for_lock(one))]
    spinning = [one for one in spinning if not (tries_lock(one) or matches_any(_OF_FILES, calls_of(one)))]
    others = [one for one in threads if one not in spinning]
    return ((), ()) if not spinning or _may_be_changed(view, others) else (spinning, others)


def _looks_at_memory(spinning: Sequence[Party]) -> str:
    return f"{who(spinning)} {verb(spinning, 'looks', 'look')} again and again at memory in {where(spinning[0])}"


def _left(others: Sequence[Party]) -> str:
    return "all its other threads wait for threads of this process" if others else "it has no other thread"


def loop_held_up(view: JobView) -> Optional[Candidate]:
    """For as long as an endless loop takes to be called one, a task has slept again and again in an event loop's own
    thread, with the same local variables, and no other task of that loop could run meanwhile."""
    loop = _napping_loop(view) if looked_long(view) else None
    if loop is None:
        return None
    summary = (
        f"{start(_held_up(loop))}. If it looks for what one of these is to do, it never ends: wait with "
        "`await asyncio.sleep()` there, or in another thread (asyncio.to_thread)."
    )
    return blame("other", "low", summary, [loop])


def may_hold_up_loop(view: JobView) -> Optional[Candidate]:
    """The same for a shorter time."""
    loop = None if looked_long(view) else _napping_loop(view)
    if loop is None:
        return None
    return not_clear(view, f"It is not clear yet whether anything hangs: {_held_up(loop)}.", evidence_of((), [loop]))


def _held_up(loop: Party) -> str:
    tasks = counted(len(loop.process.tasks), "other task")
    return (
        f"{who([loop])} sleeps again and again in {closed(where(loop))} in its event loop's thread, and {tasks} of "
        f"that loop cannot run meanwhile"
    )


def _napping_loop(view: JobView) -> Optional[Party]:
    """The only party, where it naps in its loop, and nothing else in its process acts."""
    if not is_independent_job(view) or len(view.parties) != 1 or is_busy(view.parties[0].process.activity):
        return None
    loop = view.parties[0]
    others = (one for one in threads_of(view, loop.index) if one.thread is not loop.thread)
    return loop if naps_in_loop(view, loop) and not any(map(acts, others)) else None


def _may_be_changed(view: JobView, others: Sequence[Party]) -> bool:
    """Whether a signal's handler, a child, or a thread that something outside may wake can change it."""
    process = view.snapshot.processes[0]
    if process.handlers is None or handler_of(process) is not None:
        return True
    activity = process.activity
    if activity is None or activity.children or activity.napping or activity.resting:
        return True
    return not all(_waits_for_own(one) for one in others)


def _waits_for_own(one: Party) -> bool:
    return stands(one) and one.syscall is not None and one.syscall[0] == FUTEX


def _is_alone(view: JobView, party: Party) -> bool:
    """Whether neither another thread of its process nor a child does anything that it may wait for. Beside one that
    waits for requests it may wait to be told to end."""
    own = [one for one in threads_of(view, party.index) if one.thread is not party.thread]
    return not (
        is_busy(party.process.activity) or any(acts(one) or one.judged.idle or listens(view, one) for one in own)
    )


def _nobody_else(naps: Sequence[Party]) -> str:
    """Who might, and does not."""
    alone = all(len(party.process.threads) == 1 for party in naps)
    its = verb(naps, "its", "their")
    threads = f"{verb(naps, 'it has', 'they have')} no other thread" if alone else f"none of {its} other threads moved"
    resting = any(party.process.activity is not None and party.process.activity.resting for party in naps)
    return f"{threads}, and {its} child processes used no processor" if resting else threads


def is_busy(activity: Optional[Activity]) -> bool:
    if activity is None:
        return False
    moved = (activity.read_bytes, activity.written_bytes, activity.own_bytes, activity.napping)
    return bool(activity.children) or any(moved)


def acts(one: Party) -> bool:
    """Whether it runs, ran between the copies, or naps in its own code and may go on after that."""
    return one.thread is None or has_acted(one) or (in_own_code(one) and is_alive(one))


LOST = (end_not_seen, nobody_changes_it, loop_held_up)
PATTERNS = (may_hold_up_loop, may_change_nothing)
