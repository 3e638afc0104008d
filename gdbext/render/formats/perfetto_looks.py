"""All looks for Perfetto (ui.perfetto.dev), by the messages of its wheel: a track for each thread, a slice for a call.

A file may come with ranks of several hosts, whose pids may be the same: processes are tracks with names, not with pids.
"""

from __future__ import annotations

from typing import Any, Dict, Optional

from gdbext.model.errors import GdbextError
from gdbext.model.look_origin import Origin
from gdbext.model.stack import Frame
from gdbext.model.verdict import Diagnosis
from gdbext.render.formats.looks import RankLanes, ThreadLane, Timeline, function_of, place_in, timeline

DEEPEST = 128
"""Calls of a stack, the innermost."""
_SEQUENCE, _SECOND = 1, 1_000_000_000
_FRESH, _INTERNED = 1, 2  # SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE


def trace(diagnosis: Diagnosis, _origin: Optional[Origin]) -> bytes:
    """Raises GdbextError where the package perfetto is missing."""
    return _Trace(timeline(diagnosis)).bytes()


def _messages() -> Any:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise GdbextError("the format perfetto needs the package perfetto", "python3 -m pip install perfetto") from None
    return perfetto_trace_pb2


class _Trace:
    def __init__(self, looks: Timeline) -> None:
        self._trace: Any = _messages().Trace()
        self._starts = [round(start * _SECOND) for start in looks.starts]
        self._names: Dict[str, int] = {}
        self._tracks = 0
        first = self._packet()
        first.sequence_flags = _FRESH
        for rank in looks.ranks:
            self._rank(rank)

    def bytes(self) -> bytes:
        found: bytes = self._trace.SerializeToString()
        return found

    def _packet(self) -> Any:
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _track(self, name: str, parent: int = 0) -> int:
        self._tracks += 1
        descriptor = self._packet().track_descriptor
        descriptor.uuid, descriptor.name = self._tracks, name
        if parent:
            descriptor.parent_uuid = parent
        return self._tracks

    def _rank(self, rank: RankLanes) -> None:
        more = f", {rank.left_out:,} threads left out" if rank.left_out else ""
        parent = self._track(rank.name + more)
        for thread in rank.threads:
            self._thread(thread, self._track(f"{thread.name} {thread.id}", parent))

    def _thread(self, thread: ThreadLane, track: int) -> None:
        for number, calls in enumerate(thread.stacks):
            shown = calls[:DEEPEST]
            for frame in reversed(shown):
                self._begin(frame, self._starts[number], track)
            for _ in shown:
                self._end(self._starts[number + 1], track)

    def _begin(self, frame: Frame, at: int, track: int) -> None:
        name, (place, line) = function_of(frame), place_in(frame)
        packet = self._packet_at(at, track)
        if name not in self._names:
            self._names[name] = len(self._names) + 1
            entry = packet.interned_data.event_names.add()
            entry.iid, entry.name = self._names[name], name
        event = packet.track_event
        event.type, event.name_iid = event.TYPE_SLICE_BEGIN, self._names[name]
        if place:
            note = event.debug_annotations.add()
            note.name, note.string_value = "at", f"{place}:{line}" if line else place

    def _end(self, at: int, track: int) -> None:
        event = self._packet_at(at, track).track_event
        event.type = event.TYPE_SLICE_END

    def _packet_at(self, at: int, track: int) -> Any:
        packet = self._packet()
        packet.timestamp, packet.sequence_flags = at, _INTERNED
        packet.track_event.track_uuid = track
        return packet
