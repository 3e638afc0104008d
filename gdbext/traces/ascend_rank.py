"""A rank's folder of Ascend tables as a trace like any other, where its timeline (trace_view.json) is not there."""

from __future__ import annotations

import os
import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from gdbext.knowledge.ascend_tables import (
    COMMUNICATION,
    FOLDER,
    IS_COMMUNICATION,
    KERNELS,
    OPERATORS,
    RANK_FILE,
    STEPS,
    TRACE_VIEW,
)
from gdbext.model.trace import SummaryRow, TraceFile, TraceSummary
from gdbext.traces.ascend import Exchange, Kernel, Operator, Table, exchanges, kernels, operators, shares
from gdbext.traces.collecting import Collected, Collector
from gdbext.traces.events import Event, made
from gdbext.traces.finding import labels_of
from gdbext.traces.rank import RankTrace, finished
from gdbext.traces.reading import Contents

_BLOCK = 4096
_PARTS = re.compile(IS_COMMUNICATION)
_RANK = re.compile(RANK_FILE)


def folders_in(place: str) -> List[str]:
    """The folders with tables below a folder, each of one rank."""
    found = []
    for folder, below, names in os.walk(place):
        below.sort()
        if is_ascend(folder, names):
            found.append(folder)
    return found


def is_ascend(folder: str, names: Optional[Sequence[str]] = None) -> bool:
    """Whether a folder holds the tables of a rank."""
    if names is None:
        try:
            names = os.listdir(folder)
        except OSError:
            return False
    return os.path.basename(folder) == FOLDER or KERNELS.file in names or OPERATORS.file in names


def has_timeline(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, TRACE_VIEW + end)) for end in ("", ".gz"))


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
        by_step = shares(_in(folder, STEPS.file), table)
        trace.shares = by_step.get(None) or next(iter(by_step.values()), trace.shares)
        trace.problems += table.problems
    return trace, found


def rank_of(folder: str) -> Optional[int]:
    """By profiler_info_N.json beside the tables, else by the name of the folder above."""
    above = os.path.dirname(os.path.abspath(folder))
    try:
        found = [_RANK.fullmatch(name) for name in sorted(os.listdir(above))]
    except OSError:
        found = []
    numbers = [int(one["rank"]) for one in found if one is not None]
    return numbers[0] if len(numbers) == 1 else labels_of(os.path.basename(above))[0]


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
    return made(ph="X", cat="kernel", name=name, pid="Ascend", tid=lane, ts=ts, dur=length, args=args)


def _take_steps(own: Sequence[Kernel], base: int, found: Collected) -> None:
    spans: Dict[int, Tuple[int, int]] = {}
    for one in own:
        if one.step is not None:
            first, last = spans.get(one.step, (one.start, one.start))
            spans[one.step] = (min(first, one.start), max(last, one.start + one.duration))
    found.steps += [
        (step, (first - base) / 1000, (last - base) / 1000) for step, (first, last) in sorted(spans.items())
    ]


def summary(folders: Sequence[str]) -> TraceSummary:
    """Operators over ranks by op_statistic.csv, or by kernel_details.csv where a rank has no such table."""
    files: List[TraceFile] = []
    rows: Dict[Tuple[str, str], SummaryRow] = {}
    for index, folder in enumerate(folders):
        table = Table()
        path = _in(folder, OPERATORS.file)
        found = list(operators(path, table)) if os.path.isfile(path) else list(_counted(folder, table))
        rank = rank_of(folder)
        state = "lost" if not found else "partial" if table.problems else "ok"
        files.append(TraceFile(index, folder, rank, events=table.lines, state=state, problems=tuple(table.problems)))
        for one in found:
            _add(rows, index, one.type, one.core, one.calls, one.total, one.least, one.most)
    total = sum(row.total for row in rows.values())
    shared = [_shared(row, total) for row in rows.values()]
    return TraceSummary(tuple(files), tuple(sorted(shared, key=lambda row: -row.total)), "category", total)


def _counted(folder: str, table: Table) -> Iterator[Operator]:
    """Operators by their kernels."""
    found: Dict[Tuple[str, str], _Calls] = {}
    for kernel in kernels(_in(folder, KERNELS.file), table):
        name = kernel.type or kernel.name
        found.setdefault((name, kernel.core), _Calls(name, kernel.core)).add(kernel.duration / 1000)
    for one in found.values():
        yield Operator(one.type, one.core, one.calls, one.total, one.least, one.most)


class _Calls:
    def __init__(self, type: str, core: str) -> None:
        self.type, self.core = type, core
        self.calls, self.total, self.least, self.most = 0, 0.0, float("inf"), 0.0

    def add(self, length: float) -> None:
        self.calls += 1
        self.total += length
        self.least, self.most = min(self.least, length), max(self.most, length)


def _add(
    rows: Dict[Tuple[str, str], SummaryRow],
    index: int,
    name: str,
    core: str,
    count: int,
    total: float,
    least: float,
    most: float,
) -> None:
    old = rows.get((name, core), SummaryRow(name, core, 0, 0.0, float("inf"), 0.0, 0.0))
    rows[name, core] = SummaryRow(
        name,
        core,
        old.count + count,
        old.total + total,
        min(old.least, least),
        max(old.most, most),
        0.0,
        {**old.ranks, index: old.ranks.get(index, 0.0) + total},
        {**old.counts, index: old.counts.get(index, 0) + count},
    )


def _shared(row: SummaryRow, total: float) -> SummaryRow:
    share = row.total / total if total else 0.0
    return SummaryRow(row.name, row.sort, row.count, row.total, row.least, row.most, share, row.ranks, row.counts)
