"""The verdict: who is late, how often, whether it stays or rotates, and what it did before."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.traces.collective_times import FLOOR, Meeting
from gdbext.traces.rank_trace import RankTrace

SMALL = 0.03  # part of the time: less waiting is none
ROTATES = 0.06  # the same where no rank stands out for good: chance delays everybody a little
SLOW = 0.05  # part of the time that transfers take beyond their best
SLOW_ON_HOST = 0.2  # the same where processors move the data: chance delays each transfer
_MOST = 0.6  # of all delay that one rank causes
_ALL = 0.8  # of all delay that the culprits cause
LEAST = 5  # collectives that a verdict rests on
_ALONE = 0.5  # of its delay that the last is behind the one before it
_ALWAYS_LAST_SHARE = 0.7  # the same, of a rank that is always the last
_STEADY = 0.5  # of the delay that ranks are late by on each occasion
_MORE = 1.05  # times as long as its peers
_REASON = 0.4  # of the delay that what it did before must explain


@dataclass
class Tally:
    """How one rank came."""

    delay: float = 0.0
    times: int = 0
    waited: float = 0.0
    usual: float = 0.0  # its distance from the middle of all, on average
    before: str = ""
    name: str = ""  # of the kernel, or of what the host did
    own: float = 0.0
    peers: float = 0.0
    explained: float = 0.0  # part of its delay


@dataclass
class Finding:
    """What the collectives show. `waiting` and `excess` are parts of the time."""

    cause: str = "unknown"
    culprits: Tuple[int, ...] = ()
    waiting: float = 0.0
    excess: float = 0.0
    tallies: Dict[int, Tally] = field(default_factory=dict)
    alone: float = 0.0
    strength: float = 0.0  # part of all delay that the culprits cause
    slow_key: str = ""
    enough: float = SLOW  # excess from which transfers are slow
    once: Optional[Meeting] = None  # one collective alone that cost more than all others together


def judge_lateness(collectives: Sequence[Meeting], traces: Sequence[RankTrace], window: float, noise: float) -> Finding:
    """`noise`: microseconds to which the clocks agree."""
    finding = Finding()
    collectives = _under_way(collectives)
    finding.enough = SLOW_ON_HOST if any(trace.on_host for trace in traces) else SLOW
    if len(collectives) < LEAST or window <= 0:
        return finding
    floor = max(FLOOR, 2 * noise)
    collectives = _repeated(finding, collectives, floor)
    _tally(finding, collectives, floor)
    ranks = {at for one in collectives for at in one.arrivals}
    finding.waiting = _part(finding, traces, ranks, window, {at: finding.tallies[at].waited for at in ranks})
    excess = {at: sum(one.excess for one in collectives if at in one.arrivals) for at in ranks}
    finding.excess = _part(finding, traces, ranks, window, excess)
    for look in (_slow, _persistent, _uneven, _rotating, _even):
        look(finding, collectives, floor)
        if finding.cause != "unknown":
            break
    for at in ranks:
        _look_back(
            finding.tallies[at], at, [one for one in collectives if one.last == at and one.delay > floor], traces
        )
    if finding.cause == "rotating-late-rank":
        _equal_work(finding, collectives)
    return finding


def _under_way(collectives: Sequence[Meeting]) -> Sequence[Meeting]:
    """Without the first of each group: profilers start at different moments, and its skew is theirs."""
    counts: Dict[object, int] = {}
    for one in collectives:
        counts[one.key] = counts.get(one.key, 0) + 1
    seen = set()
    kept = []
    for one in collectives:
        if one.key in seen or counts[one.key] < 4:
            kept.append(one)
        seen.add(one.key)
    return kept


def _repeated(finding: Finding, collectives: Sequence[Meeting], floor: float) -> Sequence[Meeting]:
    """Without the one or two that are late beyond all others: what happened once or twice is no habit of a rank."""
    order = sorted((one for one in collectives if one.delay > floor), key=lambda one: -one.delay)
    if len(order) < 3 or order[0].delay <= 5 * order[2].delay:
        if order and len(order) < 3 and len(collectives) > 10:
            finding.once = order[0]
            return [one for one in collectives if one not in order]
        return collectives
    finding.once = order[0]
    apart = [one for one in order[:2] if one.delay > 5 * order[2].delay]
    return [one for one in collectives if one not in apart]


def _part(
    finding: Finding, traces: Sequence[RankTrace], ranks: set[int], window: float, times: Mapping[int, float]
) -> float:
    """Of the time of a rank, on average; what is hidden behind compute costs nothing."""
    parts = []
    for at in ranks:
        shares = traces[at].shares
        most = 1.0 if shares is None else shares.exposed
        parts.append(min(times[at] / window, most))
    return sum(parts) / len(parts)


def _tally(finding: Finding, collectives: Sequence[Meeting], floor: float) -> None:
    apart: Dict[int, List[float]] = {}
    alone = total = 0.0
    for one in collectives:
        last = one.arrivals[one.last]
        middle = median(one.arrivals.values())
        for at, arrival in one.arrivals.items():
            tally = finding.tallies.setdefault(at, Tally())
            tally.waited += last - arrival
            if one.skew > floor:
                apart.setdefault(at, []).append(arrival - middle)
        if one.delay > floor:
            tally = finding.tallies[one.last]
            tally.delay += one.delay
            tally.times += 1
            alone += one.alone
            total += one.delay
    for at, values in apart.items():
        finding.tallies[at].usual = sum(values) / len(values)
    finding.alone = alone / total if total else 0.0


def _by_delay(finding: Finding) -> Tuple[List[int], float]:
    order = sorted(finding.tallies, key=lambda at: -finding.tallies[at].delay)
    return order, sum(tally.delay for tally in finding.tallies.values())


def _slow(finding: Finding, collectives: Sequence[Meeting], floor: float) -> None:
    """Transfers that take longer than others of their size, and cost more than waiting does."""
    if finding.excess < finding.enough or finding.excess < finding.waiting:
        return
    slow = [one for one in collectives if one.excess > 0]
    if len(slow) < 3:
        return
    finding.cause = "slow-transfer"
    finding.strength = sum(one.excess for one in slow) / sum(one.transfer for one in collectives)
    ranks = {at for one in collectives for at in one.arrivals}
    per = {at: sum(one.excess for one in slow if at in one.arrivals) for at in ranks}
    most = max(per.values())
    some = [at for at in ranks if per[at] > most / 2]
    finding.culprits = tuple(sorted(some)) if len(some) < len(ranks) else ()
    finding.slow_key = slow[0].key[0]


def _persistent(finding: Finding, collectives: Sequence[Meeting], floor: float) -> None:
    """One rank, or a few of many, that cause most of the delay."""
    order, total = _by_delay(finding)
    if finding.waiting < SMALL or not total:
        return
    top = finding.tallies[order[0]]
    few = max(1, len(order) // 4)
    if top.delay >= _MOST * total:
        culprits = [at for at in order[:few] if finding.tallies[at].delay >= total / 5]
    else:
        culprits, sum_of = [], 0.0
        for at in order[:few]:
            culprits.append(at)
            sum_of += finding.tallies[at].delay
            if sum_of >= _ALL * total:
                break
        else:
            return
        if len(culprits) == 1:
            return
    late = [one for one in collectives if one.last in culprits and one.delay > floor]
    if _distance(late, set(culprits)) < _ALWAYS_LAST_SHARE:
        return  # those that are no culprits are late as well
    finding.cause, finding.culprits = "late-rank", tuple(sorted(culprits))
    finding.strength = sum(finding.tallies[at].delay for at in culprits) / total


def _distance(late: Sequence[Meeting], culprits: set[int]) -> float:
    """How far the culprits come behind all others, as a part of how far they come behind the middle."""
    apart = sum(
        one.arrivals[one.last]
        - max((time for at, time in one.arrivals.items() if at not in culprits), default=one.first)
        for one in late
    )
    delay = sum(one.delay for one in late)
    return apart / delay if delay else 0.0


def _uneven(finding: Finding, collectives: Sequence[Meeting], floor: float) -> None:
    """Several ranks are late by amounts of their own on each occasion."""
    order, total = _by_delay(finding)
    if finding.waiting < ROTATES or not total or len(order) < 2:
        return
    times = sum(tally.times for tally in finding.tallies.values())
    usual = {at: finding.tallies[at].usual for at in order}
    if max(usual.values()) - min(usual.values()) < _STEADY * total / times:
        return
    middle = (max(usual.values()) + min(usual.values())) / 2
    finding.culprits = tuple(sorted(at for at in order if usual[at] > middle))
    finding.cause = "imbalance"
    finding.strength = sum(finding.tallies[at].delay for at in finding.culprits) / total


def _rotating(finding: Finding, collectives: Sequence[Meeting], floor: float) -> None:
    """Each time one rank stands out, and the turns go round."""
    order, total = _by_delay(finding)
    if finding.waiting < ROTATES or not total or len(order) < 2 or finding.alone < _ALONE:
        return
    fair = total / len(order)
    turns = [at for at in order if finding.tallies[at].delay > fair / 3]
    if len(turns) * 2 < len(order) or len(turns) < 2:
        return
    finding.cause, finding.culprits = "rotating-late-rank", tuple(sorted(turns))
    finding.strength = sum(finding.tallies[at].delay for at in turns) / total


def _equal_work(finding: Finding, collectives: Sequence[Meeting]) -> None:
    """Kernels of varying length on all ranks in turn are unequal work, not a pause."""
    tallies = [finding.tallies[at] for at in finding.culprits]
    if tallies and all(tally.before == "kernel" for tally in tallies) and finding.alone < 0.7:
        finding.cause = "imbalance"


def _even(finding: Finding, collectives: Sequence[Meeting], floor: float) -> None:
    if finding.waiting < ROTATES and finding.excess < finding.enough:
        finding.cause = "not-late"


def _look_back(tally: Tally, at: int, late: Sequence[Meeting], traces: Sequence[RankTrace]) -> None:
    """What the rank had done more of than its peers since the collective before."""
    if not late:
        return
    more: Dict[str, float] = {"kernel": 0.0, "copy": 0.0, "idle": 0.0}
    names: Dict[Tuple[str, str], float] = {}
    for one in late:
        own = _values(traces[at], one, at)
        if own is None:
            continue
        peers = [
            found for other in one.places if other != at for found in [_values(traces[other], one, other)] if found
        ]
        if not peers:
            continue
        for number, sort in enumerate(more):
            more[sort] += max(0.0, own[number] - median(peer[number] for peer in peers))
        before = traces[at].before[one.key]
        place = one.places[at]
        for sort, code, weight in (
            ("kernel", before.longest_name[place], before.longest[place] - median(peer[3] for peer in peers)),
            ("idle", before.host_name[place], own[2] - median(peer[2] for peer in peers)),
        ):
            if code >= 0 and weight > 0:
                names[sort, traces[at].names[code]] = names.get((sort, traces[at].names[code]), 0.0) + weight
    sort = max(more, key=lambda name: more[name])
    delay = sum(one.delay for one in late)
    tally.explained = more[sort] / delay if delay else 0.0
    if tally.explained < _REASON:
        return
    tally.before = sort
    named = {name: weight for (kind, name), weight in names.items() if kind == sort}
    if named:
        best = max(named, key=lambda name: named[name])
        if named[best] >= _REASON * more[sort]:
            tally.name = best
    column: Callable[[Tuple[float, ...]], float] = lambda values: values[list(more).index(sort)]  # noqa: E731
    owns = [column(found) for one in late for found in [_values(traces[at], one, at)] if found]
    others = [
        column(found)
        for one in late
        for other in one.places
        if other != at
        for found in [_values(traces[other], one, other)]
        if found
    ]
    tally.own = median(owns) if owns else 0.0
    tally.peers = median(others) if others else 0.0
    if tally.own <= _MORE * tally.peers:
        tally.before = tally.name = ""  # one occasion among many: no reason


def _values(trace: RankTrace, one: Meeting, at: int) -> Optional[Tuple[float, float, float, float]]:
    """Kernels, copies, no work, and the longest kernel, since the collective before."""
    before = trace.before.get(one.key)
    if before is None:
        return None
    place = one.places[at]
    copying = before.copying[place]
    return before.busy[place] - copying, copying, before.idle[place], before.longest[place]
