"""Slow, not stuck: the kernel counted between two looks that a rank which keeps the others waiting works on, or a loop
of its Python code over a number of items counted down."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Collection, NamedTuple, Optional, Pattern, Sequence

from gdbext.analysis.progress.between_looks import has_run
from gdbext.analysis.progress.not_clear import not_clear
from gdbext.analysis.stacks.thread_kind import BUSY, known_frames
from gdbext.analysis.view.candidate import Candidate, evidence_of
from gdbext.analysis.view.job_view import COMMUNICATION, JobView, Party, parties_without
from gdbext.analysis.view.places import what, where
from gdbext.analysis.view.wording import closed, start, verb, who
from gdbext.knowledge.causes.held_by_frames import FILE_LOCKS
from gdbext.knowledge.causes.slow import CHILD_CPU, FAULTS_PER_SECOND, MOVED_PER_SECOND, SLOW_WORK, SlowWork
from gdbext.knowledge.labels import OF_ITS_OWN, OWN_SLEEPS
from gdbext.model.activity import Activity, Child
from gdbext.model.missing import Missing
from gdbext.model.stack import Loop
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import Evidence

_ROWS = [(row, regex(row.function), regex(row.file), regex(row.children)) for row in SLOW_WORK]
_DEVICE = regex(r"lib(cuda|cudart|nccl|rccl|hsa-runtime)")
_LONG = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"))


@dataclass(frozen=True)
class _CountedWork:
    """What a party does, and the counter that proves it."""

    party: Party
    what: str
    proof: str


def works_on(view: JobView) -> Optional[Candidate]:
    """Every rank that is not waiting for the others provably works: compiles, loads, tokenises, swaps."""
    unreadable = view.gone or view.snapshot.absent or not all(_faults(process.activity) for process in view.unseen)
    if unreadable or view.of("fatal") or view.threads_as_ranks:
        return None
    if view.unseen:
        return _pages(view)
    found = [_doing(party) for party in view.parties]
    doing = [one for one in found if one is not None]
    busy = [one.party for one in doing]
    indexes = {party.index for party in busy}
    others = [party for party in view.parties if party.index not in indexes]
    pids = {party.process.pid for party in busy}
    waiting = [party for party in others if not has_its_lock(party, pids)]
    if not doing or any(party.group not in (*COMMUNICATION, "init", "idle") for party in waiting):
        return None
    first = doing[0]
    same = len({one.what for one in doing}) == 1
    work = first.what if same else f"{first.what}, for example {who([first.party])}"
    summary = (
        f"{start(who(busy))} {verb(busy, 'is', 'are')} slow, not stuck: {verb(busy, 'it', who(busy[:1]))} {work} "
        f"({first.proof}) in {where(first.party)}."
    )
    if others:
        summary += f" {start(who(others))} {verb(others, 'waits', 'wait')} for {'it' if len(busy) == 1 else 'them'}."
    shown = tuple(Evidence(f"{who([one.party])} {one.what}: {one.proof}", one.party.index) for one in doing[:6])
    return Candidate(
        cause="not-a-hang",
        confidence="medium",
        summary=summary,
        victims=tuple(others),
        evidence=(*shown, *evidence_of(busy[:3], others)),
    )


def has_its_lock(party: Party, pids: Collection[Optional[int]]) -> bool:
    """Whether one of these processes has the lock that is a file, which the party asks for again and again."""
    own = [one.processes for one in party.process.peers if one.thread == party.lwp and one.lock]
    return any(not isinstance(one, Missing) and bool(one) and set(one) <= set(pids) for one in own)


def builds_under_lock(view: JobView) -> Optional[Candidate]:
    """Some provably work, and others ask for a lock that is a file again and again: it may be left behind, or may be of
    those who work."""
    if view.gone or view.unseen or view.snapshot.absent or view.of("fatal") or view.threads_as_ranks:
        return None
    tries = [party for party in view.parties if party.judged.rule in FILE_LOCKS]
    doing = [one for one in map(_doing, parties_without(view.parties, tries)) if one is not None]
    busy = [one.party for one in doing]
    others = parties_without(parties_without(view.parties, tries), busy)
    if not tries or not doing or any(party.group not in (*COMMUNICATION, "init", "idle") for party in others):
        return None
    summary = (
        f"It is not clear yet whether anything hangs: {who(tries)} {verb(tries, 'waits', 'wait')} in "
        f"{closed(where(tries[0]))} for a lock that is a file, and {who(busy)} {verb(busy, 'works', 'work')}: "
        f"{who(busy[:1])} {doing[0].what} ({doing[0].proof}). The lock may be theirs, or left behind."
    )
    return not_clear(view, summary, evidence_of(busy[:3], [*tries, *others]), tries)


def doubt_slow_work(best: Candidate) -> Candidate:
    """A rank that is in the midst of slow work is not surely missing where nobody counted what it does, or where one of
    its children works."""
    if best.cause != "missing-rank" or best.confidence != "high":
        return best
    for party in best.culprits:
        row = next((row for row, function, file, _ in _ROWS if row.file and party.is_inside(function, file)), None)
        if row is not None and party.process.activity is None and party.group == "elsewhere":
            reason = f" {start(who([party]))} {row.doing}, and its progress was not measured: it may only be slow."
            return dataclasses.replace(best, confidence="medium", summary=best.summary + reason)
        child = busy_child(party)
        if child is not None and party.kind in ("ipc-queue", "condvar-idle", "io"):
            reason = f" Its child, pid {child.pid} ({child.name}), used {child.cpu:.0%} of a core: it may only be slow."
            return dataclasses.replace(best, confidence="medium", summary=best.summary + reason)
    return best


def moves_much(activity: Activity) -> bool:
    """Whether its process reads or writes much."""
    moved = max(activity.read_bytes or 0, activity.written_bytes or 0)
    return moved >= activity.seconds * MOVED_PER_SECOND


def busy_child(party: Party) -> Optional[Child]:
    """A process below it that works."""
    activity = party.process.activity
    return next((one for one in activity.children if one.cpu >= CHILD_CPU), None) if activity is not None else None


def is_at_work(party: Party) -> bool:
    """Whether the kernel's counters show that it works on."""
    return _doing(party) is not None


