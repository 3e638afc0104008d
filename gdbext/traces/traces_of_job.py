"""The traces of one job: read side by side, those of other runs left out, in the order of the ranks, on one clock."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, TypeVar

from gdbext.knowledge.traces import ORDER
from gdbext.model.errors import GdbextError, NothingFound
from gdbext.model.text.ranges import counted, ranges_text
from gdbext.model.trace import Clock, TraceFile
from gdbext.traces.ascend.ascend_rank import read_tables
from gdbext.traces.clocks import align, bases
from gdbext.traces.rank_trace import RankTrace, read_rank

MOST_WORKERS = 4
"""Files read at a time: each takes up to some 100 MB."""
_PARALLEL_BYTES = 2 << 20  # bytes on disk
_LARGE = 256 << 20  # the same: two files at a time take some 300 MB then
_OTHER_RUN = 600e6  # microseconds between two runs; clocks of hosts are nearer
_RUN = re.compile(r"^(?P<run>.+?)-(?:TP|DP|PP|EP)-\d.*?(?P<stage>-[A-Z]{3,})?\.trace\.json", re.IGNORECASE)
T = TypeVar("T")
U = TypeVar("U")
Say = Callable[[str], None]


@dataclass
class Job:
    """What is judged. `problems` hold for all files; those of one are in `files`."""

    traces: List[RankTrace]
    clocks: List[Clock]
    files: Tuple[TraceFile, ...]
    problems: List[str] = field(default_factory=list)
    missing: Tuple[int, ...] = ()  # ranks without a file

    @property
    def window(self) -> float:
        """Microseconds from the first event to the last, of the longest file."""
        return max((trace.last - trace.first for trace in self.traces), default=0.0)


def in_turn(work: Callable[[T], U], items: Sequence[T], size: int, jobs: int = 0) -> Iterable[U]:
    """The results in order, by several processes where the bytes of all files make that pay."""
    most = 1 if size <= _PARALLEL_BYTES else min(MOST_WORKERS if size <= _LARGE else 2, len(os.sched_getaffinity(0)))
    count = min(len(items), jobs or most)
    if count < 2:
        yield from map(work, items)
        return
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), initializer=_leave_interrupts_alone)
    try:
        yield from pool.map(work, items)
    except BrokenProcessPool:
        raise GdbextError("a helper process was killed, perhaps for its memory", "--jobs 1 needs the least") from None
    except BaseException:  # an interrupt too: what they do is of no use any more
        for process in (getattr(pool, "_processes", None) or {}).values():
            process.terminate()
        raise
    finally:
        pool.shutdown()


def _leave_interrupts_alone() -> None:
    """Ctrl-C is for the command, which ends its helpers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _read(path: str, causes: bool) -> RankTrace:
    return (read_tables if os.path.isdir(path) else read_rank)(path, causes)[0]


def read_job(paths: Sequence[str], causes: bool, say: Say, jobs: int = 0) -> Job:
    """Read all files and put them on one clock. Raises `NothingFound` when none can be read."""
    traces: List[RankTrace] = []
    reader = partial(_read, causes=causes)
    ordered = sorted(paths, key=lambda path: -size_of([path]))  # the largest first, so that none is alone at the end
    for number, trace in enumerate(in_turn(reader, ordered, size_of(paths), jobs), 1):
        traces.append(trace)
        say(f"read {number} of {len(paths)}: {trace.events} events of {os.path.basename(trace.path)}")
    return build_job(traces)


def size_of(paths: Sequence[str]) -> int:
    """Bytes on disk."""
    total = 0
    for path in paths:
        with contextlib.suppress(OSError):
            total += os.stat(path).st_size
    return total


def build_job(traces: Sequence[RankTrace]) -> Job:
    """Sort out what is of one run, and align it."""
    problems: List[str] = []
    read = [trace for trace in traces if trace.events]
    lost = [trace for trace in traces if not trace.events]
    if not read:
        first = lost[0]
        why = first.problems[0] if first.problems else "it has no events"
        raise NothingFound(
            f"none of {len(lost)} files is a readable trace; {os.path.basename(first.path)}: {why}"
            if len(lost) > 1
            else f"{first.path} is not a readable trace: {why}",
            "give the *.json or *.json.gz files that torch.profiler wrote",
        )
    read = _once(_one_run(read, problems), problems)
    read.sort(key=_place)
    clocks = align(read)
    missing = _missing(read, problems)
    kept = [_file(index, trace, clock) for index, (trace, clock) in enumerate(zip(read, clocks))]
    kept += [_file(len(read) + index, trace, None) for index, trace in enumerate(lost)]
    return Job(read, clocks, tuple(kept), problems, missing)


