"""Two looks at the same job: whose work went on in between, and who provably stood still.

Two kinds of looks are compared: snapshots (`earlier`), by their calls and captured values, and the two copies of one
snapshot (`ThreadStack.still`, `switches`), byte by byte.
"""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import ThreadStack
from gdbext.model.verdict import Diagnosis, ProcessJudgement

_Place = Tuple[Tuple[Optional[str], Optional[int]], ...]


def moved(earlier: JobSnapshot, later: JobSnapshot, judged: Tuple[ProcessJudgement, ...]) -> Tuple[int, ...]:
    """Indexes of processes whose decisive thread (of the later look) was elsewhere before, or whose counters changed.

    Only the deciding frame and its callers are compared: inside it a polling driver never looks the same twice.
    """
    before = {_identity(process): process for process in earlier.processes}
    result: List[int] = []
    for process, judgement in zip(later.processes, judged):
        old = before.get(_identity(process))
        if old is not None and judgement.wait.thread is not None and _differs(old, process, judgement):
            result.append(process.index)
    return tuple(result)


def seen_twice(earlier: JobSnapshot, later: JobSnapshot, judged: Tuple[ProcessJudgement, ...]) -> Tuple[int, ...]:
    """Indexes of processes whose decisive thread has frames in both looks: the others cannot be compared."""
    before = {_identity(process): process for process in earlier.processes}
    result: List[int] = []
    for process, judgement in zip(later.processes, judged):
        old = before.get(_identity(process))
        unread = {thread.id for one in (old, process) if one is not None for thread in one.threads if thread.unread}
        if judgement.wait.thread not in unread and (judgement.wait.thread is not None or not unread):
            result.append(process.index)
    return tuple(result)


def between_copies(
    snapshot: JobSnapshot, judged: Tuple[ProcessJudgement, ...]
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """Indexes of processes whose decisive thread (went on, stood still) between the two copies of a look.

    It went on when the stack of a caller of the engine's waiting function changed: that call returned. The frame of
    the waiting function itself proves nothing, it may poll. It stood still when it did not run at all. Everything
    between the two is in neither list.
    """
    went: List[int] = []
    stood: List[int] = []
    for process, judgement in zip(snapshot.processes, judged):
        thread = next((one for one in process.threads if one.id == judgement.wait.thread), None)
        if thread is None or thread.still is None:
            continue
        if thread.still == 0 and thread.switches == 0:
            stood.append(process.index)
        elif thread.still > _polls_up_to(judgement):
            went.append(process.index)
    return tuple(went), tuple(stood)


def _polls_up_to(judgement: ProcessJudgement) -> int:
    """Number of the outermost frame that a wait changes by itself, plus one."""
    one = next(thread for thread in judgement.threads if thread.id == judgement.wait.thread)
    deciding = judgement.wait.frame or 0
    return max(deciding + 1, one.engine_frame or 0) + 1


def wants_second_look(diagnosis: Diagnosis) -> bool:
    """Whether one look left open if the job goes on: nothing sets the ranks apart, or one of them computes."""
    verdict = diagnosis.verdict
    return verdict.cause in ("unknown", "not-a-hang") and verdict.confidence == "low" and len(diagnosis.processes) > 1


def _identity(process: RankSnapshot) -> Tuple[object, ...]:
    return (process.host, process.pid, process.rank) if process.pid is not None else (process.index,)


def _differs(old: RankSnapshot, new: RankSnapshot, judged: ProcessJudgement) -> bool:
    threads: Dict[str, ThreadStack] = {thread.id: thread for thread in old.threads}
    was = threads.get(judged.wait.thread or "")
    now = next((thread for thread in new.threads if thread.id == judged.wait.thread), None)
    if was is None or now is None:
        return True
    start = judged.wait.frame or 0
    depth = len(now.frames) - start
    return _calls(was, depth) != _calls(now, depth) or _values(was) != _values(now)


def _calls(thread: ThreadStack, depth: int) -> _Place:
    """The outermost `depth` calls."""
    return tuple((frame.function, frame.line) for frame in thread.frames[len(thread.frames) - depth :] if depth > 0)


def _values(thread: ThreadStack) -> List[object]:
    return [value for frame in thread.frames for _, value in sorted(frame.captures.items())]
