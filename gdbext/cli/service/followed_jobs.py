"""Which jobs a service follows: looked for again and again, each under a name of its own while it lives."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Callable, Iterator, List, Set, Tuple

from gdbext.cli.service.service_settings import JobRule, Settings
from gdbext.cli.watching.followed_job import FollowedJob
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.listing import describe
from gdbext.discovery.ranks.roles import ReadEnviron
from gdbext.model.errors import GdbextError
from gdbext.model.job import Job

_REFRESH = 60.0  # seconds; a search costs as much as polls of some ten ranks
_MOST = 64
_SEARCH_SECONDS = 2.0  # seconds between two searches, however often ranks come and go


@dataclass
class Followed:
    """A job, how it is followed, and when it is to be polled next."""

    name: str
    rule: JobRule
    job: Job
    polled: FollowedJob
    next_poll: float = 0.0

    @property
    def pids(self) -> Set[int]:
        return {rank.pid for rank in self.job.ranks}


class FollowedJobs:
    """`find` brings `followed` up to date when it is time."""

    def __init__(
        self,
        proc: ProcFS,
        read_environ: ReadEnviron,
        tell: Callable[[str, str, Followed], None],
        wrong: Callable[[str, str], None],
    ) -> None:
        self._proc, self._read_environ, self._tell, self._wrong = proc, read_environ, tell, wrong
        self.followed: List[Followed] = []
        self._next, self._last = 0.0, -math.inf

    def find_now(self) -> None:
        """Something has changed."""
        self._next = min(self._next, max(time.monotonic(), self._last + _SEARCH_SECONDS))

    @property
    def next_due(self) -> float:
        """CLOCK_MONOTONIC."""
        return min([self._next, *(one.next_poll for one in self.followed)])

    def due(self, now: float) -> List[Followed]:
        return [one for one in self.followed if one.next_poll <= now]

    def find(self, settings: Settings) -> Iterator[Followed]:
        """Returns those that have ended."""
        if time.monotonic() < self._next:
            return
        before, self.followed = self.followed, []
        for rule, job in self._found(settings):
            pids = {rank.pid for rank in job.ranks}
            old = next((one for one in before if one.pids & pids), None)
            if old is not None and old.rule == rule and old.pids == pids:
                self.followed.append(old)
                continue
            name = old.name if old is not None and old.rule.name == rule.name else self._name(rule, job, before)
            polled = FollowedJob(job, rule.still, rule.spinning_after, self._proc)
            self.followed.append(Followed(name, rule, job, polled))
            self._tell("watching", f"watching {describe(job)}", self.followed[-1])
        self._last = time.monotonic()
        self._next = self._last + _REFRESH
        names = {one.name for one in self.followed}
        yield from (one for one in before if one.name not in names)

    def _found(self, settings: Settings) -> Iterator[Tuple[JobRule, Job]]:
        """Of jobs that several rules mean the first has it."""
        taken: Set[int] = set()
        many = 0
        for rule in settings.rules:
            try:
                jobs = find_jobs(self._proc, rule.selector, self._read_environ)
            except GdbextError as error:
                self._wrong("find", f"{rule.name or 'the job'}: {error}")
                continue
            for job in jobs:
                pids = {rank.pid for rank in job.ranks}
                if pids & taken or not pids:
                    continue
                many += 1
                if many > _MOST:
                    self._wrong("find", f"more than {_MOST} jobs: the others are not followed")
                    return
                taken |= pids
                yield rule, job

    def _name(self, rule: JobRule, job: Job, before: List[Followed]) -> str:
        """That of its rule, else its engine's; a number behind it where another job has that."""
        taken = {one.name for one in self.followed}
        base = rule.name or job.engine or "job"
        live = {one.name for one in before if self._proc.tasks(min(one.pids))} if before else set()
        names = [base, *(f"{base}-{number}" for number in range(2, 2 * _MOST + 2))]
        return next(name for name in names if name not in taken | live)
