"""Which collective of one rank is which of another: by number where the profiler wrote one, else by order and ends."""

from __future__ import annotations

from bisect import bisect_left
from statistics import median
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from gdbext.traces.first_pass import Calls

Pairs = List[Tuple[int, int]]
Clocked = Callable[[float], float]

_SHIFTS = 8  # collectives that one profile may have begun before the other
_MATCH_MICROSECONDS = 2000.0  # microseconds between ends that may be the same one, where only the time tells
_CLOSE = 200.0  # microseconds that ends of one collective are apart at most, usually
_PART = 0.25  # of the time between two collectives: within it ends are told from their neighbours'
_SAMPLE = 512


def match_collectives(one: Calls, other: Calls, to_one: Clocked) -> Pairs:
    """Positions in both that are the same collective; [] where that cannot be told.

    `to_one`: a time of the other on the clock of the one, as far as it is known.
    """
    if not one.start or not other.start:
        return []
    if min(one.seq) >= 0 and min(other.seq) >= 0:
        position_of = {number: at for at, number in enumerate(other.seq)}
        if len(position_of) == len(other.seq) and len(set(one.seq)) == len(one.seq):
            return [(at, position_of[number]) for at, number in enumerate(one.seq) if number in position_of]
    if len(one.start) == 1 and len(other.start) == 1:
        return [(0, 0)] if one.size[0] == other.size[0] else []
    period = _period(one)
    best: Optional[Tuple[float, float, Pairs]] = None
    for shift in sorted(range(-_SHIFTS, _SHIFTS + 1), key=abs):
        pairs = _shifted(one, other, shift)
        if pairs is None or len(pairs) < max(1, min(len(one.start), len(other.start)) - _SHIFTS):
            continue
        middle, spread = _spread(one, other, pairs, to_one)
        if shift == 0 and len(one.start) == len(other.start) and spread <= max(_CLOSE, period * _PART):
            return pairs
        rank = (spread + (0 if abs(middle) < period / 2 else _CLOSE), abs(middle))
        if spread <= max(_CLOSE, period * _PART) and (best is None or rank < best[:2]):
            best = (*rank, pairs)
    nearest = _nearest(one, other, to_one)
    return best[2] if best is not None and (len(nearest) <= len(best[2]) or best[0] < _CLOSE) else nearest


def _shifted(one: Calls, other: Calls, shift: int) -> Optional[Pairs]:
    """Both in order, one of them begun later; None where sizes say that it cannot be."""
    first, second = max(0, -shift), max(0, shift)
    count = min(len(one.start) - first, len(other.start) - second)
    if count <= 0 or one.size[first : first + count] != other.size[second : second + count]:
        return None
    return [(first + at, second + at) for at in range(count)]


def _period(calls: Calls) -> float:
    ends = sorted(calls.end)
    gaps = [after - before for before, after in zip(ends, ends[1:])]
    return median(gaps) if gaps else 0.0


def _spread(one: Calls, other: Calls, pairs: Pairs, to_one: Clocked) -> Tuple[float, float]:
    """Median distance of the ends, and the median distance from it."""
    some = pairs[:: max(1, len(pairs) // _SAMPLE)]
    apart = [to_one(other.end[other_at]) - one.end[here] for here, other_at in some]
    # Neighbours drift apart slowly: what is left between them is what tells a right match from a wrong one.
    middle = median(apart)
    steps = [abs(after - before) for before, after in zip(apart, apart[1:])]
    return middle, median(steps) if steps else abs(middle)


def _nearest(one: Calls, other: Calls, to_one: Clocked) -> Pairs:
    """Each with the one whose end is nearest, where both choose each other."""
    ends = sorted((to_one(end), at) for at, end in enumerate(other.end))
    keys = [end for end, _ in ends]
    claims: Dict[int, Tuple[float, int]] = {}
    for here, end in enumerate(one.end):
        at = bisect_left(keys, end)
        nearest = min((abs(keys[place] - end), place) for place in (at - 1, at) if 0 <= place < len(keys))
        other_at = ends[nearest[1]][1]
        if nearest[0] <= _MATCH_MICROSECONDS and one.size[here] == other.size[other_at]:
            claims[other_at] = min(claims.get(other_at, nearest + (0,))[:1] + (here,), (nearest[0], here))
    pairs = sorted((here, other_at) for other_at, (_, here) in claims.items())
    return pairs if len(pairs) >= 3 or len(pairs) * 2 > min(len(one.start), len(other.start)) else []


def sample(values: Sequence[Tuple[float, float]], most: int) -> Sequence[Tuple[float, float]]:
    """At most so many, evenly."""
    return values if len(values) <= most else values[:: -(-len(values) // most)]
