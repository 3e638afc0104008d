"""The events of one rank as they stand in the merged trace: own pids, one clock, flows apart, lanes for overlaps."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Pattern, Sequence, Tuple

from gdbext.knowledge.traces import DEVICE_SPANS, GPU_CATEGORIES
from gdbext.model.trace import Clock
from gdbext.traces.first_pass import without_category
from gdbext.traces.trace_event import UNSET, Event, make_event, number, set_arguments

_BLOCK = 100_000  # pids of one rank
_FLOW = 10**11  # flow ids of one rank
_LANE = 1_000_000_000  # thread ids of one lane
_NUMBERS = (float, int)
_DEVICES = 64  # pids below are numbers of devices


@dataclass(frozen=True)
class Wanted:
    """What is left out: everything else is kept. Times are those of the file."""

    since: float = float("-inf")
    until: float = float("inf")
    threads: str = ""  # "gpu", "cpu", or a pattern searched in names of threads
    kernels: str = ""  # pattern searched in names of slices on devices

    @property
    def all(self) -> bool:
        return self == Wanted()


@dataclass
class Task:
    """One file to rewrite."""

    path: str
    index: int
    name: str  # "rank 3", "TP0 DP1"
    clock: Clock
    wanted: Wanted
    pids: List[Any] = field(default_factory=list)
    devices: List[Any] = field(default_factory=list)  # pids with work of a device
    process_names: Dict[Any, str] = field(default_factory=dict)
    thread_names: Dict[Tuple[Any, Any], str] = field(default_factory=dict)
    lanes: array[int] = field(default_factory=lambda: array("b"))  # of each slice on a device, in the order of the file
    host_lanes: array[int] = field(default_factory=lambda: array("b"))  # of each other slice
    tracks: Dict[Tuple[Any, Any], int] = field(default_factory=dict)  # (pid, tid) -> lanes, where there are several


class Rewriter:
    """Takes the events of one rank block by block. Counts what it leaves out."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._clock = task.clock
        self._offset = round(task.clock.offset_us)
        self._pids: Dict[Any, int] = {}
        for pid in task.pids:
            self._pid(pid)
        self._named: set[Any] = set()
        self._at = [0, 0]  # slices of the host and of devices so far
        self._moved: Dict[Tuple[Any, Any, Any], Any] = {}
        self._threads: Dict[Tuple[Any, Any], bool] = {}
        self._kernels: Optional[Pattern[str]] = re.compile(task.wanted.kernels) if task.wanted.kernels else None
        self.left_out = 0
        self.invalid = 0
        self.moved = 0

    def take(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events of the block that stay, changed in place."""
        if self._task.tracks:
            self._into_lanes(events)
        if not self._task.wanted.all:
            events = [event for event in events if self._wants(event)]
        pids, offset, drift = self._pids, self._offset, self._clock.drift
        flow = (self._task.index + 1) * _FLOW
        bad = False
        for event in events:
            ts = event.ts
            if type(ts) not in _NUMBERS or not -1e18 < ts < 1e18:
                ts = number(ts) if event.ph != "M" or ts is not UNSET else UNSET
                if ts is None or (ts is UNSET and event.ph != "M"):
                    event.ph, bad = "", True
                    continue
                event.ts = ts
            try:
                event.pid = pids[event.pid]
            except (KeyError, TypeError):
                event.pid = self._pid(event.pid)
            ph = event.ph
            if ph != "X":
                ident = event.id
                if ph != "M" and type(ident) is int and 0 <= ident < _FLOW:
                    event.id = ident + flow
                else:
                    self._other(event)
                    if ph == "M":
                        continue
            elif type(event.dur) is not float and event.dur is not UNSET and number(event.dur) is None:
                event.ph, bad = "", True
                continue
            if drift and ts is not UNSET:
                self._drifted(event)
            elif offset and ts is not UNSET:
                event.ts = ts + offset
        if bad:
            kept = [event for event in events if event.ph]
            self.invalid += len(events) - len(kept)
            return kept
        return events

    def _drifted(self, event: Event) -> None:
        """Both ends move, so that slices nest as before: the later of two times stays the later."""
        event.ts, begin = self._moved_time(event.ts), event.ts
        if event.ph == "X" and isinstance(event.dur, (int, float)):
            event.dur = round(max(0.0, self._moved_time(begin + event.dur) - event.ts), 3)

    def _moved_time(self, time: float) -> float:
        return round(time + self._offset + self._clock.drift * (time - self._clock.since), 3)

    def _pid(self, pid: Any) -> int:
        key = pid if isinstance(pid, (int, str)) else repr(pid)
        return self._pids.setdefault(key, (self._task.index + 1) * _BLOCK + min(len(self._pids), _BLOCK - 1))

    def _other(self, event: Event) -> None:
        """`event.pid` is new already."""
        if event.ph == "M":
            if event.name == "process_name" or event.name == "process_sort_index":
                pid = next((old for old, new in self._pids.items() if new == event.pid), None)
                self._named.add((event.name, pid))
                set_arguments(event, self._of_process(event.name, pid))
            return
        if event.id is not UNSET:
            event.id = f"{self._task.index}:{event.id}"

    def _of_process(self, what: str, pid: Any) -> Dict[str, Any]:
        """Name or order of a process: the ranks in their order, in each its processes before its devices."""
        task = self._task
        device = pid in task.devices
        if what == "process_sort_index":
            return {
                "sort_index": task.index * 1000
                + (
                    1 + min(pid, 900)
                    if device and isinstance(pid, int)
                    else 0
                    if device or isinstance(pid, int)
                    else 950
                )
            }
        if device and isinstance(pid, int) and pid < _DEVICES:
            return {"name": f"{task.name} GPU {pid}"}
        own = task.process_names.get(pid)
        words = [task.name, own if own and own != str(pid) else "", f"({pid})" if isinstance(pid, int) else str(pid)]
        return {"name": " ".join(word for word in words if word)}

    def more(self) -> List[Event]:
        """Events of ours, at the end: names and order of processes that had none, and of lanes."""
        found = []
        for pid, new in self._pids.items():
            for what in ("process_name", "process_sort_index"):
                if (what, pid) not in self._named:
                    found.append(make_event(ph="M", name=what, pid=new, tid=0, args=self._of_process(what, pid)))
        for (pid, tid), count in self._task.tracks.items():
            name = self._task.thread_names.get((pid, tid), f"stream {tid}" if pid in self._task.devices else str(tid))
            for lane in range(1, count):
                where = {"pid": self._pids.get(pid, pid), "tid": lane_id(tid, lane)}
                found.append(make_event(ph="M", name="thread_name", args={"name": f"{name} (overlap {lane})"}, **where))
                order = tid if isinstance(tid, int) else 0
                found.append(make_event(ph="M", name="thread_sort_index", args={"sort_index": order}, **where))
        return found

    def _into_lanes(self, events: Sequence[Event]) -> None:
        """Slices that overlap, and the ends of flows that point at them. The order is that of the first reading."""
        fresh: Dict[Tuple[Any, Any, Any], Any] = {}
        lanes, tracks = (self._task.host_lanes, self._task.lanes), self._task.tracks
        for event in events:
            if event.ph != "X":
                continue
            length = number(event.dur) if event.dur is not UNSET else 0.0
            if number(event.ts) is None or length is None or length < 0:
                continue
            device = on_device(event)
            at = self._at[device]
            lane = lanes[device][at] if at < len(lanes[device]) else 0
            self._at[device] += 1
            if lane and (event.pid, event.tid) in tracks:
                tid = lane_id(event.tid, lane)
                fresh[event.pid, event.tid, event.ts] = tid
                event.tid = tid
                self.moved += 1
        known = {**self._moved, **fresh}
        for event in events:
            if event.ph == "f":
                event.tid = known.get((event.pid, event.tid, event.ts), event.tid)
        self._moved = fresh

    def _wants(self, event: Event) -> bool:
        if event.ph == "M":
            return True
        wanted = self._task.wanted
        ts = number(event.ts)
        device = event.ph == "X" and on_device(event)
        keeps = ts is not None and ts <= wanted.until
        if keeps and ts is not None:
            length = number(event.dur) if event.ph == "X" and event.dur is not UNSET else 0.0
            keeps = ts + (length or 0.0) >= wanted.since
        if keeps and device and self._kernels is not None:
            keeps = bool(self._kernels.search(str(event.name)))
        if keeps and wanted.threads:
            keeps = self._wants_thread(event.pid, event.tid)
        self.left_out += not keeps
        return keeps

    def _wants_thread(self, pid: Any, tid: Any) -> bool:
        key = (repr(pid), repr(tid))
        found = self._threads.get(key)
        if found is None:
            asked = self._task.wanted.threads
            device = pid in self._task.devices
            if asked in ("gpu", "cpu"):
                found = device == (asked == "gpu")
            else:
                name = self._task.thread_names.get((pid, tid), "")
                found = bool(re.search(asked, name) or re.search(asked, str(tid)))
            self._threads[key] = found
        return found


def on_device(event: Event) -> bool:
    """Whether a slice was given a lane: the same as `collecting` asks."""
    cat = event.cat
    if isinstance(cat, str):
        lower = cat.lower()
        return lower in GPU_CATEGORIES or lower in DEVICE_SPANS
    return without_category(event)


def lane_id(tid: Any, lane: int) -> Any:
    """The thread of a lane."""
    return tid + lane * _LANE if isinstance(tid, int) else f"{tid} overlap {lane}"
