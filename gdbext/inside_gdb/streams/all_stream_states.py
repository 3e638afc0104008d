"""The states of all streams and events of an inferior, as far as the time allowed for asking its driver goes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Callable, Optional, Sequence, Tuple

from gdbext.analysis.streams.stream_table import is_doubtful
from gdbext.inside_gdb.calls.target_calls import Caller
from gdbext.inside_gdb.streams.stream_state import StreamCalls, stream_calls
from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import MAYBE_NO_STREAM, Asked, KnownStream, RankStreams

_MOST_ASKED = 64
_ASKING_SECONDS = 20.0


def with_states(known: RankStreams, caller: Caller) -> RankStreams:
    """The same, with what the driver of the selected inferior says of each."""
    with stream_calls(caller) as calls:
        if isinstance(calls, Missing):
            return replace(
                known,
                streams=tuple(replace(one, asked=calls) for one in known.streams),
                events=tuple(replace(one, asked=calls) for one in known.events),
                problems=(*known.problems, f"the driver was not asked: {calls.reason}"),
                unasked=True,
            )
        ask = _Asker(calls)
        streams = _in_order(known.streams, ask.stream)
        events = _in_order(known.events, lambda one: ask.event(one, sorted(known.streams, key=is_doubtful)))
    return replace(known, streams=streams, events=events)


def _in_order(known: Sequence[KnownStream], ask: Callable[[KnownStream], Maybe[Asked]]) -> Tuple[KnownStream, ...]:
    """Doubtful ones last: when a call about one of them fails, no other is made."""
    answers = {id(one): ask(one) for one in sorted(known, key=is_doubtful)}
    return tuple(replace(one, asked=answers[id(one)]) for one in known)


class _Asker:
    """Asks as long as there is time."""

    def __init__(self, calls: StreamCalls) -> None:
        self._calls = calls
        self._end = time.monotonic() + _ASKING_SECONDS
        self._count = 0

    def stream(self, one: KnownStream) -> Maybe[Asked]:
        """The state of one stream."""
        if isinstance(one.handle, Missing):
            return one.handle
        if one.kind == "unverified":
            return MAYBE_NO_STREAM
        over = self._over()
        return self._calls.stream(one.handle) if over is None else over

    def event(self, one: KnownStream, streams: Sequence[KnownStream]) -> Maybe[Asked]:
        """The state of one event; the streams have been asked already."""
        if isinstance(one.handle, Missing):
            return one.handle
        handles = [stream.handle for stream in streams if not isinstance(stream.handle, Missing)]
        over = self._over()
        return self._calls.event(one.handle, handles) if over is None else over

    def _over(self) -> Optional[Missing]:
        self._count += 1
        if self._count > _MOST_ASKED:
            return Missing(f"only the first {_MOST_ASKED} are asked for")
        if time.monotonic() > self._end:
            return Missing(f"not asked within {_ASKING_SECONDS:g} s")
        return None