def _place(trace: RankTrace) -> Tuple[Any, ...]:
    return (
        *(trace.labels.get(kind, 0) for kind in ORDER),
        trace.rank if trace.rank is not None else 1 << 40,
        trace.path,
    )


def _file(index: int, trace: RankTrace, clock: Optional[Clock]) -> TraceFile:
    state = "lost" if not trace.events else "partial" if _damaged(trace.problems) else "ok"
    return TraceFile(
        index=index,
        path=trace.path,
        rank=trace.rank,
        labels=trace.labels,
        host=trace.host,
        pid=trace.pid,
        world_size=trace.world_size,
        events=trace.events,
        state=state,
        problems=tuple(trace.problems),
        clock=clock,
    )


_HARMLESS = re.compile(r"unknown phase|end before they begin|beyond the first")


def _damaged(problems: Sequence[str]) -> bool:
    return any(not _HARMLESS.search(one) for one in problems)


def _one_run(traces: List[RankTrace], problems: List[str]) -> List[RankTrace]:
    """The run with the most files: names that SGLang gives to runs, and times that lie apart, tell them."""
    by_name: Dict[Any, List[RankTrace]] = {}
    for trace in traces:
        named = _RUN.match(os.path.basename(trace.path))
        by_name.setdefault((named["run"], named["stage"]) if named else None, []).append(trace)
    runs = []
    for some in by_name.values():
        base, comparable = bases(some)
        if not comparable:
            runs.append(some)
            continue
        timed = sorted(
            ((one.first + start, one.last + start, one) for one, start in zip(some, base)), key=lambda x: x[0]
        )
        run: List[RankTrace] = []
        until = timed[0][1]
        for first, last, one in timed:
            if first > until + _OTHER_RUN:
                runs.append(run)
                run = []
            run.append(one)
            until = max(until, last)
        runs.append(run)
    runs.sort(key=lambda run: (len(run), max(os.stat(one.path).st_mtime for one in run)))
    kept = runs.pop()
    if runs:
        names = ", ".join(os.path.basename(one.path) for run in runs for one in run[:3])
        count = sum(map(len, runs))
        problems.append(f"{counted(count, 'file')} of another run left out: {names}{', ...' if count > 3 else ''}")
    return kept


def _once(traces: List[RankTrace], problems: List[str]) -> List[RankTrace]:
    """Each rank once: the file with the most events."""
    known: Dict[Any, RankTrace] = {}
    kept: List[RankTrace] = []
    for trace in sorted(traces, key=lambda one: -one.events):
        if trace.rank is None and not trace.labels:
            kept.append(trace)
            continue
        other = known.setdefault(trace.name, trace)
        if other is trace:
            kept.append(trace)
        else:
            what = " ".join(f"{kind.upper()}{number}" for kind, number in trace.labels.items()) or f"rank {trace.rank}"
            problems.append(
                f"{what} is there twice: {os.path.basename(trace.path)} was left out, "
                f"{os.path.basename(other.path)} has more events or comes first"
            )
    return kept


def _missing(traces: Sequence[RankTrace], problems: List[str]) -> Tuple[int, ...]:
    """Ranks of the job without a file."""
    sizes = {trace.world_size for trace in traces if trace.world_size}
    if len(sizes) > 1:
        problems.append(f"the files are of jobs with {' and '.join(map(str, sorted(sizes)))} ranks")
    known = {trace.rank for trace in traces}
    if len(sizes) != 1 or None in known or any(trace.labels.keys() & {"dp"} for trace in traces):
        return ()
    world = min(sizes.pop(), 1 << 16)
    missing = tuple(rank for rank in range(world) if rank not in known)
    if missing:
        problems.append(f"no trace of rank{'s' if len(missing) > 1 else ''} {ranges_text(missing)} of {world}")
    return missing
