"""All ranks in one file: each is read twice, once for its clock and its overlaps, once to be written.

Each rank is compressed by a process of its own into a scratch file; the parts stand one behind the other in one gzip
file. What goes in and what comes out is counted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from array import array
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, Dict, List, Optional, Sequence, Tuple

from gdbext import __version__
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.trace import Clock, MergeReport, TraceFile
from gdbext.traces.event_reader import Contents, blocks
from gdbext.traces.gzip_parts import HEAD, Part, Sum, compress_part, end
from gdbext.traces.merged_rank import Rewriter, Task, Wanted
from gdbext.traces.overlap_lanes import lanes
from gdbext.traces.rank_trace import RankTrace, read_rank
from gdbext.traces.trace_event import dumped, encode
from gdbext.traces.traces_of_job import Job, Say, build_job, in_turn, size_of

Window = Optional[Tuple[float, float]]


@dataclass(frozen=True)
class Asked:
    """What shall be merged. `window`: seconds since the first event of all."""

    window: Window = None
    steps: Optional[Sequence[int]] = None
    ranks: Optional[Sequence[int]] = None
    threads: str = ""
    kernels: str = ""
    aligned: bool = False  # refuse what cannot be aligned


@dataclass
class Scan:
    """A file after its first reading."""

    trace: RankTrace
    task: Task


@dataclass
class Written:
    """What became of the events of one rank."""

    read: int
    events: int
    left_out: int
    invalid: int
    moved: int
    added: int
    name: str = ""  # of the scratch file
    sum: Sum = field(default_factory=Sum)

    @staticmethod
    def by(rewriter: Rewriter, read: int, events: int, added: int) -> Written:
        left_out, invalid, moved = rewriter.left_out, rewriter.invalid, rewriter.moved
        return Written(read=read, events=events, left_out=left_out, invalid=invalid, moved=moved, added=added)


def scan(path: str) -> Scan:
    """The first reading: clock and lanes."""
    trace, found = read_rank(path, causes=False)
    numbers, used = lanes(found.device)
    host_numbers, host_used = lanes(found.spans) if found.spans is not None else (array("b"), {})
    several = {found.lanes[track]: count for track, count in {**host_used, **used}.items() if count > 1}
    task = Task(path=path, index=0, name="", clock=Clock(method="none"), wanted=Wanted(), pids=trace.pids)
    task.devices = list(dict.fromkeys(pid for pid, _ in (found.lanes[track] for track in used)))
    task.process_names = found.process_names
    task.thread_names = found.thread_names
    if several:
        task.lanes, task.host_lanes, task.tracks = numbers, host_numbers, several
    return Scan(trace, task)


def merge(paths: Sequence[str], asked: Asked, file: BinaryIO, output: str, say: Say, jobs: int = 0) -> MergeReport:
    """Write the merged trace into `file`. Raises `GdbextError`; then the file is no trace."""
    scans: Dict[str, Scan] = {}
    ordered = sorted(paths, key=lambda path: -size_of([path]))
    for count, one in enumerate(in_turn(scan, ordered, size_of(paths), jobs), 1):
        scans[one.trace.path] = one
        say(f"read {count} of {len(paths)}: {one.trace.events} events of {os.path.basename(one.trace.path)}")
    job = build_job([one.trace for one in scans.values()])
    tasks = tasks_of(job, scans, asked)
    if not tasks:
        raise UsageError("no rank is left", "--ranks takes numbers as gdbext trace diagnose shows them")
    folder = tempfile.mkdtemp(prefix=".gdbext-merge-", dir=_draft_path(output))
    try:
        say(f"writing; meanwhile scratch files as large as the result are in {folder}")
        return _write(job, tasks, folder, file, output, say, jobs)
    except OSError as error:
        raise GdbextError(f"cannot write {output}: {error.strerror}", "the scratch files were removed") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _draft_path(output: str) -> Optional[str]:
    folder = os.path.dirname(os.path.abspath(output))
    return folder if os.path.isdir(folder) and os.access(folder, os.W_OK) and not folder.startswith("/dev") else None


def tasks_of(job: Job, scans: Dict[str, Scan], asked: Asked) -> List[Task]:
    """What is written, and on which clock. Raises `GdbextError`."""
    start = min(
        (trace.first + clock.offset_us for trace, clock in zip(job.traces, job.clocks) if trace.first < float("inf")),
        default=0.0,
    )
    tasks = []
    for index, (trace, clock) in enumerate(zip(job.traces, job.clocks)):
        file = job.files[index]
        number = trace.rank if trace.rank is not None else index
        if asked.ranks is not None and number not in asked.ranks:
            continue
        if asked.aligned and not clock.aligned:
            raise GdbextError(
                f"the clock of {file.name} cannot be aligned: too few collectives in common with {job.files[0].name}",
                "without --require-aligned it is merged by the start that its profiler wrote",
            )
        wanted = Wanted(threads=asked.threads, kernels=asked.kernels)
        if asked.window is not None:
            since, until = (start + 1e6 * second - clock.offset_us for second in asked.window)
            wanted = replace(wanted, since=since, until=until)
        if asked.steps is not None:
            wanted = _of_steps(trace, asked.steps, wanted)
        tasks.append(replace(scans[trace.path].task, index=index, name=file.name, clock=clock, wanted=wanted))
    return tasks


def _of_steps(trace: RankTrace, steps: Sequence[int], wanted: Wanted) -> Wanted:
    spans = [(start, end) for number, start, end in trace.steps if number in steps]
    if not spans:
        have = sorted({number for number, _, _ in trace.steps})
        known = f"it has {have[0]} to {have[-1]}" if have else "it has none (ProfilerStep#N, execute_N)"
        raise UsageError(f"{os.path.basename(trace.path)} has no such step; {known}", "--window takes seconds instead")
    return replace(
        wanted,
        since=max(wanted.since, min(start for start, _ in spans)),
        until=min(wanted.until, max(end for _, end in spans)),
    )


def _part(task: Task, folder: str) -> Written:
    """One rank, compressed."""
    contents = Contents()
    rewriter = Rewriter(task)
    name = os.path.join(folder, str(task.index))
    count = 0
    with open(task.path, "rb") as source, open(name, "wb", 1 << 20) as target:
        part = Part(target)
        for events in blocks(source, contents):
            kept = rewriter.take(events)
            if kept:
                part.write((b",\n" if count else b"") + encode(kept))
                count += len(kept)
        added = rewriter.more()
        if added:
            part.write((b",\n" if count else b"") + encode(added))
        part.close()
    return replace(Written.by(rewriter, contents.events, count, len(added)), name=name, sum=part.sum)


def _write(
    job: Job, tasks: Sequence[Task], folder: str, file: BinaryIO, output: str, say: Say, jobs: int
) -> MergeReport:
    total = Sum()
    size = file.write(HEAD)

    def put(text: bytes) -> None:
        nonlocal total, size
        packed, more = compress_part(text)
        size += file.write(packed)
        total = total + more

    put(_head(job, tasks))
    parts: List[Written] = []
    for count, part in enumerate(
        in_turn(partial(_part, folder=folder), tasks, size_of([task.path for task in tasks]), jobs), 1
    ):
        if parts and part.sum.length:
            put(b",\n")
        with open(part.name, "rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
            size += source.tell()
        os.unlink(part.name)
        total = total + part.sum
        parts.append(part)
        say(f"wrote {count} of {len(tasks)}: {part.events} events of {tasks[count - 1].name}")
    put(_foot(job, tasks, parts, output))
    size += file.write(end(total))
    return report_of(job, tasks, parts, output, size)


def report_of(job: Job, tasks: Sequence[Task], parts: Sequence[Written], output: str, size: int) -> MergeReport:
    """What was read and written of all ranks; files that changed between the two readings are a problem."""
    before = {task.path: job.traces[task.index].events for task in tasks}
    problems = list(job.problems)
    for task, part in zip(tasks, parts):
        if part.read != before[task.path] or part.read != part.events + part.left_out + part.invalid:
            problems.append(
                f"{task.name}: {before[task.path]} events were read first and {part.read} then, {part.events} were "
                "written: the file changed meanwhile, merge it again"
            )
    chosen = {task.index for task in tasks}
    return MergeReport(
        files=tuple(one for one in job.files if one.index in chosen or one.state == "lost"),
        output=output,
        events_in=sum(part.read for part in parts),
        events_out=sum(part.events for part in parts),
        left_out=sum(part.left_out for part in parts),
        invalid=sum(part.invalid for part in parts),
        added=sum(part.added for part in parts),
        moved=sum(part.moved for part in parts),
        lanes=sum(count - 1 for task in tasks for count in task.tracks.values()),
        size=size,
        problems=tuple(problems),
    )


def _head(job: Job, tasks: Sequence[Task]) -> bytes:
    """The keys in front of the events: those that all ranks have alike, and the devices of all."""
    first = job.traces[tasks[0].index].keys
    alike = {
        key: value
        for key, value in first.items()
        if key
        not in ("deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName", "host_name", "trace_id")
        and all(job.traces[task.index].keys.get(key) == value for task in tasks)
    }
    devices = [
        {**one, "rank": task.name}
        for task in tasks
        for one in _listed(job.traces[task.index].keys.get("deviceProperties"))
    ]
    starts = [trace.base_us for trace in job.traces]
    if starts and all(one is not None for one in starts):
        alike["baseTimeNanoseconds"] = round(1000 * min(one for one in starts if one is not None))
    return dumped({**alike, "deviceProperties": devices})[:-1] + b',"traceEvents":[\n'


def _listed(value: Any) -> List[Dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _foot(job: Job, tasks: Sequence[Task], parts: Sequence[Written], output: str) -> bytes:
    """What was done to each rank: with it the times of the files can be had back."""
    ranks = [_of_rank(job.files[task.index], job.traces[task.index], part) for task, part in zip(tasks, parts)]
    said = {"tool": f"gdbext {__version__}", "ranks": ranks, "problems": job.problems}
    return b'\n],"traceName":' + dumped(os.path.basename(output)) + b',"gdbext":' + dumped(said) + b"}\n"


def _of_rank(file: TraceFile, trace: RankTrace, part: Written) -> Dict[str, Any]:
    clock = file.clock
    return {
        "name": file.name,
        "file": os.path.basename(file.path),
        "rank": file.rank,
        "host": file.host,
        "distributedInfo": trace.keys.get("distributedInfo"),
        "events": part.events,
        "problems": list(file.problems),
        "clock": clock
        and {
            "method": clock.method,
            "aligned": clock.aligned,
            "offset_us": round(clock.offset_us),
            "drift": clock.drift,
            "since": clock.since,
            "pairs": clock.pairs,
            "residual_us": clock.residual_us,
            "residual_p99_us": clock.residual_p99_us,
        },
    }
