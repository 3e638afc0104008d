"""`gdbext watch`: polls a job through /proc, without stopping it, and takes one full look when it stands still.

Idle is told by that look: its verdict is not-a-hang, so no bundle is kept, and while the threads sleep at the places of
then the job is left alone (for ten minutes at most). A look that found no hang doubles the time to the next one. A look
that cannot tell is followed by one more after `--spinning-after` seconds, and both are judged together.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Dict, List, Optional

from gdbext import __version__
from gdbext.analysis.progress.standstill import Patience, Stillness
from gdbext.analysis.stacks.merge import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.capture.memory.environ import read_environ
from gdbext.capture.without_stop import kernel_threads
from gdbext.cli import bundle
from gdbext.cli.selection import selector_of
from gdbext.cli.terminal import Progress, style_for, write_lines
from gdbext.collect.live_ranks import Limits, Look
from gdbext.commands.user_files import append_private, write_private
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import choose_job, find_jobs
from gdbext.discovery.ranks.listing import describe
from gdbext.discovery.ranks.selectors import Selector
from gdbext.knowledge.launch.environment import RECORDED
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.exit_status import exit_status
from gdbext.model.job import Job, JobSnapshot
from gdbext.model.missing import Missing
from gdbext.model.verdict import Diagnosis
from gdbext.model.watching import Pulse, ThreadPulse, WatchEvent
from gdbext.render import PLAIN, dumps
from gdbext.render.text.watch import event_lines
from gdbext.witnesses import ras
from gdbext.witnesses.question import Asked, Question

_BUNDLE = re.compile(r"\d{8}-\d{6}-[a-z0-9-]+$")
_RAS_EVERY = 10.0  # seconds; every rank answers it
_TOLD = ("undecided", "no-hang", "hang", "moves", "gone")  # events that say how the job does
_REFRESH = 30.0  # seconds after which the job's ranks are looked for again


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C. Status 1 when a hang was seen, 3 when the last standstill could not be told, else 0."""
    progress = Progress(options.quiet)
    if options.still <= 0 or options.every <= 0 or options.keep < 1 or options.spinning_after <= 0:
        raise UsageError("--still, --every, --keep and --spinning-after must be positive")
    into = Path(options.into)
    try:
        into.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise GdbextError(f"cannot write to {into}: {error.strerror}") from None
    if options.output is not None:
        write_private(options.output, "", options.force)
        progress.say(f"writing events to {options.output}")
    watch = Watch(selector_of(options, options.inputs), options, into, progress)
    try:
        watch.forever()
    except KeyboardInterrupt:
        progress.say("the watch has ended; every process runs on")
    return exit_status(True if watch.hangs else None if watch.untold else False)


