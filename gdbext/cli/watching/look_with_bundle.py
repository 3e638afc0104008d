"""One full look at a job that is followed: judged, and kept as a bundle in a folder that does not grow for ever."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import List, Optional, Tuple

from gdbext import __version__
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.cli import diagnosis_bundle
from gdbext.collect.live_ranks import Limits, Look
from gdbext.collect.progress import Progress
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import refused_as
from gdbext.model.job import Job, JobSnapshot
from gdbext.model.verdict import Diagnosis
from gdbext.model.watching import WatchEvent
from gdbext.scrubbing.secrets_in_text import scrub_text

_BUNDLE = re.compile(r"\d{8}-\d{6}-[a-z0-9-]+$")


@dataclass(frozen=True)
class Asked:
    """What a look is to be: `first` is the look of this standstill that could not tell, judged together with it.
    `stood`: for how long the job has stood still, where that was watched."""

    stood: Optional[float]
    spinning_after: float
    first: Optional[JobSnapshot] = None


def take(job: Job, limits: Limits, asked: Asked, progress: Progress, proc: ProcFS) -> Diagnosis:
    """Raises `GdbextError` where nothing could be read."""
    snapshot = Look(job, limits, progress, proc).take()
    snapshot = replace(snapshot, tool=f"gdbext {__version__}", command="gdbext watch")
    earlier = (asked.first,) if asked.first else ()
    diagnosis = judge(replace(snapshot, earlier=earlier) if earlier else snapshot, None, asked.spinning_after)
    return replace(diagnosis, tree=merge(snapshot, diagnosis.processes))


def watch_event(diagnosis: Diagnosis, asked: Asked, where: Optional[str] = None) -> WatchEvent:
    """The look as an event: hang, undecided or no-hang. `where` is its bundle."""
    verdict, snapshot = diagnosis.verdict, diagnosis.snapshot
    ranks = [snapshot.processes[index].rank for index in verdict.culprits]
    again = f" gdbext diagnoses it again in {asked.spinning_after:g} s."
    if verdict.decided_by is not None:
        kind, lead, then = "undecided", "most ranks made no progress for {}. ", "" if asked.first else again
    elif not verdict.finding:
        kind, lead, then = "no-hang", "no progress for {}, but this is not a hang: ", ""
    else:
        kind, lead, then = "hang", "no progress for {}. ", ""
    text = verdict.summary if asked.stood is None else lead.format(f"{asked.stood:.0f} s") + verdict.summary + then
    return WatchEvent(
        kind=kind,
        text=scrub_text(text),
        at=time.time(),
        bundle=where,
        cause=verdict.cause if kind == "hang" else None,
        confidence=verdict.confidence if kind == "hang" else None,
        culprits=tuple(rank for rank in ranks if rank is not None) if kind == "hang" else (),
        standstill=asked.stood,
        steps=tuple(scrub_text(one.action) for one in verdict.remedies) if kind == "hang" else (),
        pause_ms=max((one.pause_ms for one in snapshot.processes if one.pause_ms is not None), default=None),
    )


def folder(name: str) -> Path:
    """The folder of the bundles, made where it is missing. Raises `GdbextError`."""
    into = Path(name)
    with refused_as(f"cannot write to {into}"):
        into.mkdir(mode=0o700, exist_ok=True)
    return into


def write_bundle(diagnosis: Diagnosis, into: Path, most: int) -> str:
    """Write the bundle and take away the oldest ones of this folder beyond `most`."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    where = into / f"{stamp}-{diagnosis.verdict.cause}"
    diagnosis_bundle.write(str(where), diagnosis)
    for old in bundles_in(into)[:-most]:
        shutil.rmtree(old, ignore_errors=True)
    return str(where)


def bundles_in(into: Path) -> List[Path]:
    """The bundles that a watch wrote there, oldest first; nothing else is ever taken away."""
    found = [
        path for path in into.iterdir() if _BUNDLE.match(path.name) and (path / diagnosis_bundle.SNAPSHOT).is_file()
    ]
    return sorted(found)


def limit_bundle_bytes(folders: Tuple[Path, ...], most: int) -> Tuple[int, int]:
    """Take away the oldest bundles until all of them have no more than `most` bytes; the newest one stays, whatever its
    size. Returns how many went, and the bytes that are left."""
    every = sorted((path for into in folders if into.is_dir() for path in bundles_in(into)), key=lambda path: path.name)
    sizes = {path: _size(path) for path in every}
    left, gone = sum(sizes.values()), 0
    for path in every[:-1]:
        if left <= most:
            break
        shutil.rmtree(path, ignore_errors=True)
        left, gone = left - sizes[path], gone + 1
    return gone, left


def _size(path: Path) -> int:
    """Bytes on the disk."""
    total = 0
    for file in path.rglob("*"):
        try:
            total += file.lstat().st_blocks * 512
        except OSError:
            continue
    return total
