"""All ranks on one clock: a collective ends at nearly the same moment on all of its ranks.

The profiler writes when its clock started (`baseTimeNanoseconds`); that is where the search begins. Ranks of one host
share a clock. For all others offset and drift are fitted to the ends of common collectives, robustly, and what is left
between the ends is told.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.model.trace import Clock
from gdbext.traces.matching import match_collectives, sample
from gdbext.traces.rank_trace import RankTrace

_PAIRS = 4000  # that a fit takes
_WINDOWS = 24
_LEAST = 3  # pairs that align a rank
_NOISE = 20.0  # microseconds below which an offset is none
_SUSPECT_MICROSECONDS = 100.0  # microseconds at which ranks that name one host have clocks of their own
_DRIFTS = 20  # pairs from which a drift is fitted
_WORST_MICROSECONDS = 5000.0  # microseconds of median residual beyond which nothing is aligned


def bases(traces: Sequence[RankTrace]) -> Tuple[List[float], bool]:
    """What to add to the times of each so that all count from the same start, and whether all say when that was."""
    said = [trace.base_us for trace in traces]
    if any(one is None for one in said):
        return [0.0] * len(traces), all(one is None for one in said)
    known = [one for one in said if one is not None]
    return [one - min(known) for one in known], True


def align(traces: Sequence[RankTrace]) -> List[Clock]:
    """The clock of each, by position; the first is the reference."""
    if not traces:
        return []
    base, comparable = bases(traces)
    clocks: Dict[int, Clock] = {}
    todo = list(range(len(traces)))
    while todo:
        first = todo.pop(0)
        clocks[first] = _root(traces, first, clocks, base, comparable)
        while True:
            found = False
            for at in list(todo):
                one = _by_neighbours(traces, at, clocks, base, comparable)
                if one is not None:
                    clocks[at], found = one, True
                    todo.remove(at)
            if not found:
                break
    return [clocks[at] for at in range(len(traces))]


def _root(
    traces: Sequence[RankTrace], at: int, clocks: Dict[int, Clock], base: Sequence[float], comparable: bool
) -> Clock:
    """The first of those that never meet a rank of before: aligned only where it shares its host with one."""
    if not clocks:
        return Clock(method="shared", offset_us=base[at])
    same = next((place for place in clocks if comparable and _same_host(traces[place], traces[at])), None)
    if same is not None:
        return _like(clocks[same], base[at] - base[same])
    return Clock(method="base time" if comparable else "none", offset_us=base[at], part=at)


def _like(clock: Clock, further: float) -> Clock:
    """The clock of another process of the host, whose times start elsewhere."""
    return Clock(
        method="shared",
        offset_us=clock.offset_us + further * (1 + clock.drift),
        drift=clock.drift,
        since=clock.since - further,
        part=clock.part,
    )


def _same_host(one: RankTrace, other: RankTrace) -> bool:
    return one.host is not None and one.host == other.host and (one.base_us is None) == (other.base_us is None)


def _by_neighbours(
    traces: Sequence[RankTrace], at: int, clocks: Dict[int, Clock], base: Sequence[float], comparable: bool
) -> Optional[Clock]:
    """By one that is aligned already and has collectives in common, the best of the first few."""
    own = set(traces[at].calls)
    neighbours = [place for place in clocks if own & set(traces[place].calls)]
    neighbours.sort(key=lambda place: not _same_host(traces[place], traces[at]))
    for place in neighbours[:8]:
        fitted = _fit(traces[place], traces[at], clocks[place], base[at])
        if fitted is None:
            continue
        direct = abs(fitted.offset_us - base[at] - (clocks[place].offset_us - base[place]))
        if (
            _same_host(traces[place], traces[at])
            and comparable
            and (traces[at].on_host or direct < _SUSPECT_MICROSECONDS)
        ):
            shared = _like(clocks[place], base[at] - base[place])
            return replace(
                shared, pairs=fitted.pairs, residual_us=fitted.residual_us, residual_p99_us=fitted.residual_p99_us
            )
        return replace(fitted, part=clocks[place].part)
    return None


def _fit(one: RankTrace, other: RankTrace, clock: Clock, base: float) -> Optional[Clock]:
    """Offset and drift of the other, so that common ends fall together."""
    points: List[Tuple[float, float]] = []
    for key in sorted(set(one.calls) & set(other.calls), key=lambda key: -len(one.calls[key].start)):
        here, there = one.calls[key], other.calls[key]
        pairs = match_collectives(here, there, lambda time: from_common_clock(clock, time + base))
        points += [(there.end[b], to_common_clock(clock, here.end[a]) - there.end[b]) for a, b in pairs]
    if len(points) < _LEAST:
        return None
    points = list(sample(sorted(points), _PAIRS))
    since = points[0][0]
    drift = _slope(points)
    offset = median(y - drift * (x - since) for x, y in points)
    left = sorted(abs(y - offset - drift * (x - since)) for x, y in points)
    plain = median(y for _, y in points)
    flat = sorted(abs(y - plain) for _, y in points)
    span = points[-1][0] - since
    worth = abs(drift) * span > max(2 * _NOISE, 4 * left[len(left) // 2])
    if not worth:
        drift, offset, left = 0.0, plain, flat
        if abs(offset - base - (clock.offset_us if clock.method == "collectives" else 0.0)) <= max(
            _NOISE, 3 * left[len(left) // 2]
        ):
            offset = base + (clock.offset_us if clock.method == "collectives" else 0.0)
            left = sorted(abs(y - offset) for _, y in points)
    middle = left[len(left) // 2]
    if middle > _WORST_MICROSECONDS:
        return None
    return Clock(
        method="collectives",
        offset_us=offset,
        drift=drift,
        since=since,
        pairs=len(points),
        residual_us=middle,
        residual_p99_us=left[min(len(left) - 1, len(left) * 99 // 100)],
    )


def _slope(points: Sequence[Tuple[float, float]]) -> float:
    """The median slope between the medians of windows of time (Theil and Sen)."""
    if len(points) < _DRIFTS:
        return 0.0
    size = max(1, len(points) // _WINDOWS)
    windows = [points[at : at + size] for at in range(0, len(points) - size + 1, size)]
    middles = [(median(x for x, _ in some), median(y for _, y in some)) for some in windows]
    slopes = [
        (later[1] - sooner[1]) / (later[0] - sooner[0])
        for number, sooner in enumerate(middles)
        for later in middles[number + 1 :]
        if later[0] > sooner[0]
    ]
    return median(slopes) if slopes else 0.0


def to_common_clock(clock: Clock, time: float) -> float:
    """A time of a file on the clock of all."""
    return time + clock.offset_us + clock.drift * (time - clock.since)


def from_common_clock(clock: Clock, time: float) -> float:
    """The other way round."""
    return (time - clock.offset_us + clock.drift * clock.since) / (1 + clock.drift)
