"""Overlapping slices of one stream: each gets the lowest lane that is free, so that nothing overlaps without nesting.

With programmatic dependent launch a kernel starts before the one before it on its stream has ended. Viewers that read
JSON want slices of one track to nest, and lose such kernels.
"""

from __future__ import annotations

from array import array
from typing import Dict, List, Sequence, Tuple

from gdbext.traces.first_pass import ANNOTATION, Work, by_start

_LAP = 0.0006  # microseconds: times are written in nanoseconds, and their sums are not exact
_PRECISION = 1.6e-16  # of a time: microseconds since 1970 are known to a quarter
MOST = 64  # lanes of one stream


def lanes(work: Work) -> Tuple[array[int], Dict[int, int]]:
    """The lane of each slice, by position, and how many lanes each track has."""
    found = array("b", bytes(len(work.start)))
    used: Dict[int, int] = {}
    tracks: Dict[int, List[List[Tuple[float, bool]]]] = {}
    for at in _in_order(work):
        start, sort = work.start[at], work.sort[at] == ANNOTATION
        end = start + work.length[at]
        lap = max(_LAP, start * _PRECISION)
        rows = tracks.setdefault(work.lane[at], [[]])
        number = 0
        for number, open_ones in enumerate(rows):  # noqa: B007 - it is used behind the loop
            while open_ones and open_ones[-1][0] <= start + lap:
                open_ones.pop()
            # A span may hold kernels and spans; a kernel holds nothing.
            if not open_ones or (open_ones[-1][1] and end <= open_ones[-1][0] + lap):
                break
        else:
            number = len(rows)
            if number < MOST:
                rows.append([])
            else:
                number -= 1
        rows[number].append((end, sort))
        found[at] = number
    for track, rows in tracks.items():
        used[track] = len(rows)
    return found, used


def _in_order(work: Work) -> Sequence[int]:
    """By start; of those that start together, spans come before what they hold."""
    if ANNOTATION not in work.sort:
        return by_start(work.start)
    order = sorted(range(len(work.start)), key=work.length.__getitem__, reverse=True)
    order.sort(key=work.start.__getitem__)
    return order
