"""`gdbext watch` at a terminal: polls a job through /proc, stops nothing, and takes a full look when it stands still.

Idle is told by that look: its verdict is not-a-hang, so no bundle is kept, and while the threads sleep at the places of
then the job is left alone (for ten minutes at most). A look that found no hang doubles the time to the next one. A look
that cannot tell is followed by one more after `--spinning-after` seconds, and both are judged together.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import FrozenSet, Optional

from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.chosen_processes import selector_of
from gdbext.cli.terminal import Progress, style_for, write_lines
from gdbext.cli.watching import look_with_bundle
from gdbext.cli.watching.followed_job import FollowedJob
from gdbext.collect.live_ranks import Limits
from gdbext.commands.user_files import append_private, write_private
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import choose_job, find_jobs
from gdbext.discovery.ranks.listing import describe
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.errors import GdbextError, NothingFound, UsageError
from gdbext.model.exit_status import exit_status
from gdbext.model.job import Job, JobSnapshot
from gdbext.model.watching import WatchEvent
from gdbext.render import PLAIN, dumps
from gdbext.render.text.watch import event_lines

_STATE_EVENTS = ("undecided", "no-hang", "hang", "moves", "gone")  # events that say how the job does
_REFRESH = 30.0  # seconds after which the job's ranks are looked for again


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C. Status 1 when a hang was seen, 3 when the last standstill could not be told, else 0."""
    options.deadline = 120.0 if options.deadline is None else options.deadline
    progress = Progress(options.quiet)
    if options.still <= 0 or options.every <= 0 or options.keep < 1 or options.spinning_after <= 0:
        raise UsageError("--still, --every, --keep and --spinning-after must be positive")
    into = look_with_bundle.folder(options.into)
    if options.output is not None:
        write_private(options.output, "", options.force)
        progress.say(f"writing events to {options.output}")
    watch = Watch(selector_of(options, options.inputs), options, into, progress)
    try:
        watch.forever()
    except KeyboardInterrupt:
        progress.say("the watch has ended; every process keeps running")
    return exit_status(True if watch.hangs else None if watch.untold else False)


class Watch:
    """One job at a time, polled every `options.every` seconds."""

    def __init__(self, selector: Selector, options: argparse.Namespace, into: Path, progress: Progress) -> None:
        self._selector, self._options, self._into, self._progress = selector, options, into, progress
        self._proc = ProcFS()
        self._style = PLAIN if options.output else style_for(sys.stdout, os.environ)
        self._job: Optional[Job] = None
        self._whole: Optional[Job] = None  # the job that is followed, before the first of its ranks ended
        self._before: Optional[Job] = None  # the job that went away, as it was then
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
            raise NothingFound("the job has not restarted yet")
        self._selector = replace(self._selector, pids=tuple(rank.pid for rank in jobs[0].ranks))
        return jobs[0]

    def _follow(self, job: Job) -> None:
        """Until its ranks change."""
        options, self._trouble = self._options, ""
        if self._whole is None or not _pids(job) <= _pids(self._whole):
            self._whole = job
        self._tell("watching", f"watching {describe(job)}")
        followed, self._undecided = FollowedJob(job, options.still, options.spinning_after, self._proc), None
        found_at = time.monotonic()
        while True:
            moves_again = followed.poll()
            now = time.monotonic()
            if not followed.whole or now - found_at > _REFRESH:
                if not self._is_still_there(job):
                    return
                found_at = now
            if moves_again:
                self._tell("moves", "the job makes progress again")
            self._undecided = self._undecided if followed.still_since_look else None
            if followed.wants_look():
                hang = self._look(job, followed.stood)
                now = followed.looked(hang, self._undecided is not None)
            time.sleep(max(0.0, options.every - (time.monotonic() - now)))

    def _is_still_there(self, job: Job) -> bool:
        """Whether the same processes are the job; says what is gone."""
        gone = [rank for rank in job.ranks if not self._proc.tasks(rank.pid)]
        if len(gone) == len(job.ranks):
            self._before = self._whole or job
            self._job = None
            self._tell("gone", "the job has ended; waiting for the next")
            return False
        try:
            now = self._find()
        except GdbextError as error:
            self._complain(str(error))
            return not gone
        return _pids(now) == _pids(job)

    def _look(self, job: Job, still_seconds: float) -> bool:
        """One full look; True when it found a hang, whose bundle is kept. Where it cannot tell, it is remembered."""
        self._progress.say(f"no progress for {still_seconds:.0f} s: diagnosing")
        options = self._options
        limits = Limits(max_pause=options.max_pause, deadline=options.deadline, gdb=options.gdb)
        asked = look_with_bundle.Asked(still_seconds, options.spinning_after, self._undecided)
        try:
            diagnosis = look_with_bundle.take(job, limits, asked, self._progress, self._proc)
            event = look_with_bundle.watch_event(diagnosis, asked)
            self._undecided = diagnosis.snapshot if event.kind == "undecided" and not asked.first else None
            if event.kind == "hang":
                event = replace(event, bundle=look_with_bundle.write_bundle(diagnosis, self._into, options.keep))
                self.hangs += 1
        except GdbextError as error:
            self._complain(str(error))
            return False
        self._say(event)
        return event.kind == "hang"

    def _tell(self, kind: str, text: str) -> None:
        self._say(WatchEvent(kind=kind, text=text, at=time.time()))

    def _say(self, event: WatchEvent) -> None:
        if event.kind in _STATE_EVENTS:
            self.untold = event.kind == "undecided"
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


def _pids(job: Job) -> FrozenSet[int]:
    return frozenset(rank.pid for rank in job.ranks)


def _is_successor(job: Job, old: Job) -> bool:
    started = min((rank.start_time or 0 for rank in job.ranks), default=0)
    before = max((rank.start_time or 0 for rank in old.ranks), default=0)
    return started > before and len(job.ranks) == len(old.ranks)