def _pages(view: JobView) -> Candidate:
    """Ranks that could not be stopped, because they sleep uninterruptibly until their pages come."""
    labels = ", ".join(process.label for process in view.unseen[:4])
    proof = _faults(view.unseen[0].activity)
    summary = (
        f"{start(labels)} could not be read, and the kernel counts waits for pages that are not in memory "
        f"({proof}). That is slow, not stuck."
    )
    shown = tuple(Evidence(f"{one.label}: {_faults(one.activity)}", one.index) for one in view.unseen[:6])
    return Candidate(
        cause="not-a-hang", confidence="low", summary=summary, evidence=(*shown, *evidence_of((), view.parties))
    )


def _faults(activity: Optional[Activity]) -> str:
    """That a process waits for its pages, in words with the count; "" when it does not."""
    faults = (activity.major_faults or 0) if activity is not None else 0
    if activity is None or activity.seconds <= 0 or faults / activity.seconds < FAULTS_PER_SECOND:
        return ""
    swapped = activity.swapped_bytes or 0
    more = f", {swapped / 2**20:,.0f} MiB are swapped out" if swapped else ""
    return f"{faults:,} major page faults in {activity.seconds:.1f} s{more}"


def _doing(party: Party) -> Optional[_CountedWork]:
    activity = party.process.activity
    if activity is None or activity.seconds <= 0:
        return None
    if _faults(activity) and party.group not in COMMUNICATION:
        return _CountedWork(party, "waits for pages that are not in memory", _faults(activity))
    for row, function, file, children in _ROWS:
        on_stack = bool(row.file) and party.is_inside(function, file)
        if party.group in COMMUNICATION and not (on_stack and _launches_from_the_host(party)):
            continue
        counted = (
            _computes(party, function, file)
            if row.innermost
            else _counter_proof(party, activity, row, on_stack, children)
        )
        if counted:
            return _CountedWork(party, row.doing, counted)
    moved = _moved(_its_bytes(party, activity), activity.seconds)
    return _CountedWork(party, "reads or writes", f"{moved} moved") if moved else None


def _its_bytes(party: Party, activity: Activity) -> int:
    """What the thread that decides has read or written, or what it waits for other threads of its process to do."""
    own_sleep = party.judged.rule in OWN_SLEEPS
    if party.kind == "condvar-idle" and not own_sleep:
        return max(activity.read_bytes or 0, activity.written_bytes or 0)
    if party.thread is None or not has_run(party.thread):
        return 0
    if party.kind == "io":
        return max(activity.read_bytes or 0, activity.written_bytes or 0)
    # A thread asks for the GIL again and again while it works.
    return activity.own_bytes or 0 if party.kind in (*OF_ITS_OWN, "gil") or own_sleep else 0


def _moved(count: Optional[int], seconds: float) -> str:
    """`300 MiB in 2.0 s`; "" for what is next to nothing."""
    return f"{count / 2**20:,.0f} MiB in {seconds:.1f} s" if count and count / seconds >= MOVED_PER_SECOND else ""


