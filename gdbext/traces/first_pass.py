"""One pass over the events of a file: what diagnosis and alignment need of them, in arrays."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Dict, List, Optional, Sequence, Tuple
from typing import Counter as Counts

from gdbext.knowledge.traces import (
    COLLECTIVES,
    DEVICE_SPANS,
    DTYPE_BYTES,
    GPU_CATEGORIES,
    HOST_CATEGORIES,
    HOST_WORK,
    STEP,
)
from gdbext.traces.trace_event import UNSET, Event, arguments, number

KERNEL, COPY, COMMUNICATION, OPERATOR = 1, 2, 3, 4
_HOST = 5
ANNOTATION = 6  # spans that may hold others: of the host, and over the kernels of a stream
MOST_WORK = 6_000_000  # slices on devices that are kept of one file: some 140 MB
MOST_HOST = 400_000
MOST_SPANS = 500_000  # slices of the host for which lanes are made: some 60 MB
_ON_DEVICE = (KERNEL, COPY)
_SORTED = 100_000  # slices sorted at a time
_SHORTEST = 20.0  # microseconds of an operator of the host that is kept
_FLOWS = ("s", "f")
_PHASES = frozenset("XBEMsftibnePCSTFpNODvVRac()")
_ROWS = tuple((row, re.compile(row.name)) for row in COLLECTIVES)
_PID = attrgetter("pid")
_STEP = re.compile(STEP)
_NOTABLE = re.compile("|".join(f"(?:{row.name})" for row in HOST_WORK))


@dataclass
class Calls:
    """The collectives of one rank in one group, by start."""

    start: array[float] = field(default_factory=lambda: array("d"))
    end: array[float] = field(default_factory=lambda: array("d"))
    size: array[int] = field(default_factory=lambda: array("q"))  # bytes, -1 where it is not said
    seq: array[int] = field(default_factory=lambda: array("q"))  # -1 where it is not said


@dataclass
class Work:
    """Slices of a device, or of the host where there is no device."""

    start: array[float] = field(default_factory=lambda: array("d"))
    length: array[float] = field(default_factory=lambda: array("d"))
    name: array[int] = field(default_factory=lambda: array("i"))
    lane: array[int] = field(default_factory=lambda: array("i"))
    sort: array[int] = field(default_factory=lambda: array("b"))
    left_out: int = 0

    def add(self, start: float, length: float, name: int, lane: int, sort: int) -> None:
        if len(self.start) >= MOST_WORK:
            self.left_out += 1
            return
        self.start.append(start)
        self.length.append(length)
        self.name.append(name)
        self.lane.append(lane)
        self.sort.append(sort)


Key = Tuple[str, str, str]  # kind, group, members


@dataclass
class Collected:
    """What one pass found."""

    names: List[str] = field(default_factory=list)
    device: Work = field(default_factory=Work)
    host: Work = field(default_factory=Work)  # operators of the host, for jobs without a device
    notable: Work = field(default_factory=Work)  # what may explain a gap
    spans: Optional[Work] = field(default_factory=Work)  # all slices of the host, for lanes; None where they are many
    calls: Dict[Key, Calls] = field(default_factory=dict)
    lanes: List[Tuple[Any, Any]] = field(default_factory=list)  # (pid, tid)
    steps: List[Tuple[int, float, float]] = field(default_factory=list)
    pids: Counts[Any] = field(default_factory=Counter)
    process_names: Dict[Any, str] = field(default_factory=dict)
    thread_names: Dict[Tuple[Any, Any], str] = field(default_factory=dict)
    first: float = float("inf")
    last: float = float("-inf")
    invalid: int = 0  # slices without a time that is a number
    negative: int = 0  # slices with a negative duration
    unknown: Counts[str] = field(default_factory=Counter)  # phases nobody knows
    launched: Counts[str] = field(default_factory=Counter)  # what the host called them: "nccl:all_to_all", ...


class Collector:
    """Takes events; `result` is what they were."""

    def __init__(self, causes: bool = True) -> None:
        self.result = Collected()
        self._causes = causes  # whether the work of the host is wanted too
        self._sorts: Dict[Any, int] = {}
        self._ids: Dict[str, int] = {}
        self._kinds: Dict[Tuple[str, int], Optional[Tuple[str, bool]]] = {}
        self._lane_ids: Dict[Tuple[Any, Any], int] = {}

    def take(self, events: Sequence[Event]) -> None:
        """The next events of the file."""
        found, sorts, pids = self.result, self._sorts, self.result.pids
        first, last = found.first, found.last
        spans = not self._causes
        for event in events:
            if event.ph != "X":
                if event.ph not in _FLOWS:
                    self._other(event)
                continue
            ts, length = event.ts, event.dur
            if type(ts) is not float or type(length) is not float or not -1e18 < ts + length < 1e18:
                ts, length = number(ts), 0.0 if length is UNSET else number(length)
                if ts is None or length is None:
                    found.invalid += 1
                    continue
            if ts < first:
                first = ts
            if ts + length > last:
                last = ts + length
            try:
                sort = sorts[event.cat]
            except (KeyError, TypeError):
                sort = self._sort(event)
            if length < 0:
                found.negative += 1
                continue
            if spans and (sort == 0 or sort == _HOST):
                self._span(event, ts, length)
            if sort == 0:
                continue
            if sort in _ON_DEVICE:
                self._device(event, ts, length, sort)
            elif sort == ANNOTATION:
                self.result.device.add(ts, length, 0, self._lane((event.pid, event.tid)), sort)
            elif self._causes or event.name[:5] == "gloo:" or sort == _HOST:
                self._on_host(event, ts, length)
        found.first, found.last = first, last
        try:
            pids.update(map(_PID, events))
        except TypeError:  # one of them is a list
            pids.update(repr(event.pid) for event in events)

    def _sort(self, event: Event) -> int:
        cat = event.cat
        if not isinstance(cat, str):  # Ascend's trace_view.json has no categories
            return KERNEL if without_category(event) else 0
        lower = cat.lower()
        known = {"kernel": KERNEL, "copy": COPY}.get(GPU_CATEGORIES.get(lower, ""), 0)
        if not known and lower in HOST_CATEGORIES:
            known = _HOST
        if lower in DEVICE_SPANS and not self._causes:
            known = ANNOTATION
        self._sorts[cat] = known
        return known

    def _other(self, event: Event) -> None:
        if event.ph == "M" and event.name in ("process_name", "thread_name"):
            name = arguments(event).get("name")
            threads = event.name == "thread_name"
            names: Dict[Any, str] = self.result.thread_names if threads else self.result.process_names
            key = (event.pid, event.tid) if threads else event.pid
            if isinstance(name, str) and len(names) < 100_000 and _hashable(key):
                names[key] = name[:256]
        elif event.ph not in _PHASES:
            self.result.unknown[event.ph[:8]] += 1

    def _device(self, event: Event, ts: float, length: float, sort: int) -> None:
        name = event.name if isinstance(event.name, str) else ""
        try:
            kind = self._kinds[name, sort]
        except KeyError:
            kind = self._kind(name, "device", sort)
        if kind is not None:
            sort = COMMUNICATION
            self._call(event, kind[0], ts, length)
        self.result.device.add(ts, length, self._id(name), self._lane((event.pid, event.tid)), sort)

    def _span(self, event: Event, ts: float, length: float) -> None:
        spans = self.result.spans
        if spans is None:
            return
        if len(spans.start) >= MOST_SPANS:
            self.result.spans = None
            return
        spans.add(ts, length, 0, self._lane((event.pid, event.tid)), ANNOTATION)

    def _on_host(self, event: Event, ts: float, length: float) -> None:
        name = event.name if isinstance(event.name, str) else ""
        if name.startswith("gloo:"):
            kind = self._kind(name, "host", _HOST)
            if kind is not None and kind[1]:
                self._call(event, kind[0], ts, length)
            if kind is not None:
                self.result.host.add(ts, length, self._id(name), 0, COMMUNICATION)
            return
        if name.startswith("nccl:"):
            self.result.launched[name[:40]] += 1
            return
        if length < _SHORTEST:
            return
        step = _STEP.match(name)
        if step:
            if len(self.result.steps) < 100_000:
                self.result.steps.append((int(step["number"][:9]), ts, ts + length))
            return
        if not self._causes or name == "step" or name.startswith(("c10d::", "record_param_comms")):
            return
        operator = event.cat == "cpu_op" or event.cat == "Operator"
        if operator and not self.result.device.start:
            self.result.host.add(ts, length, self._id(name), self._lane((event.pid, event.tid)), OPERATOR)
        if len(self.result.notable.start) < MOST_HOST and (not operator or _NOTABLE.search(name)):
            self.result.notable.add(ts, length, self._id(name), 0, _HOST)

    def _kind(self, name: str, on: str, sort: int) -> Optional[Tuple[str, bool]]:
        found = next(((row.kind, row.together) for row, rx in _ROWS if row.on == on and rx.search(name)), None)
        if sort == COPY:
            found = None
        if len(self._kinds) < 100_000:
            self._kinds[name, sort] = found
        return found

    def _call(self, event: Event, kind: str, ts: float, length: float) -> None:
        said = arguments(event)
        if kind == "send-recv" and "all" in str(said.get("Collective name", "")).lower():
            kind = "all-to-all"
        group = str(said.get("Process Group Name", said.get("comms_id", "")))[:80]
        members = str(said.get("Process Group Ranks", ""))[:4000].replace(" ", "")
        calls = self.result.calls.setdefault((kind, group, members), Calls())
        if len(calls.start) >= MOST_WORK:
            return
        calls.start.append(ts)
        calls.end.append(ts + length)
        calls.size.append(_size(said))
        seq = said.get("Seq", said.get("seq"))
        calls.seq.append(seq if isinstance(seq, int) and 0 <= seq < 1 << 62 else -1)

    def _id(self, name: str) -> int:
        found = self._ids.get(name)
        if found is None:
            if len(self.result.names) >= 200_000:
                return self._ids.setdefault("(other)", 0)
            found = self._ids[name] = len(self.result.names)
            self.result.names.append(name[:400])
        return found

    def _lane(self, key: Tuple[Any, Any]) -> int:
        try:
            return self._lane_ids[key]
        except KeyError:
            pass
        except TypeError:  # a list, or worse
            key = (repr(key[0]), repr(key[1]))
        found = self._lane_ids.setdefault(key, len(self.result.lanes))
        if found == len(self.result.lanes):
            self.result.lanes.append(key)
        return found


def without_category(event: Event) -> bool:
    """Whether a slice is work of an Ascend device: its trace_view.json has no categories."""
    if isinstance(event.name, str) and event.name.startswith("hcom_"):
        return True
    said = event.args
    text = b"" if said is UNSET else repr(said).encode() if isinstance(said, dict) else bytes(said)
    return b"Task Type" in text or b"Task Id" in text


def _hashable(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_hashable, value))
    return isinstance(value, (int, str, float, type(None))) or value is UNSET


def _size(said: Dict[str, Any]) -> int:
    """Bytes of a message, -1 where the event does not say."""
    count = said.get("In msg nelems", said.get("in_msg_nelems"))
    if isinstance(count, int) and 0 <= count < 1 << 50:
        return count * DTYPE_BYTES.get(str(said.get("dtype", "")).lower(), 1)
    shapes = said.get("Input Dims")
    total = 0
    if isinstance(shapes, list):
        for shape in shapes[:1000]:
            if not isinstance(shape, list) or not all(isinstance(one, int) for one in shape):
                return -1
            product = 1
            for one in shape:
                product *= one
            total += product
        return min(total, 1 << 60)
    return -1


def by_start(starts: Sequence[float]) -> Sequence[int]:
    """Positions in order of start. Files are nearly in order: where they are not, spans of time are sorted in turn."""
    if all(map(float.__le__, starts, starts[1:])):
        return range(len(starts))
    first, last = min(starts), max(starts)
    spans = [array("i") for _ in range(1 + len(starts) // _SORTED)]
    scale = (len(spans) - 0.001) / max(last - first, 1e-6)
    for at, start in enumerate(starts):
        spans[int((start - first) * scale)].append(at)
    order = array("i")
    for span in spans:
        order.extend(sorted(span, key=starts.__getitem__))
    return order
