"""Each collective on all of its ranks: who came when, how long the transfer took, and how long it takes at its best."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from statistics import median
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from gdbext.model.trace import Clock
from gdbext.traces.clocks import from_common_clock, to_common_clock
from gdbext.traces.first_pass import Key
from gdbext.traces.matching import match_collectives
from gdbext.traces.rank_trace import RankTrace

FLOOR = 10.0  # microseconds of skew that are noise
_QUIET = 4  # collectives of a kind and size from which their best can be told
_NORMAL = 1.5  # times the baseline that a transfer may take


@dataclass
class Meeting:
    """One collective. `places`: by trace, its position in the trace's calls. Microseconds on the clock of all."""

    key: Key
    number: int
    size: int
    places: Dict[int, int]
    arrivals: Dict[int, float]
    last: int
    delay: float  # of the last behind the middle of the others
    alone: float  # of the last behind the one before it
    skew: float
    transfer: float
    baseline: Optional[float] = None

    @property
    def first(self) -> float:
        return min(self.arrivals.values())

    @property
    def sort(self) -> str:
        """transfer, skew, mixed or inconclusive."""
        if self.baseline is None:
            return "skew" if self.skew > max(FLOOR, 4 * self.transfer) else "inconclusive"
        if self.skew < max(FLOOR, self.baseline / 2):
            return "transfer"
        return "skew" if self.skew >= self.baseline and self.transfer <= _NORMAL * self.baseline else "mixed"

    @property
    def excess(self) -> float:
        """What the transfer took beyond its best."""
        if self.baseline is None or self.transfer <= max(_NORMAL * self.baseline, self.baseline + FLOOR):
            return 0.0
        return self.transfer - self.baseline


def meetings(traces: Sequence[RankTrace], clocks: Sequence[Clock]) -> List[Meeting]:
    """All that at least two ranks of known clock have in common, in order of time."""
    keys = dict.fromkeys(key for trace in traces for key in trace.calls)
    found = [one for key in keys for one in _of_group(key, traces, clocks)]
    found.sort(key=lambda one: one.first)
    _baselines(found)
    return found


def _of_group(key: Key, traces: Sequence[RankTrace], clocks: Sequence[Clock]) -> Iterator[Meeting]:
    todo = [at for at, trace in enumerate(traces) if key in trace.calls]
    while len(todo) > 1:  # ranks of several groups may share a key where the profiler did not name groups
        reference = todo[0]
        others = [at for at in todo[1:] if clocks[at].part == clocks[reference].part]
        here = traces[reference].calls[key]
        places: Dict[int, array[int]] = {}
        rest = [at for at in todo[1:] if at not in others]
        for at in others:
            call = traces[at].calls[key]
            ours, theirs = clocks[reference], clocks[at]
            pairs = match_collectives(
                here,
                call,
                lambda time, ours=ours, theirs=theirs: from_common_clock(  # type: ignore[misc]
                    ours, to_common_clock(theirs, time)
                ),
            )
            if not pairs:
                rest.append(at)
                continue
            table = array("i", [-1]) * len(here.start)
            for one, other in pairs:
                table[one] = other
            places[at] = table
        for number in range(len(here.start)):
            present = {reference: number, **{at: table[number] for at, table in places.items() if table[number] >= 0}}
            if len(present) > 1:
                yield _meeting(key, number, present, traces, clocks)
        todo = rest


def _meeting(
    key: Key, number: int, places: Dict[int, int], traces: Sequence[RankTrace], clocks: Sequence[Clock]
) -> Meeting:
    arrivals = {at: to_common_clock(clocks[at], traces[at].calls[key].start[place]) for at, place in places.items()}
    shortest = min(
        traces[at].calls[key].end[place] - traces[at].calls[key].start[place] for at, place in places.items()
    )
    order = sorted(arrivals, key=arrivals.__getitem__)
    last = order[-1]
    others = [arrivals[at] for at in order[:-1]]
    at, place = next(iter(places.items()))
    return Meeting(
        key=key,
        number=number,
        size=traces[at].calls[key].size[place],
        places=places,
        arrivals=arrivals,
        last=last,
        delay=arrivals[last] - median(others),
        alone=arrivals[last] - others[-1],
        skew=arrivals[last] - others[0],
        transfer=shortest,
    )


def _baselines(found: Sequence[Meeting]) -> None:
    """The transfer of the quickest quarter, by kind, size and number of ranks: it is that of the last to
    come, who waits for nobody, so that skew has no part in it."""
    alike: Dict[Tuple[str, int, int], List[Meeting]] = {}
    for one in found:
        alike.setdefault((one.key[0], one.size, len(one.arrivals)), []).append(one)
    for some in alike.values():
        if len(some) < _QUIET:
            continue
        times = sorted(one.transfer for one in some)
        baseline = times[len(times) // 4]
        for one in some:
            one.baseline = baseline
