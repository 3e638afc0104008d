"""What was seen of streams in a process, joined: one row a stream, with everything that leads to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Hashable, List, NamedTuple, Sequence, Tuple

from gdbext.analysis.streams.stream_ids import Decoded
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import DeviceKernel, KnownStream, RankStreams, StreamUse

MOST_USES = 16
MOST_STREAMS = 256
_KINDS = ("default", "legacy", "per-thread", "pool", "user", "event", "unverified")


class Sighting(NamedTuple):
    """One stream or event in one place."""

    event: bool
    decoded: Decoded
    device: Maybe[int]
    use: StreamUse


def grouped(sightings: Sequence[Sighting]) -> Tuple[Tuple[KnownStream, ...], Tuple[KnownStream, ...]]:
    """The streams and the events, those that threads wait for first."""
    groups: Dict[Hashable, List[Sighting]] = {}
    for one in sightings:
        groups.setdefault(_key(one), []).append(one)
    known = [(group[0].event, _joined(group)) for group in groups.values()]
    found = sorted(known, key=lambda row: _order(row[1]))
    return (
        tuple(stream for event, stream in found if not event)[:MOST_STREAMS],
        tuple(stream for event, stream in found if event)[:MOST_STREAMS],
    )


def _key(one: Sighting) -> Hashable:
    decoded = one.decoded
    if decoded.kind == "per-thread":  # one for each thread
        return "per-thread", one.use.thread
    if not isinstance(decoded.handle, Missing):
        return one.event, decoded.handle
    device = None if isinstance(one.device, Missing) else one.device
    return decoded.kind, decoded.pool_index, decoded.priority, device, decoded.handle.reason


def _joined(group: Sequence[Sighting]) -> KnownStream:
    best = min(group, key=lambda one: _KINDS.index(one.decoded.kind))
    uses = tuple(dict.fromkeys(one.use for one in group))
    uses = tuple(sorted(uses, key=lambda use: not use.waits))
    devices = [one.device for one in group if not isinstance(one.device, Missing)]
    return KnownStream(
        kind=best.decoded.kind,
        handle=best.decoded.handle,
        device=devices[0] if devices else best.device,
        pool_index=best.decoded.pool_index,
        priority=best.decoded.priority,
        uses=uses[:MOST_USES],
        more_uses=max(0, len(uses) - MOST_USES),
        notes=tuple(dict.fromkeys(note for one in group for note in one.decoded.notes)),
    )


def _order(stream: KnownStream) -> Tuple[bool, int, int]:
    handle = 0 if isinstance(stream.handle, Missing) else stream.handle
    return not any(use.waits for use in stream.uses), _KINDS.index(stream.kind), handle


def is_doubtful(stream: KnownStream) -> bool:
    """Whether only local variables hold it, which may not be set yet."""
    return not any(use.owner or use.waits or use.argument or not use.function for use in stream.uses)


def with_kernels(rank: RankStreams) -> RankStreams:
    """Each stream with the kernels on its device: which is its own no cuda-gdb says. An idle stream has none."""
    if isinstance(rank.kernels, Missing) or not rank.kernels:
        return rank
    return replace(rank, streams=tuple(replace(one, kernels=_on_device(one, rank.kernels)) for one in rank.streams))


def _on_device(stream: KnownStream, kernels: Sequence[DeviceKernel]) -> Tuple[str, ...]:
    asked = None if isinstance(stream.asked, Missing) else stream.asked
    if asked is not None and asked.state == "idle":
        return ()
    device = stream.device if asked is None or isinstance(asked.device, Missing) else asked.device
    return tuple(dict.fromkeys(one.name for one in kernels if one.device == device))
