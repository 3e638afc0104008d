"""Programs in which nobody acts any more, although somebody has asked for something that only they could give.

Whoever waits for a lock, the end of a child, a result, or room to write has begun something. Where every thread of
every process waits without a limit, nobody is left who could end that wait, however little is known of who should.
"""

from __future__ import annotations

from typing import FrozenSet, List, Optional, Sequence

from gdbext.analysis.progress.begun import MEETS, RULES, asks, awaits_answer, joins_pool, wants_lock
from gdbext.analysis.progress.between_looks import ran_between
from gdbext.analysis.progress.own_hangs.polls_alone import is_busy
from gdbext.analysis.progress.own_work import (
    has_code,
    is_independent_job,
    is_serving,
    is_working,
    is_yielding,
    looked_long,
)
from gdbext.analysis.progress.pool_tasks import inside_task, waits_for_result
from gdbext.analysis.progress.running import (
    asks_for_file,
    ended_by_handlers,
    for_ever,
    handler_of,
    has_changed,
    was_woken,
)
from gdbext.analysis.progress.slow import busy_child
from gdbext.analysis.view.candidate import Candidate, blame
from gdbext.analysis.view.job_view import (
    JobView,
    Party,
    calls_of,
    matches_any,
    other_ends,
    parties_of,
    parties_without,
    threads,
)
from gdbext.analysis.view.places import where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.frames.python.python_libraries import REQUESTS, RESULTS_OF_OTHERS
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.runtimes.system_calls import FUTEX
from gdbext.knowledge.runtimes.untimed_calls import CHILD_WAITS, LOADER_WAITS, POOL_WORKER
from gdbext.knowledge.spinning import LONG_SLEEP, SPINNING_AFTER
from gdbext.model.codes import Code
from gdbext.model.stack import Frame
from gdbext.model.text.patterns import regex

_LATER = 5
"""How many times the span in which the others were started a process must have come after them to be no sibling."""
_RUNS, _THREADS = regex(r"(\w+\.)?run$"), regex(r"(^|/)threading\.py$")
_WAITS_IN = regex(r"(^|/)(threading|multiprocessing/\w+)\.py$")


def nobody_acts(view: JobView) -> Optional[Candidate]:
    """All wait for each other: some have asked, the others have nothing to do, and nobody works on what was asked."""
    alone = len(view.parties) == 1  # then the wait graph has what is sure
    if not view.parties or not is_independent_job(view) or any(is_working(view, party) for party in view.parties):
        return None
    if alone and (not looked_long(view) or is_busy(view.parties[0].process.activity)):
        return None
    if any(busy_child(party) is not None for party in view.parties):
        return None
    own = _threads(view)
    sleeping = [one for one in own if _sleeps_long(one)]
    asking = _asking(own)
    if alone and len(asking) < 2 and any(one.judged.idle for one in own):
        return None  # a client may bring what it waits for
    closed_pool = any(map(joins_pool, asking))
    serving = (one for one in view.parties if not (closed_pool and one.judged.rule == POOL_WORKER))
    if not asking or any(is_serving(view, party) for party in serving):
        return None
    if not all(_may_wait(view, one) for one in own):
        return None
    ours = frozenset(process.pid or 0 for process in view.snapshot.processes)
    if any(_is_for_others(one, ours) for one in own) or not (looked_long(view) or all(map(_stands, own))):
        return None
    if _ran(view) or (any(one.judged.rule in REQUESTS for one in asking) and not view.before):
        return None  # an answer may be on its way, and no thread be seen to carry it
    if all(one.judged.rule in CHILD_WAITS for one in asking) and any(map(_may_be_told_to_end, view.parties)):
        return None
    late = [] if sleeping else [one for one in asking if _came_late(view, one)]
    blamed = (
        parties_of(view, sleeping) or parties_of(view, asking if closed_pool else []) or _to_blame(view, asking, late)
    )
    victims = parties_without(view.parties, blamed)
    first = next((one for one in asking if one.index not in {party.index for party in blamed}), asking[0])
    its = "it" if len(view.processes) == 1 else f"its {len(view.processes)} processes"
    waiting = who(parties_of(view, [first]))
    summary = (
        f"Nobody in this program can proceed: {waiting} waits in {closed(where(first))} for something "
        f"that only the program itself can give, and no thread of {its} works on it."
    )
    if first.index != blamed[0].index:
        summary += f" {start(who(blamed))} {verb(blamed, 'waits', 'wait')} in {where(blamed[0])}."
    sure = all(map(_stands, own)) and not (late or alone)  # clocks alone tell who is late
    return blame("other", "medium" if sure else "low", summary, blamed, victims)


def nobody_asks(view: JobView) -> bool:
    """Whether all that there is was read, and nobody has begun anything: nothing shows that something hangs."""
    if not is_independent_job(view):
        return False
    own = _threads(view)
    return not _asking(own) and not any(one.judged.rule in RESULTS_OF_OTHERS for one in own)


def _threads(view: JobView) -> List[Party]:
    """Those of the program, and a library's that wants a lock: that is not how it waits for work."""
    return [one for one in threads(view) if one.judged.helper is None or wants_lock(one)]


def _asking(threads: Sequence[Party]) -> List[Party]:
    """Those who ask; where somebody has gone to sleep for long, also who waits for a message of his. Whose child has
    may well mean it to."""
    sleeping = {one.process.pid for one in threads if _sleeps_long(one)}
    found = [one for one in threads if asks(one) and not (sleeping and one.judged.rule in CHILD_WAITS)]
    to_sleepers = (one for one in threads if one.kind in ("io", "ipc-queue") and one.judged.rule not in CHILD_WAITS)
    return found or [one for one in to_sleepers if any(sleeping.issuperset(pids) and pids for pids in other_ends(one))]