class Watch:
    """One job at a time, polled every `options.every` seconds."""

    def __init__(self, selector: Selector, options: argparse.Namespace, into: Path, progress: Progress) -> None:
        self._selector, self._options, self._into, self._progress = selector, options, into, progress
        self._proc = ProcFS()
        self._style = PLAIN if options.output else style_for(sys.stdout, os.environ)
        self._job: Optional[Job] = None
        self._before: Optional[Job] = None  # the job that went away
        self._trouble = ""
        self._undecided: Optional[JobSnapshot] = None  # the look of this standstill that could not tell
        self.hangs = 0
        self.untold = False  # what the last look could not tell is still so

    def forever(self) -> None:
        self._job = self._find()  # nothing to watch at the start is an error of the command
        while True:
            if self._job is not None:
                self._follow(self._job)
            else:
                time.sleep(self._options.every)
            try:
                self._job = self._find()
            except GdbextError as error:
                self._complain(str(error))

    def _find(self) -> Job:
        """The job that is meant. A pid that is gone stands for the job that was started in its place."""
        if self._before is None or not self._selector.pids:
            return choose_job(find_jobs(self._proc, self._selector, read_environ), self._selector, "gdbext watch")
        old = self._before
        jobs = [
            job for job in find_jobs(self._proc, Selector(engine=old.engine), read_environ) if _is_successor(job, old)
        ]
        if len(jobs) != 1:
            raise NothingFound("the job has not come back yet")
        self._selector = replace(self._selector, pids=tuple(rank.pid for rank in jobs[0].ranks))
        return jobs[0]

    def _follow(self, job: Job) -> None:
        """Until its ranks change."""
        self._trouble = ""
        self._tell("watching", f"watching {describe(job)}")
        stillness, patience, self._undecided = Stillness(), Patience(self._options.still), None
        counters, asked_at, found_at, stood_long = "", 0.0, time.monotonic(), False
        while True:
            pulses = {rank.pid: pulse_of(rank.pid) for rank in job.ranks}
            now = time.monotonic()
            if not all(pulse.threads for pulse in pulses.values()) or now - found_at > _REFRESH:
                if not self._is_still_there(job):
                    return
                found_at = now
            if now - asked_at > _RAS_EVERY:
                counters, asked_at = self._counters(job), now
            stood = stillness.poll(pulses, counters)
            if stood_long and stood < self._options.still:
                self._tell("moves", "the job moves again")
            stood_long = stood >= self._options.still and stood_long
            self._undecided = self._undecided if stood_long else None
            if patience.wants_look(now, stood, stillness):
                hang = self._look(job, stood)
                stood_long = True
                stillness.settle({rank.pid: pulse_of(rank.pid) for rank in job.ranks})
                now = time.monotonic()  # a whole interval passes: after a moment nobody's share of a core means much
                if self._undecided is not None:
                    patience.undecided(now, self._options.spinning_after)
                else:
                    patience.looked(now, hang, stillness)
            time.sleep(max(0.0, self._options.every - (time.monotonic() - now)))

    def _is_still_there(self, job: Job) -> bool:
        """Whether the same processes are the job; says what is gone."""
        gone = [rank for rank in job.ranks if not self._proc.tasks(rank.pid)]
        if len(gone) == len(job.ranks):
            self._before = job
            self._job = None
            self._tell("gone", "the job has ended; waiting for the next")
            return False
        try:
            now = self._find()
        except GdbextError as error:
            self._complain(str(error))
            return not gone
        return {rank.pid for rank in now.ranks} == {rank.pid for rank in job.ranks}

    def _counters(self, job: Job) -> str:
        """What NCCL's status service counts; "" where it does not answer."""
        ranks = []
        for index, rank in enumerate(job.ranks):
            environ = self._proc.environ(rank.pid)
            known = (
                {} if isinstance(environ, Missing) else {name: environ[name] for name in RECORDED if name in environ}
            )
            ranks.append(Asked(index=index, pid=rank.pid, rank=rank.rank, device=rank.device, environment=known))
        witness = ras.ask(Question(tuple(ranks), time.monotonic() + 1.0))
        return "\n".join(one.text for one in witness.statements) if witness.state == "present" else ""

    def _look(self, job: Job, stood: float) -> bool:
        """One full look; True when it found a hang, whose bundle is kept. Where it cannot tell, it is remembered."""
        self._progress.say(f"the job stands still for {stood:.0f} s: looking")
        options = self._options
        limits = Limits(max_pause=options.max_pause, deadline=options.deadline, gdb=options.gdb)
        try:
            snapshot = Look(job, limits, self._progress, self._proc).take()
            snapshot = replace(snapshot, tool=f"gdbext {__version__}", command="gdbext watch")
            first, self._undecided = self._undecided, None
            diagnosis = judge(replace(snapshot, earlier=(first,)) if first else snapshot, None, options.spinning_after)
            diagnosis = replace(diagnosis, tree=merge(snapshot, diagnosis.processes))
            if diagnosis.verdict.decided_by is not None:
                self._undecided = None if first else snapshot
                then = "" if first else f" Looking again in {options.spinning_after:g} s."
                self._tell("undecided", f"most ranks stood still for {stood:.0f} s. {diagnosis.verdict.summary}{then}")
                return False
            if not diagnosis.verdict.finding:
                self._tell(
                    "no-hang", f"stood still for {stood:.0f} s, which is not a hang: {diagnosis.verdict.summary}"
                )
                return False
            where = self._keep(diagnosis)
        except GdbextError as error:
            self._complain(str(error))
            return False
        self.hangs += 1
        verdict = diagnosis.verdict
        ranks = [snapshot.processes[index].rank for index in verdict.culprits]
        self._tell(
            "hang",
            f"stands still for {stood:.0f} s. {verdict.summary}",
            bundle=where,
            cause=verdict.cause,
            confidence=verdict.confidence,
            culprits=tuple(rank for rank in ranks if rank is not None),
        )
        return True

    def _keep(self, diagnosis: Diagnosis) -> str:
        """Write the bundle and take away the oldest ones of this folder beyond `--keep`."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        where = self._into / f"{stamp}-{diagnosis.verdict.cause}"
        bundle.write(str(where), diagnosis)
        for old in bundles_in(self._into)[: -self._options.keep]:
            shutil.rmtree(old, ignore_errors=True)
        return str(where)

    def _tell(self, kind: str, text: str, **more: object) -> None:
        event = WatchEvent(kind=kind, text=text, at=time.time(), **more)  # type: ignore[arg-type]
        if kind in _TOLD:
            self.untold = kind == "undecided"
        lines = [dumps(event)] if self._options.json else event_lines(event, self._style)
        if self._options.output is None:
            write_lines(lines)
        else:
            append_private(self._options.output, "\n".join(lines) + "\n")

    def _complain(self, text: str) -> None:
        """Once, until something else is wrong."""
        if text != self._trouble:
            self._trouble = text
            self._tell("trouble", text)


def _is_successor(job: Job, old: Job) -> bool:
    born = min((rank.start_time or 0 for rank in job.ranks), default=0)
    before = max((rank.start_time or 0 for rank in old.ranks), default=0)
    return born > before and len(job.ranks) == len(old.ranks)


def bundles_in(folder: Path) -> List[Path]:
    """The bundles that a watch wrote there, oldest first; nothing else is ever taken away."""
    found = [path for path in folder.iterdir() if _BUNDLE.match(path.name) and (path / bundle.SNAPSHOT).is_file()]
    return sorted(found)


def pulse_of(pid: int) -> Pulse:
    """One poll of a rank, some 0.16 ms a thread; without threads when it is gone."""
    seen: Dict[int, ThreadPulse] = {}
    looked_at = kernel_threads.look(pid)
    told = any(one.sp is not None for one in looked_at.values())
    for tid, one in looked_at.items():
        if one.state not in ("Z", "X"):
            seen[tid] = ThreadPulse(one.started, one.cpu_ns, one.waited, place_of(one, told))
    return Pulse(time.monotonic(), seen)


def place_of(one: kernel_threads.ThreadTimes, told: bool = False) -> Optional[str]:
    """Where a thread sleeps: the system call and its stack pointer, else what the kernel still says; None: it runs.

    `told`: the kernel tells the calls of this process. A thread without one has woken up between two files then.
    """
    if one.state not in ("S", "D", "I", "T", "t"):
        return None
    if one.sp is not None:
        return f"{one.syscall[0] if one.syscall else -1}@{one.sp:x}"
    return None if told else one.wchan or one.state
