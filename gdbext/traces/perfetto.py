"""The merged trace in Perfetto's own format, by the messages of its wheel: a track for each lane, slices that nest.

Slices of a rank are held in memory until they are in order, one rank at a time.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Sequence, Tuple

from gdbext.model.errors import GdbextError
from gdbext.model.trace import MergeReport
from gdbext.traces.event_reader import Contents, blocks
from gdbext.traces.merged_rank import Rewriter, Task
from gdbext.traces.merged_trace import Asked, Scan, Written, report_of, scan, tasks_of
from gdbext.traces.trace_event import UNSET, Event, arguments, number
from gdbext.traces.traces_of_job import Say, build_job, in_turn, size_of

MOST = 2_000_000  # slices of one rank
_ARGUMENTS = 12  # of a slice
_Slice = Tuple[int, int, int, int, str, str, Any]  # track, start, -end, end, name, category, arguments


def write_perfetto(
    paths: Sequence[str], asked: Asked, file: BinaryIO, output: str, say: Say, jobs: int = 0
) -> MergeReport:
    """As `merge`. Raises `GdbextError` where the package perfetto is missing."""
    messages = _messages()
    scans: Dict[str, Scan] = {one.trace.path: one for one in in_turn(scan, list(paths), size_of(paths), jobs)}
    job = build_job([one.trace for one in scans.values()])
    tasks = tasks_of(job, scans, asked)
    size = 0
    parts: List[Written] = []
    for count, task in enumerate(tasks, 1):
        rewriter = Rewriter(task)
        contents = Contents()
        slices, others = _slices(task, rewriter, contents)
        for packet in _packets(messages, task, rewriter, slices, others):
            size += file.write(packet)
        kept = contents.events - rewriter.left_out - rewriter.invalid
        parts.append(Written.by(rewriter, contents.events, kept, len(rewriter.more())))
        say(f"wrote {count} of {len(tasks)}: {len(slices)} slices of {task.name}")
    return report_of(job, tasks, parts, output, size)


def _messages() -> Any:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise GdbextError(
            "the package perfetto is missing", "python3 -m pip install 'gdbext[trace]', or leave --perfetto out"
        ) from None
    return perfetto_trace_pb2


def _slices(task: Task, rewriter: Rewriter, contents: Contents) -> Tuple[List[_Slice], List[Event]]:
    """All slices with their place in time, in nanoseconds; and the other events: flows, instants, names."""
    slices: List[_Slice] = []
    others: List[Event] = []
    tracks: Dict[Tuple[Any, Any], int] = {}
    with open(task.path, "rb") as source:
        for events in blocks(source, contents):
            for event in rewriter.take(events):
                if event.ph != "X":
                    others.append(event)
                    continue
                start = round(1000 * event.ts)
                length = number(event.dur) if event.dur is not UNSET else 0.0
                end = start + max(0, round(1000 * (length or 0.0)))
                track = tracks.setdefault((event.pid, event.tid), len(tracks))
                cat = event.cat if isinstance(event.cat, str) else ""
                slices.append((track, start, -end, end, str(event.name), cat, event))
                if len(slices) > MOST:
                    raise GdbextError(
                        f"{os.path.basename(task.path)} has more than {MOST} slices, too many for --perfetto",
                        "take a part (--window, --steps, --threads gpu), or leave --perfetto out",
                    )
    slices.sort(key=lambda one: one[:3])
    return slices, others


def _packets(
    messages: Any, task: Task, rewriter: Rewriter, slices: List[_Slice], others: List[Event]
) -> Iterator[bytes]:
    """Serialised packets: descriptions of processes and threads, then slices, a track at a time."""
    made = _Packets(messages, task.index + 1)
    named = [*others, *rewriter.more()]
    names = {(one.pid, one.tid): str(arguments(one).get("name", "")) for one in named if one.name == "thread_name"}
    processes = {one.pid: str(arguments(one).get("name", "")) for one in named if one.name == "process_name"}
    flows = _flows(others)
    before = -1
    for track, start, _, end, name, cat, event in slices:
        key = (event.pid, event.tid)
        if track != before:
            yield from made.closings(before)
            before = track
        if key not in made.described:
            yield from made.descriptions(key, names, processes)
        yield from made.closings(before, start)
        trace, packet = made.one()
        packet.timestamp = start
        slice_ = packet.track_event
        slice_.type, slice_.track_uuid, slice_.name = slice_.TYPE_SLICE_BEGIN, made.described[key], name
        if cat:
            slice_.categories.append(cat)
        for ident in flows.get((event.pid, event.tid, event.ts), ())[:4]:
            slice_.flow_ids.append(ident)
        for word, value in list(arguments(event).items())[:_ARGUMENTS]:
            note = slice_.debug_annotations.add()
            note.name = str(word)
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
                note.int_value = value
            else:
                note.string_value = str(value)[:1000]
        yield trace.SerializeToString()
        made.open.append(end)
    yield from made.closings(before)


class _Packets:
    """Those of one rank. `described`: its tracks, in the order of their numbers; `open`: ends of slices."""

    def __init__(self, messages: Any, sequence: int) -> None:
        self._messages, self._sequence = messages, sequence
        self.described: Dict[Tuple[Any, Any], int] = {}
        self.open: List[int] = []

    def one(self) -> Tuple[Any, Any]:
        """A message with one packet, and that."""
        trace = self._messages.Trace()
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = self._sequence
        return trace, packet

    def closings(self, track: int, until: Optional[int] = None) -> Iterator[bytes]:
        """Ends of the slices that end before the next begins; their order makes ties right."""
        while self.open and (until is None or self.open[-1] <= until):
            trace, packet = self.one()
            packet.timestamp, event = self.open.pop(), packet.track_event
            event.type, event.track_uuid = event.TYPE_SLICE_END, list(self.described.values())[track]
            yield trace.SerializeToString()

    def descriptions(
        self, key: Tuple[Any, Any], names: Dict[Tuple[Any, Any], str], processes: Dict[Any, str]
    ) -> Iterator[bytes]:
        """The track of a thread, and of its process where that is new."""
        pid, tid = key
        above = (self._sequence << 40) + (1 << 39) + pid
        uuid = (self._sequence << 40) + len(self.described) + 1
        if not any(known == pid for known, _ in self.described):
            trace, packet = self.one()
            packet.track_descriptor.uuid = above
            packet.track_descriptor.process.pid = pid
            packet.track_descriptor.process.process_name = processes.get(pid, "")
            yield trace.SerializeToString()
        self.described[key] = uuid
        trace, packet = self.one()
        packet.track_descriptor.uuid, packet.track_descriptor.parent_uuid = uuid, above
        packet.track_descriptor.name = names.get(key, f"stream {tid}" if isinstance(tid, int) else str(tid))
        yield trace.SerializeToString()


def _flows(others: List[Event]) -> Dict[Tuple[Any, Any, Any], List[int]]:
    """Flow ids by the place they start or end at: Perfetto joins slices that carry the same."""
    found: Dict[Tuple[Any, Any, Any], List[int]] = {}
    for one in others:
        if one.ph in ("s", "t", "f") and isinstance(one.id, int):
            found.setdefault((one.pid, one.tid, one.ts), []).append(one.id)
    return found
