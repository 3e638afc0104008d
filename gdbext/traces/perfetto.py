"""The merged trace in Perfetto's own format, by the messages of its wheel: a track for each lane, slices that nest.

Slices of a rank are held in memory until they are in order, one rank at a time.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Dict, Iterator, List, Sequence, Tuple

from gdbext.model.errors import GdbextError
from gdbext.model.trace import MergeReport
from gdbext.traces.event_reader import Contents, blocks
from gdbext.traces.merged_rank import Rewriter, Task
from gdbext.traces.merged_trace import Asked, Scan, scan, tasks_of
from gdbext.traces.trace_event import UNSET, Event, arguments, number
from gdbext.traces.traces_of_job import Say, in_turn, size_of, together

MOST = 2_000_000  # slices of one rank
_ARGUMENTS = 12  # of a slice
_Slice = Tuple[int, int, int, int, str, str, Any]  # track, start, -end, end, name, category, arguments


def write_perfetto(
    paths: Sequence[str], asked: Asked, file: BinaryIO, output: str, say: Say, jobs: int = 0
) -> MergeReport:
    """As `merge`. Raises `GdbextError` where the package perfetto is missing."""
    messages = _messages()
    scans: Dict[str, Scan] = {one.trace.path: one for one in in_turn(scan, list(paths), size_of(paths), jobs)}
    job = together([one.trace for one in scans.values()])
    tasks = tasks_of(job, scans, asked)
    size = total = kept = left_out = invalid = moved = added = 0
    for count, task in enumerate(tasks, 1):
        rewriter = Rewriter(task)
        contents = Contents()
        slices, others = _slices(task, rewriter, contents)
        for packet in _packets(messages, task, rewriter, slices, others):
            size += file.write(packet)
        total += contents.events
        kept += contents.events - rewriter.left_out - rewriter.invalid
        left_out, invalid, moved = left_out + rewriter.left_out, invalid + rewriter.invalid, moved + rewriter.moved
        added += len(rewriter.more())
        say(f"wrote {count} of {len(tasks)}: {len(slices)} slices of {task.name}")
    chosen = {task.index for task in tasks}
    return MergeReport(
        files=tuple(one for one in job.files if one.index in chosen or one.state == "lost"),
        output=output,
        events_in=total,
        events_out=kept,
        left_out=left_out,
        invalid=invalid,
        added=added,
        moved=moved,
        lanes=sum(lanes - 1 for task in tasks for lanes in task.tracks.values()),
        size=size,
        problems=tuple(job.problems),
    )


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
    sequence = task.index + 1
    described: Dict[Tuple[Any, Any], int] = {}
    names = {(one.pid, one.tid): str(arguments(one).get("name", "")) for one in others if one.name == "thread_name"}
    processes = {one.pid: str(arguments(one).get("name", "")) for one in others if one.name == "process_name"}
    for one in rewriter.more():
        if one.name == "thread_name":
            names[one.pid, one.tid] = str(arguments(one).get("name", ""))
        elif one.name == "process_name":
            processes[one.pid] = str(arguments(one).get("name", ""))
    flows = _flows(others)
    open_ones: List[int] = []
    before = -1
    for track, start, _, end, name, cat, event in slices:
        key = (event.pid, event.tid)
        if track != before:
            yield from _closings(messages, sequence, described, before, open_ones, None)
            before = track
        if key not in described:
            yield from _descriptions(messages, sequence, described, key, names, processes)
        yield from _closings(messages, sequence, described, before, open_ones, start)
        trace = messages.Trace()
        packet = trace.packet.add()
        packet.timestamp, packet.trusted_packet_sequence_id = start, sequence
        slice_ = packet.track_event
        slice_.type, slice_.track_uuid, slice_.name = slice_.TYPE_SLICE_BEGIN, described[key], name
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
        open_ones.append(end)
    yield from _closings(messages, sequence, described, before, open_ones, None)


def _closings(
    messages: Any,
    sequence: int,
    described: Dict[Tuple[Any, Any], int],
    track: int,
    open_ones: List[int],
    until: int | None,
) -> Iterator[bytes]:
    """Ends of the slices that end before the next begins; their order makes ties right."""
    if not open_ones:
        return
    uuid = list(described.values())[track]
    while open_ones and (until is None or open_ones[-1] <= until):
        trace = messages.Trace()
        packet = trace.packet.add()
        packet.timestamp, packet.trusted_packet_sequence_id = open_ones.pop(), sequence
        packet.track_event.type, packet.track_event.track_uuid = packet.track_event.TYPE_SLICE_END, uuid
        yield trace.SerializeToString()


def _descriptions(
    messages: Any,
    sequence: int,
    described: Dict[Tuple[Any, Any], int],
    key: Tuple[Any, Any],
    names: Dict[Tuple[Any, Any], str],
    processes: Dict[Any, str],
) -> Iterator[bytes]:
    """The track of a thread, and of its process where that is new."""
    pid, tid = key
    uuid = (sequence << 40) + len(described) + 1
    if not any(known == pid for known, _ in described):
        trace = messages.Trace()
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = sequence
        packet.track_descriptor.uuid = (sequence << 40) + (1 << 39) + pid
        packet.track_descriptor.process.pid = pid
        packet.track_descriptor.process.process_name = processes.get(pid, "")
        yield trace.SerializeToString()
    described[key] = uuid
    trace = messages.Trace()
    packet = trace.packet.add()
    packet.trusted_packet_sequence_id = sequence
    packet.track_descriptor.uuid = uuid
    packet.track_descriptor.parent_uuid = (sequence << 40) + (1 << 39) + pid
    packet.track_descriptor.name = names.get(key, f"stream {tid}" if isinstance(tid, int) else str(tid))
    yield trace.SerializeToString()


def _flows(others: List[Event]) -> Dict[Tuple[Any, Any, Any], List[int]]:
    """Flow ids by the place they start or end at: Perfetto joins slices that carry the same."""
    found: Dict[Tuple[Any, Any, Any], List[int]] = {}
    for one in others:
        if one.ph in ("s", "t", "f") and isinstance(one.id, int):
            found.setdefault((one.pid, one.tid, one.ts), []).append(one.id)
    return found
