"""One file read once: the collectives of its rank, and what the rank did before each of them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple

from gdbext.model.trace import Shares
from gdbext.traces.event_reader import Contents, blocks
from gdbext.traces.first_pass import COMMUNICATION, COPY, OPERATOR, Calls, Collected, Collector, Key, Work, by_start
from gdbext.traces.trace_files import host_in, labels_of, rank_in

_GAP = 50.0  # microseconds without work from which the host is asked what it did
_COVERS = 0.5  # part of a gap that an event of the host must cover to be its reason


@dataclass
class Before:
    """What a rank did between two collectives, by position in `RankTrace.order`. Microseconds."""

    busy: array[float] = field(default_factory=lambda: array("d"))
    copying: array[float] = field(default_factory=lambda: array("d"))
    longest: array[float] = field(default_factory=lambda: array("d"))
    longest_name: array[int] = field(default_factory=lambda: array("i"))
    idle: array[float] = field(default_factory=lambda: array("d"))
    host_name: array[int] = field(default_factory=lambda: array("i"))  # of the longest gap, -1 for nothing


@dataclass
class RankTrace:
    """What is kept of a file."""

    path: str
    rank: Optional[int]
    labels: Dict[str, int]
    host: Optional[str]
    pid: Optional[int]
    world_size: Optional[int]
    base_us: Optional[float]  # what times are relative to, since 1970; None where they are absolute
    events: int
    problems: List[str]
    lost: bool
    first: float
    last: float
    names: List[str] = field(default_factory=list)
    calls: Dict[Key, Calls] = field(default_factory=dict)
    before: Dict[Key, Before] = field(default_factory=dict)
    shares: Optional[Shares] = None
    steps: List[Tuple[int, float, float]] = field(default_factory=list)
    pids: List[Any] = field(default_factory=list)
    keys: Dict[str, Any] = field(default_factory=dict)
    on_host: bool = False  # its collectives are those of a CPU backend
    size: int = 0

    @property
    def name(self) -> Tuple[Any, ...]:
        """Who it is: two files with the same are one rank twice."""
        return (tuple(sorted(self.labels.items())), self.rank if not self.labels else None)


def read_rank(path: str, causes: bool = True) -> Tuple[RankTrace, Collected]:
    """Read a file. `causes`: also what happened before each collective."""
    contents = Contents()
    collector = Collector(causes)
    try:
        with open(path, "rb") as file:
            for events in blocks(file, contents):
                collector.take(events)
    except OSError as error:
        contents.problems.append(f"it cannot be read: {error.strerror or error}")
    return finished(path, contents, collector.result, causes)


def finished(path: str, contents: Contents, found: Collected, causes: bool) -> Tuple[RankTrace, Collected]:
    """The trace of a rank, out of what was read of it in any format."""
    rank, labels = labels_of(path)
    said, world = rank_in(contents.keys)
    base = contents.keys.get("baseTimeNanoseconds")
    trace = RankTrace(
        path=path,
        rank=said if said is not None else rank,
        labels=labels,
        host=host_in(path, contents.keys),
        pid=_process(found),
        world_size=world,
        base_us=base / 1000
        if isinstance(base, (int, float)) and not isinstance(base, bool) and 0 <= base < 1e19
        else None,
        events=contents.events,
        problems=contents.problems + _trace_problems(found),
        lost=not contents.events,
        first=found.first,
        last=found.last,
        names=found.names,
        calls=found.calls,
        steps=sorted(found.steps, key=lambda step: step[1]),
        pids=[pid for pid, _ in found.pids.most_common(1000) if isinstance(pid, (int, str))],
        keys=contents.keys,
        size=contents.size,
    )
    trace.on_host = not found.device.start and bool(found.calls)
    _name_exchanges(found)
    for calls in trace.calls.values():
        _sort(calls)
    if causes:
        _look_back(trace, found)
    return trace, found


def _name_exchanges(found: Collected) -> None:
    """An all-to-all of old releases is a kernel SendRecv: it is one where the host launched no sends and receives."""
    said = set(found.launched)
    pairs = any(one.startswith(("nccl:send", "nccl:recv", "nccl:coalesced")) for one in said)
    for kind, group, members in list(found.calls):
        if kind == "send-recv":
            calls = found.calls.pop((kind, group, members))
            if not pairs and any("all_to_all" in one for one in said):
                found.calls.setdefault(("all-to-all", group, members), calls)


def _process(found: Collected) -> Optional[int]:
    """The process that wrote the file: the number that most events carry and that is no device."""
    return next((pid for pid, _ in found.pids.most_common(64) if isinstance(pid, int) and pid > 64), None)


def _trace_problems(found: Collected) -> List[str]:
    said = []
    if found.invalid:
        said.append(f"{found.invalid} slices have no time that is a number and were left out")
    if found.negative:
        said.append(f"{found.negative} slices end before they begin and were not judged")
    if found.unknown:
        kinds = ", ".join(repr(one) for one in sorted(found.unknown)[:5])
        said.append(f"{sum(found.unknown.values())} events have an unknown phase ({kinds})")
    if found.device.left_out:
        said.append(f"{found.device.left_out} slices beyond the first {len(found.device.start)} were not judged")
    return said


def _sort(calls: Calls) -> None:
    order = by_start(calls.start)
    if not isinstance(order, range):
        for name in ("start", "end", "size", "seq"):
            values = getattr(calls, name)
            setattr(calls, name, array(values.typecode, (values[at] for at in order)))


def _look_back(trace: RankTrace, found: Collected) -> None:
    """Fill `before` and `shares` by one sweep over the work in order of time."""
    work = found.device if found.device.start else found.host
    order = by_start(work.start)
    if not found.device.start:
        order = _outermost(work, order)
    trace.shares = _shares(work, order, trace)
    merged = sorted(
        (calls.start[at], calls.end[at], key, at)
        for key, calls in trace.calls.items()
        for at in range(len(calls.start))
    )
    for key, calls in trace.calls.items():
        one = trace.before[key] = Before()
        for name in ("busy", "copying", "longest", "longest_name", "idle", "host_name"):
            values = getattr(one, name)
            setattr(one, name, array(values.typecode, [0]) * len(calls.start))
    notable = _LongEvents(found.notable)
    own = array("i", (at for at in order if work.sort[at] != COMMUNICATION))
    starts = array("d", (work.start[at] for at in own))
    begin = trace.first
    for start, end, key, at in merged:
        _segment(trace.before[key], at, (begin, start), work, own, starts, notable)
        begin = max(begin, end)


def _segment(
    into: Before,
    at: int,
    span: Tuple[float, float],
    work: Work,
    own: Sequence[int],
    starts: Sequence[float],
    notable: _LongEvents,
) -> None:
    """What happened in `span`, which may be empty: a collective behind another that still runs."""
    begin, end = span
    position = max(0, bisect_right(starts, begin) - 1)
    busy = copying = longest = idle = 0.0
    name, widest, gap_at, covered = -1, 0.0, begin, begin
    while position < len(own):
        one = own[position]
        start = work.start[one]
        if start >= end:
            break
        stop = min(start + work.length[one], end)
        position += 1
        if stop <= begin:
            continue
        start = max(start, begin)
        if start > covered:
            idle += start - covered
            if start - covered > widest:
                widest, gap_at = start - covered, covered
        fresh = max(0.0, stop - max(start, covered))
        busy += fresh
        if work.sort[one] == COPY:
            copying += fresh
        if stop - start > longest:
            longest, name = stop - start, work.name[one]
        covered = max(covered, stop)
    if end > covered:
        idle += end - covered
        if end - covered > widest:
            widest, gap_at = end - covered, covered
    into.busy[at], into.copying[at], into.idle[at] = busy, copying, idle
    into.longest[at], into.longest_name[at] = longest, name
    into.host_name[at] = notable.within(gap_at, gap_at + widest) if widest > _GAP else -1


class _LongEvents:
    """Long events of the host, asked by a span of time."""

    def __init__(self, work: Work) -> None:
        order = by_start(work.start)
        self._start = array("d", (work.start[at] for at in order))
        self._length = array("d", (work.length[at] for at in order))
        self._name = array("i", (work.name[at] for at in order))
        self._reach = max(self._length, default=0.0)

    def within(self, begin: float, end: float) -> int:
        """The shortest event that covers most of the span; -1 where none does."""
        best, shortest = -1, float("inf")
        position = bisect_right(self._start, end) - 1
        for _ in range(2000):
            if position < 0 or self._start[position] < begin - self._reach:
                break
            start, length = self._start[position], self._length[position]
            if min(end, start + length) - max(begin, start) > _COVERS * (end - begin) and length < shortest:
                best, shortest = self._name[position], length
            position -= 1
        return best


def _outermost(work: Work, order: Sequence[int]) -> List[int]:
    """Operators that are not called by another one of their thread; collectives all."""
    covered: Dict[int, float] = {}
    found = []
    for at in order:
        if work.sort[at] == OPERATOR:
            end = work.start[at] + work.length[at]
            if end <= covered.get(work.lane[at], float("-inf")):
                continue
            covered[work.lane[at]] = end
        found.append(at)
    return found


def _shares(work: Work, order: Sequence[int], trace: RankTrace) -> Optional[Shares]:
    """Union of compute and of communication over the window, and of both."""
    window = trace.last - trace.first
    if not work.start or window <= 0:
        return None
    until = {True: float("-inf"), False: float("-inf"), None: float("-inf")}
    covered = {True: 0.0, False: 0.0, None: 0.0}
    for at in order:
        start, end = work.start[at], work.start[at] + work.length[at]
        for part in (work.sort[at] == COMMUNICATION, None):
            if end > until[part]:
                covered[part] += end - max(start, until[part])
                until[part] = end
    compute, communication, both = covered[False] / window, covered[True] / window, covered[None] / window
    compute, both = min(1.0, compute), min(1.0, both)
    exposed = max(0.0, both - compute)
    return Shares(compute, exposed, max(0.0, communication - exposed), max(0.0, 1.0 - both))
