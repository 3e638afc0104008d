"""Ranks that run, or sleep for a moment, while all others wait for them: slow, or in a loop without an end.

One look cannot tell. A rank that runs at one place for long, while its peers stand and nothing shows that it works, is
named with low confidence. Work that shows (analysis/progress/slow.py) and peers that went on
(analysis/progress/healthy.py) weigh more."""

from __future__ import annotations

from typing import Collection, List, Optional, Sequence, Tuple

from gdbext.analysis.progress.between_looks import marks_differ, ran_between, returned_between
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.progress.slow import counts_down, is_at_work, only_slow
from gdbext.analysis.progress.waits_for_ranks import may_progress, waiting_for_others
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import JobView, Party
from gdbext.analysis.view.places import what, where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.labels import OF_ITS_OWN, OWN_SLEEPS
from gdbext.knowledge.runtimes.cpython_frames import HANDLES_SIGNALS
from gdbext.knowledge.runtimes.glibc_locks import BY_HANDLER, KEYBOARD, OF_RUNTIMES
from gdbext.knowledge.runtimes.untimed_calls import LOADER_WAITS, has_no_limit, has_no_timeout
from gdbext.knowledge.spinning import SPINNING_AFTER
from gdbext.model.job import RankSnapshot
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.text.patterns import regex

_HANDLES = regex(HANDLES_SIGNALS)
_Place = List[Tuple[Optional[str], Optional[int]]]


def running(view: JobView) -> Optional[Candidate]:
    """Everybody waits for ranks of which all that is known is that they run."""
    waiting = [*waiting_for_others(view), *view.of("init", "teardown")]
    busy = [party for party in view.of("elsewhere") if is_alive(party)]
    if any(party.process.rank is not None for party in waiting):
        busy = [party for party in busy if party.process.rank is not None]  # the others are front ends
    if not waiting or not busy or view.threads_as_ranks:
        return None
    if not view.has_two_looks or any(moves_about(view, party) for party in busy):
        return _slow(waiting, busy) if waiting_for_others(view) else None
    if view.gone or view.snapshot.absent or view.of("fatal") or any(party.index in view.moved for party in waiting):
        return None
    counted = counts_down(view, waiting, busy)
    if counted is not None:
        return counted
    seconds = min(seconds_in_place(view, party, waiting) for party in busy)
    place = f"{who(waiting)} {verb(waiting, 'waits', 'wait')} in {what(waiting)}"
    evidence = evidence_of(busy, waiting)
    if seconds >= view.spinning_after and not any(_worked_before(view, party) for party in busy):
        summary = (
            f"{start(who(busy))} {verb(busy, 'has', 'have')} been running in {closed(where(busy[0]))} for "
            f"{seconds:.0f} s, and {place} without moving. That is most likely an endless loop; a long computation in "
            "code that gdbext does not know looks the same."
        )
        return Candidate(
            cause="missing-rank",
            confidence="low",
            summary=summary,
            culprits=tuple(busy),
            victims=tuple(waiting),
            evidence=evidence,
        )
    summary = (
        f"It is not clear yet whether anything hangs: {place} for {who(busy)}, which "
        f"{_do(busy)} in {where(busy[0])}. A long step looks like an endless loop."
    )
    return not_clear(view, summary, evidence, waiting)


def _slow(waiting: Sequence[Party], busy: Sequence[Party]) -> Candidate:
    """Seen once, or at several places."""
    summary = (
        f"{start(who(busy))} {verb(busy, 'is', 'are')} still computing in {where(busy[0])}; {who(waiting)} "
        f"{verb(waiting, 'waits', 'wait')} for {'it' if len(busy) == 1 else 'them'}. That is normal "
        "between two collectives; if a second sample shows the same, that code is too slow or loops."
    )
    return only_slow(summary, waiting, busy)


def moves_about(view: JobView, party: Party) -> bool:
    """Whether it was at another place in the look before this one."""
    then = view.before[-1].same_party(party) if view.before else None
    return then is not None and not _one_place(_place(then), _place(party))


def was_woken(thread: ThreadStack) -> bool:
    """Whether it waits without a timeout, and had a processor between the two copies of a look: it got something."""
    return bool(thread.switches) and has_no_timeout(thread.syscall)


def has_acted(one: Party) -> bool:
    """Whether it runs, or had a processor between the two copies of a look."""
    return one.thread is not None and (one.thread.state == "R" or bool(one.thread.switches))


