"""All looks of a job as a timeline: what each thread was in at each look. A look stands until the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.stack import Frame, ThreadStack
from gdbext.model.verdict import Diagnosis
from gdbext.render.safe_text import clean, shorten
from gdbext.render.style import Style

MOST_THREADS, MOST_LOOKS = 4_000, 24
"""Threads of all ranks and looks, the threads that decide first."""
_ALONE = 1.0  # seconds that the last look stands where there is no other
_LONGEST = 400
_STYLE = Style()


@dataclass(frozen=True)
class ThreadLane:
    """A thread. `stacks`: by look, innermost call first; () where it was not seen or not read."""

    name: str
    id: str
    stacks: Tuple[Tuple[Frame, ...], ...]


@dataclass(frozen=True)
class RankLanes:
    """A process; the thread that decides is the first. `left_out`: threads without room."""

    name: str
    process: RankSnapshot
    threads: Tuple[ThreadLane, ...]
    left_out: int


@dataclass(frozen=True)
class Timeline:
    """`starts`: seconds since the first look, and where the last one ends."""

    starts: Tuple[float, ...]
    ranks: Tuple[RankLanes, ...]


def timeline(diagnosis: Diagnosis) -> Timeline:
    """Of the processes and threads of the last look."""
    snapshot = diagnosis.snapshot
    looks = (*snapshot.earlier, snapshot)[-MOST_LOOKS:]
    seen = [_threads(look) for look in looks]
    decides = {one.index: one.wait.thread for one in diagnosis.processes}
    most = max(MOST_THREADS // max(len(snapshot.processes), 1), 1)
    ranks = []
    for process in snapshot.processes:
        first = decides.get(process.index)
        ordered = sorted((one for one in process.threads if one.frames), key=lambda one: one.id != first)
        lanes = tuple(_lane(one, [look.get(process.identity, {}) for look in seen]) for one in ordered[:most])
        ranks.append(RankLanes(_name(process, diagnosis), process, lanes, max(len(ordered) - most, 0)))
    return Timeline(_starts(looks), tuple(ranks))


def function_of(frame: Frame) -> str:
    """Its name, fit for a file."""
    return _fit(frame.function) or "??"


def place_in(frame: Frame) -> Tuple[str, Optional[int]]:
    """Its file and the line, else its library."""
    place = _fit(frame.file or frame.module)
    return place, frame.line if frame.file and frame.line else None


def _fit(text: Optional[str]) -> str:
    return shorten(clean(text, _STYLE), _LONGEST, _STYLE)


def _threads(look: JobSnapshot) -> Dict[Tuple[object, ...], Dict[str, ThreadStack]]:
    return {process.identity: {one.id: one for one in process.threads} for process in look.processes}


def _lane(thread: ThreadStack, looks: Sequence[Mapping[str, ThreadStack]]) -> ThreadLane:
    found = [look.get(thread.id) for look in looks]
    name = _fit(thread.name) or "thread"
    stacks = tuple(tuple(one.calls) if one is not None else () for one in found)
    return ThreadLane(name, _fit(thread.id), stacks)


def _name(process: RankSnapshot, diagnosis: Diagnosis) -> str:
    """`rank 2 (pid 4712, node17), suspect`."""
    pid = f"pid {process.pid}" if process.pid is not None and process.is_named else ""
    details = ", ".join(filter(None, (pid, _fit(process.host))))
    suspect = ", suspect" if process.index in diagnosis.verdict.culprits else ""
    return f"{process.label}{f' ({details})' if details else ''}{suspect}"


def _starts(looks: Sequence[JobSnapshot]) -> Tuple[float, ...]:
    """By their times; where one has none, or they run backwards, a look takes a second."""
    times: List[Optional[float]] = [look.taken_at for look in looks]
    known = [one for one in times if one is not None]
    if len(known) < len(times) or any(later <= one for one, later in zip(known, known[1:])):
        return tuple(_ALONE * number for number in range(len(looks) + 1))
    starts = [one - known[0] for one in known]
    return (*starts, starts[-1] + (starts[-1] - starts[-2] if len(starts) > 1 else _ALONE))