def _may_wait(view: JobView, one: Party) -> bool:
    """Whether it waits, perhaps for a moment only and again and again; nobody knows what code runs for."""
    if one.thread is None or one.thread.state not in ("S", None):
        return False
    return _stands(one) or one.judged.idle or _beats(view, one) or one.kind in ("ipc-queue", "condvar-idle")


def _beats(view: JobView, one: Party) -> bool:
    """Whether it naps in the very function that its thread was made for, which reports or looks again and again. Who
    naps in a function that this one calls, or changes its local variables, may be at work on what was asked."""
    nap = _own_sleep(one)
    if nap is None or nap > SPINNING_AFTER or has_changed(view, one):
        return False
    python = list(one.python_calls())
    return len(python) > 1 and bool(_RUNS.match(python[1].function or "") and _THREADS.search(python[1].file or ""))


def _stands(one: Party) -> bool:
    """Whether it waits without a limit and was not woken, or looks again and again for what it has asked for."""
    if one.thread is None:
        return False
    looks = asks_for_file(one) or one.judged.rule in LOADER_WAITS or _sleeps_long(one)
    return looks or (not one.thread.switches and (for_ever(one.thread) or one.judged.idle))


def _sleeps_long(one: Party) -> bool:
    """Whether the program itself has sent it to sleep for so long that nobody can mean to wait for it."""
    nap = _own_sleep(one)
    return nap is not None and nap >= LONG_SLEEP


def _own_sleep(one: Party) -> Optional[float]:
    """For how many seconds the program has sent it to sleep; None where it is not asleep, or a library did that."""
    return one.thread.sleeps if one.thread is not None and one.judged.rule in OWN_SLEEPS else None


def _is_for_others(one: Party, ours: FrozenSet[int]) -> bool:
    """Whether a process that was not read, a device or the network could end its wait: it is one for a file of which
    nobody knows that only the program has it. A side thread that also listens takes what its library is sent."""
    call = one.syscall
    if one.judged.idle or one.kind not in ("io", "ipc-queue") or (call is not None and call[0] == FUTEX):
        return False
    ends = other_ends(one)
    known = bool(ends) or has_code(one, Code.ANYBODY) or one.judged.rule in LOADER_WAITS or _sleeps_long(one)
    return not known or any(not ours.issuperset(pids) for pids in ends)


def _may_be_told_to_end(one: Party) -> bool:
    """Whether a signal's handler may end its wait: for that a child may rest whose parent waits for its end."""
    return ended_by_handlers(one) and handler_of(one.process) is not None


def _ran(view: JobView) -> bool:
    """Whether a thread runs, or waits without a limit and was woken between two copies or looks; also a library's,
    unless it only looks again and again and lets others run meanwhile."""
    every = [one for one in threads(view) if one.thread is not None]
    if any((one.thread.state == "R" and not is_yielding(one)) or was_woken(one.thread) for one in every if one.thread):
        return True
    looks = [*view.before, view]
    for old, new in zip(looks, looks[1:]):
        for process in new.snapshot.processes:
            was = old.same_process(process)
            waiting = (thread for thread in process.threads if for_ever(thread))
            if was is not None and any(ran_between(was, process, thread.id) for thread in waiting):
                return True
    return False


def _to_blame(view: JobView, asking: Sequence[Party], late: Sequence[Party]) -> List[Party]:
    """Who came late to a barrier; else who has a lock that another process wants; else whose task waits for neither a
    result nor a message; else who has asked for nothing and waits for nobody who has; else who waits for more than the
    end or the result of another one; else who has asked; else everybody."""
    ends = [one for one in asking if not (one.judged.rule in RULES or waits_for_result(one))]
    inside = [one for one in ends if inside_task(one) and not other_ends(one)]
    silent = parties_without(view.parties, parties_of(view, asking))
    pids = {one.process.pid for one in asking}
    owed = [one for one in silent if other_ends(one) and all(pids.issuperset(ends) for ends in other_ends(one))]
    if not all(map(waits_for_result, asking)):  # else their tasks are what the others wait for
        owed = [one for one in owed if awaits_answer(view, one)]
    silent = parties_without(silent, owed)
    for some in (late, _holding(view, asking), inside, silent, ends, asking if owed else []):
        if some:
            return parties_of(view, some)
    return list(view.parties)


def _holding(view: JobView, asking: Sequence[Party]) -> List[Party]:
    """Those whose process has a lock that another one waits for."""
    waits = ((process.pid, wait.owner_process) for process in view.snapshot.processes for wait in process.locks)
    owners = {owner for pid, owner in waits if owner is not None and owner != pid}
    return [one for one in asking if one.process.pid in owners]


def _came_late(view: JobView, one: Party) -> bool:
    """Whether it waits at a barrier, and others of its program are past that: further on in the function that called
    it. They were there before this process was started, and do not come again."""
    mine, began = _caller(one), one.process.started
    if mine is None or began is None or not matches_any(MEETS, calls_of(one)):
        return False
    past = [party for party in view.parties if party.index != one.index and _is_past(party, mine)]
    times = [party.process.started for party in past if party.process.started is not None]
    spread = max(times) - min(times) if times else 0
    return bool(past) and len(times) == len(past) and began - max(times) > _LATER * (spread + 1)


def _caller(one: Party) -> Optional[Frame]:
    """The first function of Python that is not one of the libraries that wait."""
    return next((frame for frame in one.python_calls() if not _WAITS_IN.search(frame.file or "")), None)


def _is_past(party: Party, mine: Frame) -> bool:
    same = (frame for frame in party.calls if (frame.function, frame.file) == (mine.function, mine.file))
    return any((frame.line or 0) > (mine.line or 0) for frame in same)


LOST = (nobody_acts,)