def stood(view: JobView, parties: Sequence[Party]) -> bool:
    """Whether none of them has had a processor from one look to the next."""
    looks = (*view.before, view)
    for old, new in zip(looks, looks[1:]):
        pairs = ((old.same_process(one.process), new.same_process(one.process), one) for one in parties)
        if any(one is None or two is None or ran_between(one, two, party.id) for one, two, party in pairs):
            return False
    return True


def has_changed(view: JobView, one: Party) -> bool:
    """Whether the local variables of a thread's Python functions were others in one of the looks."""
    now = one.thread.marks if one.thread is not None else ()
    return any(marks_differ(then.marks, now) for then in _earlier(view, one))


def stays_in_place(view: JobView, one: Party) -> bool:
    """Whether a thread was in the same functions of its own in all looks; those of Python with the same local
    variables."""
    if one.thread is None or one.thread.marks:
        return in_all_looks(view, one)
    functions = [frame.function for frame in one.calls[(one.judged.frame or 0) + 1 :]]
    earlier = _earlier(view, one)
    same = ([frame.function for frame in then.calls][-len(functions) :] == functions for then in earlier)
    return bool(functions) and len(earlier) == len(view.before) and all(same)


def lasting_call(view: JobView, one: Party) -> Optional[Frame]:
    """The function of Python whose call has not returned from look to look, as far in as any look came: in all of them
    those further out have the same local variables. None where one has others, or was not read."""
    earlier, now = _earlier(view, one), one.thread.marks if one.thread is not None else ()
    outer = min(map(_callers_read, (now, *(then.marks for then in earlier))))
    if outer <= 0 or len(earlier) < len(view.before) or any(then.marks[:outer] != now[:outer] for then in earlier):
        return None
    calls = list(one.python_calls())
    return calls[-1 - outer] if outer < len(calls) else None


def _callers_read(marks: Sequence[int]) -> int:
    """How many frames, from the outermost one on, have called another and were read: those further in, of a thread that
    runs, may be others by then."""
    return min(len(marks) - 1, marks.index(0) if 0 in marks else len(marks))


def _earlier(view: JobView, one: Party) -> List[ThreadStack]:
    """A thread as the looks before this one have it."""
    processes = (look.same_process(one.process) for look in view.before)
    return [then for process in processes if process for then in process.threads if then.lwp == one.lwp]


def in_all_looks(view: JobView, one: Party, gil: Optional[bool] = None) -> bool:
    """Whether a thread was in each look where it is now, with the same local variables; `gil`: and had it."""
    found = [_marks(look, one, gil) for look in (*view.before, view)]
    return bool(found[0]) and all(marks == found[0] for marks in found)


def _marks(look: JobView, one: Party, gil: Optional[bool]) -> Tuple[int, ...]:
    process = look.same_process(one.process)
    threads = [
        thread
        for thread in (process.threads if process is not None else ())
        if thread.lwp == one.lwp and (gil is None or thread.gil is gil)
    ]
    marks: List[int] = [mark for thread in threads for mark in thread.marks]
    return tuple(marks) if all(marks) else ()


def handler_of(process: RankSnapshot, besides: Collection[int] = ()) -> Optional[int]:
    """A signal whose handler may let a thread go on, and none of those `besides`; None where it has none, or nobody
    knows, or where the main thread is in the only one that there is."""
    ends = (*OF_RUNTIMES, KEYBOARD, *besides) if process.python else (*OF_RUNTIMES, *besides)
    found = [one for one in process.handlers or () if one not in ends]
    return found[0] if found and not (len(found) == 1 and _is_in_handler(process)) else None


def _is_in_handler(process: RankSnapshot) -> bool:
    """Whether its main thread is in a handler that was written in Python."""
    main = (thread for thread in process.threads if thread.lwp == process.pid)
    return any(_HANDLES.match(frame.function or "") for thread in main for frame in thread.calls)


def own_locks(party: Party) -> List[LockWait]:
    """What its thread waits for from other threads."""
    return [wait for wait in party.process.locks if wait.thread == party.lwp]


def ended_by_handlers(party: Party) -> bool:
    """Whether its wait is of a kind that the handler of a signal may end."""
    return any(BY_HANDLER.get(wait.kind) for wait in own_locks(party))


def for_ever(thread: ThreadStack) -> bool:
    """Whether it waits in the kernel without a timeout."""
    return has_no_limit(thread.syscall)


