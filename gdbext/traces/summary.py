"""Tables over ranks: each kernel and operator, how often and how long, on which rank more than on others."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from functools import partial
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.trace import ChangedRow, SummaryRow, TraceDifference, TraceFile, TraceSummary
from gdbext.traces.ascend import ascend_totals
from gdbext.traces.event_reader import Contents, blocks
from gdbext.traces.first_pass import COMMUNICATION, COPY, Collected, Collector
from gdbext.traces.totals import FileTotals, Totals
from gdbext.traces.trace_event import UNSET, number
from gdbext.traces.trace_files import labels_of, rank_in
from gdbext.traces.traces_of_job import Say, in_turn, size_of

BY = ("category", "stream", "stage", "step")
_NAMES = {COMMUNICATION: "communication", COPY: "copy"}
_STAGES = (("prefill", r"prefill|extend|context"), ("decode", r"decode|generation"))
_CHANGED = 1.1  # times as long, from which a kernel is slower
_MATTERS = 0.001  # part of all time, below which a change is none


Reader = Callable[[str, str], FileTotals]  # path, by
READERS: Tuple[Tuple[str, Reader], ...] = ((ascend_totals.PATH, ascend_totals.read),)
"""Readers of other tables: a pattern of the whole path, and who reads it."""


def read_totals(path: str, by: str, steps: Optional[Sequence[int]] = None) -> FileTotals:
    """The totals of one file: a trace, or a table for which a reader is known."""
    for pattern, reader in READERS:
        if re.search(pattern, path):
            return reader(path, by)
    span = _span(path, steps)
    contents = Contents()
    collector = Collector()
    rank, labels = labels_of(path)
    found = FileTotals(path=path, rank=rank, labels=labels)
    try:
        with open(path, "rb") as file:
            for events in blocks(file, contents):
                collector.take(events)
                for event in events:
                    if event.ph == "X" and (event.cat == "cpu_op" or event.cat == "Operator"):
                        start, length = number(event.ts), number(event.dur) if event.dur is not UNSET else None
                        if start is not None and length is not None and span[0] <= start <= span[1]:
                            sort = "cpu_op" if by != "stream" else f"thread {event.tid}"
                            found.rows.setdefault((sort, str(event.name)[:400]), Totals()).add(max(0.0, length))
    except OSError as error:
        contents.problems.append(f"it cannot be read: {error.strerror or error}")
    said, _ = rank_in(contents.keys)
    found.rank = said if said is not None else rank
    found.events, found.problems = contents.events, contents.problems
    result = collector.result
    _of_devices(found, result, by, span)
    since, until = max(span[0], result.first), min(span[1], result.last)
    found.window = max(0.0, until - since)
    return found


def _span(path: str, steps: Optional[Sequence[int]]) -> Tuple[float, float]:
    """The time of the steps that are asked for: they may be named at the end of the file, so it is read for them."""
    if steps is None:
        return float("-inf"), float("inf")
    collector = Collector()
    with open(path, "rb") as file:
        for events in blocks(file, Contents()):
            collector.take(events)
    spans = [(start, end) for number, start, end in collector.result.steps if number in steps]
    if not spans:
        raise UsageError(f"{os.path.basename(path)} has no such step", "without --steps all are counted")
    return min(start for start, _ in spans), max(end for _, end in spans)


def _of_devices(found: FileTotals, result: Collected, by: str, span: Tuple[float, float]) -> None:
    work = result.device
    stage = _stages(found.path, result) if by == "stage" else _steps(result) if by == "step" else None
    for at, start in enumerate(work.start):
        if not span[0] <= start <= span[1]:
            continue
        if by == "stream":
            sort = f"stream {result.lanes[work.lane[at]][1]}"
        elif stage is not None:
            sort = stage(start)
        else:
            sort = _NAMES.get(work.sort[at], "kernel")
        found.rows.setdefault((sort, result.names[work.name[at]]), Totals()).add(work.length[at])


def _stages(path: str, result: Collected) -> Callable[[float], str]:
    """Prefill or decode: by the name of the file (SGLang's profile by stage), else by the annotation around it."""
    named = re.search(r"-(EXTEND|DECODE|PREFILL)\b", os.path.basename(path))
    if named:
        word = "decode" if named[1] == "DECODE" else "prefill"
        return lambda start: word
    notable = result.notable
    spans = sorted(
        (notable.start[at], notable.start[at] + notable.length[at], stage)
        for at in range(len(notable.start))
        for stage, pattern in _STAGES
        if re.search(pattern, result.names[notable.name[at]], re.IGNORECASE)
    )
    return _begun([(start, stage) for start, _, stage in spans], "other")


def _steps(result: Collected) -> Callable[[float], str]:
    """By the last step that had begun: devices run behind the host that names the steps."""
    return _begun(
        [(start, f"step {number}") for number, start, _ in sorted(result.steps, key=lambda one: one[1])], "before"
    )


def _begun(marks: Sequence[Tuple[float, str]], before: str) -> Callable[[float], str]:
    starts = [start for start, _ in marks]

    def name_at(start: float) -> str:
        position = bisect_right(starts, start)
        return marks[position - 1][1] if position else before

    return name_at


def summarise(
    paths: Sequence[str], by: str, most: int, say: Say, steps: Optional[Sequence[int]] = None, jobs: int = 0
) -> TraceSummary:
    """One table of all files. Raises `GdbextError` when none can be read."""
    read: List[FileTotals] = []
    for count, one in enumerate(
        in_turn(partial(read_totals, by=by, steps=steps), list(paths), size_of(paths), jobs), 1
    ):
        read.append(one)
        say(f"read {count} of {len(paths)}: {one.events} events of {os.path.basename(one.path)}")
    if not any(one.rows for one in read):
        why = next((one.problems[0] for one in read if one.problems), "no slice has a duration")
        raise GdbextError(f"nothing to count in {len(read)} files: {why}", "give the files that the profiler wrote")
    read.sort(key=lambda one: (one.rank if one.rank is not None else 1 << 40, one.path))
    return table_of(read, by, most)


def table_of(read: Sequence[FileTotals], by: str, most: int) -> TraceSummary:
    """The rows of all files, the longest first."""
    files = tuple(
        TraceFile(
            index=at,
            path=one.path,
            rank=one.rank,
            labels=one.labels,
            events=one.events,
            state="lost" if not one.rows else "partial" if one.problems else "ok",
            problems=tuple(one.problems),
        )
        for at, one in enumerate(read)
    )
    window = sum(one.window for one in read)
    rows: Dict[Tuple[str, str], Dict[int, Totals]] = {}
    for at, one in enumerate(read):
        for key, totals in one.rows.items():
            rows.setdefault(key, {})[at] = totals
    found = [
        SummaryRow(
            name=name,
            sort=sort,
            count=sum(one.count for one in per.values()),
            total=sum(one.total for one in per.values()),
            least=min(one.least for one in per.values()),
            most=max(one.most for one in per.values()),
            share=sum(one.total for one in per.values()) / window if window else 0.0,
            ranks={at: one.total for at, one in per.items()},
            counts={at: one.count for at, one in per.items()},
        )
        for (sort, name), per in rows.items()
    ]
    found.sort(key=lambda row: (-row.total, row.name))
    return TraceSummary(files=files, rows=tuple(found[:most]), by=by, total=window, left_out=max(0, len(found) - most))


def compare(before: TraceSummary, after: TraceSummary, most: int) -> TraceDifference:
    """What is new, gone, slower and faster. Both hold all of their rows."""
    old, new = ({(row.sort, row.name): row for row in one.rows} for one in (before, after))
    scale = max(1, len(before.files)), max(1, len(after.files))
    least = _MATTERS * max(sum(row.total for row in before.rows), sum(row.total for row in after.rows))
    rows = []
    for key in dict.fromkeys((*old, *new)):
        one, two = old.get(key), new.get(key)
        total = one.total / scale[0] if one else 0.0, two.total / scale[1] if two else 0.0
        mean = one.mean if one else 0.0, two.mean if two else 0.0
        change = "new" if one is None else "gone" if two is None else _change(mean)
        if change == "same" or abs(total[1] - total[0]) * max(scale) < least:
            continue
        rows.append(ChangedRow(key[1], change, (one.count if one else 0, two.count if two else 0), mean, total))
    rows.sort(key=lambda row: -abs(row.total[1] - row.total[0]))
    return TraceDifference(before, after, tuple(rows[:most]))


def _change(mean: Tuple[float, float]) -> str:
    if mean[1] > _CHANGED * mean[0]:
        return "slower"
    return "faster" if mean[0] > _CHANGED * mean[1] else "same"