def _computes(party: Party, function: Pattern[str], file: Pattern[str]) -> Optional[str]:
    """That a thread of the rank is busy inside such a library: the one that decides, or one that it waits for."""
    waits = party.kind == "condvar-idle" and party.judged.rule not in OWN_SLEEPS
    for thread in party.process.threads if waits else filter(None, (party.thread,)):
        inner = next((frame for frame, one in zip(thread.calls, known_frames(thread.calls)) if not one.system), None)
        if inner is not None and inner.is_in(function, file) and (thread.cpu or 0.0) >= BUSY:
            return (
                f"{'its thread' if thread is party.thread else f'thread {thread.id}'} used {thread.cpu:.0%} of a core"
            )
    return None


def _launches_from_the_host(party: Party) -> bool:
    """Launching, and not inside the device's libraries: there a spinning thread proves nothing."""
    native = [frame.library for frame in party.calls if frame.language == "native" and frame.library]
    return party.group == "launch" and bool(native) and not any(_DEVICE.match(name) for name in native)


def _counter_proof(
    party: Party, activity: Activity, row: SlowWork, on_stack: bool, children: Pattern[str]
) -> Optional[str]:
    """The counter that shows the work of a row, in words; None when none does."""
    if "child" in row.proof and (on_stack or not row.file):
        for child in activity.children:
            if child.cpu >= CHILD_CPU and (on_stack or children.fullmatch(child.name)):
                return f"child process {child.name} used {child.cpu:.0%} of a core"
    if not on_stack:
        return None
    for name, verbed, count in (("read", "read", activity.read_bytes), ("write", "wrote", activity.written_bytes)):
        if name in row.proof and _moved(count, activity.seconds):
            return f"it {verbed} {_moved(count, activity.seconds)}"
    cpu = party.thread.cpu if party.thread is not None else None
    if "cpu" in row.proof and cpu is not None and cpu >= BUSY:
        return f"its thread used {cpu:.0%} of a core"
    return None


class Pace(NamedTuple):
    """How many items of a loop were done in so many seconds."""

    loop: Loop
    done: int
    seconds: float

    @property
    def ends_in(self) -> str:
        """In how long the loop ends at this pace, such as `3.2 hours`."""
        seconds = self.loop.left * self.seconds / self.done
        unit = next(((size, name) for size, name in _LONG if seconds >= 2 * size), (1.0, "s"))
        return f"{seconds / unit[0]:.{0 if unit[1] == 's' else 1}f} {unit[1]}"


def pace_of(view: JobView, party: Party) -> Optional[Pace]:
    """Of a thread that computes: the pace of the outermost loop that has counted down since an earlier look. Who sleeps
    in a loop may only look again and again for what others do."""
    now = party.thread
    if now is None or now.state != "R" or now.sleeps is not None or not now.loops:
        return None
    for look in view.before:
        then = look.same_party(party)
        seconds = (view.snapshot.taken_at or 0.0) - (look.snapshot.taken_at or 0.0)
        if then is None or then.thread is None or seconds <= 0:
            continue
        left = {(one.function, one.iterator): one.left for one in then.thread.loops}
        for loop in reversed(now.loops):
            done = left.get((loop.function, loop.iterator), 0) - loop.left
            if done > 0:
                return Pace(loop, done, seconds)
    return None


def counts_down(view: JobView, waiting: Sequence[Party], busy: Sequence[Party]) -> Optional[Candidate]:
    """All that are busy go through loops of so many items each; the others wait for them."""
    paces = [pace_of(view, one) for one in busy]
    first = paces[0] if paces else None
    if first is None or None in paces:
        return None
    summary = (
        f"{start(who(busy[:1]))} computes in {where(busy[0])}, and goes through a loop in {first.loop.function}(): "
        f"{first.done:,} items in {first.seconds:.1f} s, {first.loop.left:,} are left. At this pace the loop ends in "
        f"{first.ends_in}."
    )
    summary += f" {start(who(waiting))} {verb(waiting, 'waits', 'wait')} for it in {what(waiting)}."
    return only_slow(summary, waiting, busy)


def only_slow(summary: str, waiting: Sequence[Party], busy: Sequence[Party]) -> Candidate:
    """Some wait for others, of which nothing counted shows that they get on."""
    return Candidate(
        cause="not-a-hang",
        confidence="low",
        summary=summary,
        victims=tuple(waiting),
        evidence=evidence_of(busy, waiting),
    )


PATTERNS = (works_on, builds_under_lock)