def is_alive(party: Party) -> bool:
    """It runs, or sleeps for a moment only, or waits for a worker of its own that does, or for what comes piece by
    piece."""
    if asks_for_file(party):
        return False
    ends = party.thread.sleeps if party.thread is not None else None
    naps = (ends is not None and ends <= SPINNING_AFTER) or naps_in_worker(party)
    return naps or may_progress(party) or (party.thread is not None and was_woken(party.thread))


def asks_for_file(party: Party) -> bool:
    """Whether it only wakes up to ask for a lock that is a file, of which it is known who has it."""
    thread = party.thread
    if thread is None or thread.sleeps is None:
        return False
    own = (one for one in party.process.peers if one.thread == party.lwp and one.lock)
    return any(not isinstance(one.processes, Missing) for one in own)


def naps_in_worker(party: Party) -> bool:
    """Whether it waits for data of worker processes, one of which sleeps for as long as it chose: storage that
    answers slowly."""
    activity = party.process.activity
    return party.judged.rule in LOADER_WAITS and activity is not None and bool(activity.napping)


def in_own_code(party: Party) -> bool:
    """It runs or sleeps in code of its own, and waits for nobody."""
    return party.kind in OF_ITS_OWN or party.judged.rule in OWN_SLEEPS


def _do(parties: Sequence[Party]) -> str:
    ends = parties[0].thread.sleeps if parties[0].thread is not None else None
    if naps_in_worker(parties[0]):
        return f"{verb(parties, 'waits', 'wait')} for a worker that sleeps for a while"
    if ends is None and not may_progress(parties[0]):
        return f"{verb(parties, 'waits', 'wait')}, and {verb(parties, 'was', 'were')} woken while gdbext watched,"
    if ends is None or may_progress(parties[0]):
        return verb(parties, "runs", "run")
    return f"{verb(parties, 'sleeps', 'sleep')} for {max(ends, 0.1):.1f} s at most"


def seconds_in_place(view: JobView, party: Party, waiting: Sequence[Party]) -> float:
    """For how long looks saw the party run at one place while those that wait for it stood. The second copy of a look
    has no names."""
    first = view
    for earlier in reversed(view.before):
        if not _in_place(earlier, first, view, party, waiting):
            break
        first = earlier
    if first is view or view.snapshot.taken_at is None or first.snapshot.taken_at is None:
        return 0.0
    return view.snapshot.taken_at + (view.snapshot.apart or 0.0) - first.snapshot.taken_at


def _worked_before(view: JobView, party: Party) -> bool:
    """Whether the kernel's counters showed in an earlier look that it works."""
    earlier = (look.same_party(party) for look in view.before)
    return any(one is not None and is_at_work(one) for one in earlier)


def _in_place(earlier: JobView, later: JobView, last: JobView, party: Party, waiting: Sequence[Party]) -> bool:
    """Whether between two looks nobody moved."""
    then = earlier.same_party(party)
    if then is None or not is_alive(then) or not _one_place(_place(then), _place(party)) or _returned(then, party):
        return False
    for one in waiting:
        old, new = earlier.same_party(one), later.same_party(one)
        if old is None or new is None or _place(old) != _place(one) or new.index in later.moved:
            return False
        if ran_between(old.process, new.process, one.id):
            return False
    return True


def _returned(then: Party, now: Party) -> bool:
    """Whether the innermost Python function in which it was in both looks was called anew in between."""
    if then.thread is None or now.thread is None:
        return False
    pairs = zip(reversed(then.thread.calls), reversed(now.thread.calls))
    python = 0
    for depth, (old, new) in enumerate(pairs):
        if (old.function, old.file) != (new.function, new.file):
            break
        python = depth if new.language == "python" else python
    return returned_between(then.thread, now.thread, len(now.thread.calls) - 1 - python)


def _place(party: Party) -> _Place:
    """The calls of a party from the outermost to the one that decides."""
    return [(one.function or one.library, one.line) for one in reversed(party.calls[party.judged.frame or 0 :])]


def _one_place(one: _Place, other: _Place) -> bool:
    """Whether one of them is the other, at any line, or called from there: a loop calls functions, too."""
    short = min(len(one), len(other)) - 1
    return short >= 0 and one[:short] == other[:short] and one[short][0] == other[short][0]


PATTERNS = (running,)
