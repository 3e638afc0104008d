"""Programs in which nobody acts any more, although somebody has asked for something that only they could give.

Whoever waits for a lock, the end of a child, a result, or room to write has begun something. Where every thread of every
process waits without a limit, nobody is left who could end that wait, however little is known of who should.
"""

from __future__ import annotations

from typing import FrozenSet, List, Optional, Sequence

from gdbext.analysis.progress.between_looks import ran_between
from gdbext.analysis.progress.own_work import alone, looked_long, other_ends, serves, works
from gdbext.analysis.progress.pool_tasks import inside_task, waits_for_result
from gdbext.analysis.progress.running import asks_for_file, for_ever, was_woken
from gdbext.analysis.verdict.candidate import Candidate, evidence_of
from gdbext.analysis.verdict.job_view import JobView, Party, threads_of, without
from gdbext.analysis.verdict.wording import start, verb, where, who
from gdbext.knowledge.frames.python.python_libraries import REQUESTS
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.system_calls import FLOCK, SENDMSG, SENDTO, WRITE, WRITEV
from gdbext.knowledge.runtimes.untimed_calls import CHILD_WAITS, LOADER_WAITS
from gdbext.knowledge.spinning import LONG_SLEEP

_GIVES = (WRITE, WRITEV, SENDTO, SENDMSG, FLOCK)
_RULES = (*CHILD_WAITS, *LOADER_WAITS, *REQUESTS, "os-join")


def asks(one: Party) -> bool:
    """Whether it has begun something that somebody else must end: nobody waits so who has nothing to do."""
    call = one.thread.syscall if one.thread is not None else None
    sends = bool(call) and call is not None and call[0] in _GIVES
    waits = one.kind == "mutex" or one.judged.rule in _RULES or waits_for_result(one) or inside_task(one)
    return sends or waits or asks_for_file(one)


def nobody_acts(view: JobView) -> Optional[Candidate]:
    """All wait for each other: some have asked, the others have nothing to do, and nobody works on what was asked."""
    if not alone(view) or len(view.parties) < 2 or any(works(view, party) for party in view.parties):
        return None
    threads = [one for party in view.parties for one in _threads(view, party)]
    sleeping = [one for one in threads if _sleeps_long(one)]
    # Whose child sleeps for an hour may well mean it to.
    asking = [one for one in threads if asks(one) and not (sleeping and one.judged.rule in CHILD_WAITS)]
    if not asking or any(serves(view, party) for party in view.parties) or not all(map(_may_wait, threads)):
        return None
    ours = frozenset(process.pid or 0 for process in view.snapshot.processes)
    if any(_is_for_others(one, ours) for one in threads) or not (looked_long(view) or all(map(_stands, threads))):
        return None
    if _ran(view) or any(was_woken(thread) for process in view.snapshot.processes for thread in process.threads):
        return None
    blamed = _first(view, sleeping) or _to_blame(view, asking)
    victims = without(view.parties, blamed)
    summary = (
        f"Nobody in this program can proceed: {who(_first(view, asking))} {verb(_first(view, asking), 'waits', 'wait')} "
        f"in {where(asking[0])} for something that only the program itself can give, and no thread of its "
        f"{len(view.processes)} processes works on it. {start(who(blamed))} {verb(blamed, 'waits', 'wait')} in "
        f"{where(blamed[0])}."
    )
    return Candidate(
        cause="other",
        confidence="medium" if all(map(_stands, threads)) else "low",
        summary=summary,
        culprits=tuple(blamed),
        victims=tuple(victims),
        evidence=evidence_of(blamed, victims),
    )


def _threads(view: JobView, party: Party) -> List[Party]:
    return threads_of(view, party.index, lambda one: one.helper is None)


def _may_wait(one: Party) -> bool:
    """Whether it waits, perhaps for a moment only and again and again; nobody knows what code runs for."""
    if one.thread is None or one.thread.state not in ("S", None):
        return False
    return _stands(one) or one.judged.idle or one.thread.sleeps is not None or one.kind in ("ipc-queue", "condvar-idle")


def _stands(one: Party) -> bool:
    """Whether it waits without a limit and was not woken, or looks again and again for what it has asked for."""
    if one.thread is None:
        return False
    looks = asks_for_file(one) or one.judged.rule in LOADER_WAITS or _sleeps_long(one)
    return looks or (not one.thread.switches and (for_ever(one.thread) or one.judged.idle))


def _sleeps_long(one: Party) -> bool:
    """Whether the program itself has sent it to sleep for so long that nobody can mean to wait for it."""
    ends = one.thread.sleeps if one.thread is not None else None
    return one.judged.rule in OWN_SLEEPS and ends is not None and ends >= LONG_SLEEP


def _is_for_others(one: Party, ours: FrozenSet[int]) -> bool:
    """Whether a process that was not read, or the network, could end its wait."""
    if one.kind not in ("io", "ipc-queue"):
        return False
    return any(not ours.issuperset(pids) for pids in other_ends(one))


def _ran(view: JobView) -> bool:
    """Whether somebody who waits without a limit was woken between two looks."""
    looks = [*view.before, view]
    for old, new in zip(looks, looks[1:]):
        then = {process.pid: process for process in old.snapshot.processes}
        for process in new.snapshot.processes:
            was = then.get(process.pid)
            waiting = (thread for thread in process.threads if for_ever(thread))
            if was is not None and any(ran_between(was, process, thread.id) for thread in waiting):
                return True
    return False


def _to_blame(view: JobView, asking: Sequence[Party]) -> List[Party]:
    """Whose task waits for what is no result of another task; else who has asked for nothing; else everybody."""
    inside = [one for one in asking if inside_task(one) and one.judged.rule not in REQUESTS]
    ends = [one for one in inside if not waits_for_result(one)]
    for some in (ends, without(view.parties, _first(view, asking))):
        indexes = {one.index for one in some}
        if indexes:
            return [party for party in view.parties if party.index in indexes]
    return list(view.parties)


def _first(view: JobView, threads: Sequence[Party]) -> List[Party]:
    """The processes of these threads."""
    indexes = {one.index for one in threads}
    return [party for party in view.parties if party.index in indexes]


LOST = (nobody_acts,)
