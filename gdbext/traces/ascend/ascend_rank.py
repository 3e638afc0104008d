"""A rank's folder of Ascend tables as a trace like any other, where its timeline (trace_view.json) is not there."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from gdbext.knowledge.ascend_tables import COMMUNICATION, IS_COMMUNICATION, KERNELS, STEPS
from gdbext.traces.ascend.ascend_files import Exchange, Kernel, Table, exchanges, kernels, read_step_shares
from gdbext.traces.event_reader import Contents
from gdbext.traces.first_pass import Collected, Collector
from gdbext.traces.rank_trace import RankTrace, finished
from gdbext.traces.trace_event import Event, make_event
from gdbext.traces.trace_files import ascend_rank, labels_of

_BLOCK = 4096
_PARTS = re.compile(IS_COMMUNICATION)


def read_tables(folder: str, causes: bool = True) -> Tuple[RankTrace, Collected]:
    """The trace of a rank out of its tables; what is wrong with them is in its problems."""
    contents, collector = Contents(), Collector(causes)
    met, ran = Table(), Table()
    said = _sorted(exchanges(_in(folder, COMMUNICATION), met)) if _there(folder, COMMUNICATION) else []
    own = list(kernels(_in(folder, KERNELS.file), ran)) if _there(folder, KERNELS.file) else []
    if said:
        own = [one for one in own if not _PARTS.search(one.name)]
    first = min([*(one.start for one in said), *(one.start for one in own)], default=0)
    base = first - first % 1_000_000_000
    contents.keys["baseTimeNanoseconds"] = base
    rank = rank_of(folder)
    if rank is not None:
        contents.keys["distributedInfo"] = {"rank": rank}
    for block in _blocks(said, own, base):
        contents.events += len(block)
        collector.take(block)
    _take_steps(own, base, collector.result)
    contents.problems += met.problems + ran.problems
    if not contents.events:
        contents.problems.append(f"it has neither {KERNELS.file} nor {COMMUNICATION} with anything in it")
    trace, found = finished(folder, contents, collector.result, causes)
    trace.labels = trace.labels or labels_of(os.path.basename(os.path.dirname(os.path.abspath(folder))))[1]
    if _there(folder, STEPS.file) and (trace.shares is None or not own):
        table = Table()
        by_step = read_step_shares(_in(folder, STEPS.file), table)
        trace.shares = by_step.get(None) or next(iter(by_step.values()), trace.shares)
        trace.problems += table.problems
    return trace, found


def rank_of(folder: str) -> Optional[int]:
    """By profiler_info_N.json beside the tables, else by the name of the folder above."""
    above = os.path.dirname(os.path.abspath(folder))
    rank = ascend_rank(above)
    return rank if rank is not None else labels_of(os.path.basename(above))[0]


def _in(folder: str, name: str) -> str:
    return os.path.join(folder, name)


def _there(folder: str, name: str) -> bool:
    return os.path.isfile(_in(folder, name))


def _sorted(found: Iterator[Exchange]) -> List[Exchange]:
    return sorted(found, key=lambda one: one.start)


def _blocks(said: Sequence[Exchange], own: Sequence[Kernel], base: int) -> Iterator[List[Event]]:
    events: List[Event] = []
    for event in (*(_exchange(one, base) for one in said), *(_kernel(one, base) for one in own)):
        events.append(event)
        if len(events) == _BLOCK:
            yield events
            events = []
    if events:
        yield events


def _kernel(one: Kernel, base: int) -> Event:
    args: Dict[str, object] = {"type": one.type, "core": one.core, "stream": one.stream}
    return _slice(one.name, one.stream, one.start, one.duration, base, args)


def _exchange(one: Exchange, base: int) -> Event:
    args: Dict[str, object] = {"Process Group Name": one.group}
    if one.number is not None:
        args["Seq"] = one.number
        if one.size >= 0:  # sizes as ranks see them may differ: with numbers nobody is matched by them
            args.update({"In msg nelems": one.size, "dtype": "byte"})
    return _slice(one.name, f"group {one.group}", one.start, one.duration, base, args)


def _slice(name: str, lane: str, start: int, duration: int, base: int, args: Dict[str, object]) -> Event:
    ts, length = (start - base) / 1000, duration / 1000
    return make_event(ph="X", cat="kernel", name=name, pid="Ascend", tid=lane, ts=ts, dur=length, args=args)


def _take_steps(own: Sequence[Kernel], base: int, found: Collected) -> None:
    spans: Dict[int, Tuple[int, int]] = {}
    for one in own:
        if one.step is not None:
            first, last = spans.get(one.step, (one.start, one.start))
            spans[one.step] = (min(first, one.start), max(last, one.start + one.duration))
    found.steps += [
        (step, (first - base) / 1000, (last - base) / 1000) for step, (first, last) in sorted(spans.items())
    ]
