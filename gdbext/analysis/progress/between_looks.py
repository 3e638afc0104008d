"""Two looks at the same job: whose work went on in between, and who provably stood still.

Two kinds of looks are compared: snapshots (`earlier`), by their calls, captured values and counters, and the two copies
of one snapshot, byte by byte (`ThreadStack.still`, `left`) and by what the kernel counted (`switches`, `cpu`).
"""

from __future__ import annotations

from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.knowledge.causes.slow import NO_RATE
from gdbext.knowledge.frames.python.python_libraries import RESULTS_OF_OTHERS
from gdbext.knowledge.labels import BLOCKING, SLEEPING
from gdbext.knowledge.runtimes.system_calls import POLL
from gdbext.knowledge.runtimes.untimed_calls import ANSWERED_AT_ONCE
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import regex
from gdbext.model.verdict import ProcessJudgement, ThreadJudgement

_STOPS = 3  # turns that others' debuggers and freezers may have given a thread that sleeps in its collective
_LONG = 60_000  # milliseconds of a limit
_ANSWERED_AT_ONCE = regex(ANSWERED_AT_ONCE)
_Place = Tuple[Tuple[Optional[str], Optional[int]], ...]


def between_looks(
    earlier: JobSnapshot, later: JobSnapshot, judged: Tuple[ProcessJudgement, ...]
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Indexes of processes whose decisive thread (went on, was in the same calls and did not run) between two looks.

    It went on when it was elsewhere before, or when captured counts changed. Only the deciding frame and its callers
    are compared: inside it a polling driver never looks the same twice. A thread without frames in one of the looks
    cannot be compared, and is in neither list.
    """
    before = {process.identity: process for process in earlier.processes}
    went: List[int] = []
    unmoved: List[int] = []
    for process, judgement in zip(later.processes, judged):
        old = before.get(process.identity)
        unread = {thread.id for one in (old, process) if one is not None for thread in one.threads if thread.unread}
        if judgement.wait.thread in unread or (judgement.wait.thread is None and unread):
            continue
        if old is not None and judgement.wait.thread is not None and _differs(old, process, judgement):
            went.append(process.index)
        elif old is None or not ran_between(old, process, judgement.wait.thread):
            unmoved.append(process.index)
    return tuple(went), tuple(unmoved)


def ran_between(old: RankSnapshot, new: RankSnapshot, thread: Optional[str]) -> bool:
    """Whether a thread that slept through both looks has had a processor between them."""
    return turns_between(old, new, thread) != 0


def turns_between(old: RankSnapshot, new: RankSnapshot, thread: Optional[str]) -> int:
    """How often a thread that slept through both looks has had a processor between them."""
    turns = [one.turns for process in (old, new) for one in process.threads if one.id == thread]
    return turns[1][0] - turns[0][-1] if len(turns) == 2 and all(turns) else 0


def between_copies(
    snapshot: JobSnapshot, judged: Tuple[ProcessJudgement, ...]
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Indexes of processes whose decisive thread (went on, stood still) between the two copies of a look.

    It stood still when it did not run at all. Everything between the two is in neither list.
    """
    went: List[int] = []
    unmoved: List[int] = []
    for process, judgement in zip(snapshot.processes, judged):
        pairs = zip(process.threads, judgement.threads)
        thread, one = next((pair for pair in pairs if pair[0].id == judgement.wait.thread), (None, None))
        if thread is None or one is None or thread.still is None:
            continue
        if thread.still == 0 and not has_run(thread):
            unmoved.append(process.index)
        elif _went_on(thread, one) and not _starves(thread, judgement):
            went.append(process.index)
    return tuple(went), tuple(unmoved)


def _starves(thread: ThreadStack, judgement: ProcessJudgement) -> bool:
    """Whether it kept Python's GIL, which another thread waits for: it has not come back to code of Python, where it
    would have let it go."""
    return thread.gil is True and any(one.kind == "gil" for one in judgement.threads)


def has_run(thread: ThreadStack) -> bool:
    """Whether its counters rose between the two copies of a look: it had a processor for more than to be stopped."""
    return bool(thread.switches) or (thread.cpu or 0.0) >= NO_RATE


def _went_on(thread: ThreadStack, one: ThreadJudgement) -> bool:
    """Whether a call that does not return before something has come was over in the second copy.

    That is a blocking collective, and whatever called the engine's waiting function. What lies further in proves
    nothing: it may poll. A thread that sleeps in its collective does not run before it is woken.
    """
    if one.kind == "store-wait" and any(_ANSWERED_AT_ONCE.match(frame.function or "") for frame in thread.calls):
        return False
    deciding, limit = one.frame or 0, _polls_up_to(thread, max((one.frame or 0) + 1, one.engine_frame or 0))
    if one.rule in RESULTS_OF_OTHERS:  # the library's own code looks for signals now and then
        limit = max(limit, next((at for at, frame in enumerate(thread.calls) if frame.language == "python"), 0))
    over, changed = thread.left or 0, thread.still or 0
    if over >= limit or changed > limit:
        return True
    if not _for_all(one.kind, one.collective):
        return False
    if one.kind in BLOCKING and changed > _polls_up_to(thread, deciding):  # who called it went on
        return True
    if one.kind in SLEEPING and changed > 0 and has_run(thread):
        return True
    if thread.calls[deciding].language == "python":  # its return does not show, but that of what it had called
        return 0 < deciding <= over
    return one.kind in BLOCKING and over > deciding


def _polls_up_to(thread: ThreadStack, last: int) -> int:
    """Number of the outermost frame that a wait changes by itself, plus one; of its own is frame `last`."""
    frames = thread.frames
    # One call of the interpreter, or of a function with others inlined, has one place on the stack.
    while last + 1 < len(frames) and frames[last].sp is not None and frames[last + 1].sp == frames[last].sp:
        last += 1
    return last + 1


def _differs(old: RankSnapshot, new: RankSnapshot, judged: ProcessJudgement) -> bool:
    threads: Dict[str, ThreadStack] = {thread.id: thread for thread in old.threads}
    was = threads.get(judged.wait.thread or "")
    now = next((thread for thread in new.threads if thread.id == judged.wait.thread), None)
    if was is None or now is None:
        return True
    start = judged.wait.frame or 0
    depth = len(now.calls) - start
    asks = judged.wait.kind == "store-wait" and _only_asks_again(was, now)
    if not asks and (_calls(was, depth) != _calls(now, depth) or _values(was) != _values(now)):
        return True
    kind = judged.wait.kind
    if not (_for_all(kind, judged.wait.collective) or (kind == "store-wait" and _waits_long(was, now))):
        return False  # it may ask again and again
    woken = kind in SLEEPING and turns_between(old, new, now.id) > _STOPS
    return woken or returned_between(was, now, start)


def _for_all(kind: str, collective: Optional[str]) -> bool:
    """Whether it waits for a collective, also for one that the stack does not name, such as a reducer's: of a library
    that sleeps until it is done, whatever the wait had called or was called by does not change before."""
    return collective is not None or kind in SLEEPING


def _waits_long(*threads: ThreadStack) -> bool:
    """Whether they poll with a limit that is further off than two looks are apart."""
    calls = [one.syscall for one in threads]
    return all(call is not None and call[0] == POLL and _LONG <= call[3] < 1 << 31 for call in calls)


def returned_between(was: ThreadStack, now: ThreadStack, inside: int) -> bool:
    """Whether a call has returned between two looks that a Python frame further out than frame `inside` had made: while
    it lasts, that frame's local variables stay as they are."""
    outer = sum(frame.language == "python" for frame in now.calls[inside + 1 :])
    return marks_differ(was.marks[:outer], now.marks[:outer])


def marks_differ(was: Sequence[int], now: Sequence[int]) -> bool:
    """Whether the local variables of a Python frame are known to have changed; 0: they were not read."""
    return any(old and new and old != new for old, new in zip(was, now))


def _only_asks_again(was: ThreadStack, now: ThreadStack) -> bool:
    """Whether it sleeps for a moment in one look and asks in the other, in the same Python function, and no local
    variable is known to have changed: a loop over a counter of the store."""
    if (was.sleeps is None) == (now.sleeps is None) or not was.marks or marks_differ(was.marks, now.marks):
        return False
    calls = [[frame for frame in one.calls if frame.language == "python"] for one in (was, now)]
    functions = [[(frame.function, frame.file) for frame in one] for one in calls]
    lines = [[frame.line for frame in one[1:]] for one in calls]
    return functions[0] == functions[1] and lines[0] == lines[1]


def _calls(thread: ThreadStack, depth: int) -> _Place:
    """The outermost `depth` calls."""
    return tuple((frame.function, frame.line) for frame in thread.calls[len(thread.calls) - depth :] if depth > 0)


def _values(thread: ThreadStack) -> List[object]:
    captured = (value for frame in thread.calls for _, value in sorted(frame.captures.items()))
    return [value for value in captured if not isinstance(value, Missing)]
