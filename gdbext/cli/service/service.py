"""The loop of `gdbext watch --service`: poll the jobs, take a look where one stands still, tell whoever is to know.

One thread. Whatever may take long is a process of its own (looks, alerts) or the client library's thread (metrics).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import select
import signal
import socket
import time
from dataclasses import replace
from typing import Any, List, Optional, Tuple

from gdbext.capture.symbols.environ import read_environ
from gdbext.cli.service import service_settings as told_by
from gdbext.cli.service.alerts import Alerts
from gdbext.cli.service.followed_jobs import Followed, FollowedJobs
from gdbext.cli.service.host_lock import HostLock
from gdbext.cli.service.look_process import LookProcess, forget_first
from gdbext.cli.service.service_settings import Settings
from gdbext.cli.service.systemd import notify, reloading, watchdog_seconds
from gdbext.cli.terminal import write_lines
from gdbext.cli.watching import look_with_bundle
from gdbext.commands.user_files import append_private, write_private
from gdbext.discovery.preflight_checks.attach_permission import check_kill_filter
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.errors import OK, GdbextError
from gdbext.model.watching import WatchEvent
from gdbext.render import dumps

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_RETRY = 1.0  # seconds until the lock of the host is tried again, and longest wait while something runs


def run(options: argparse.Namespace) -> int:
    """Until TERM or Ctrl-C: status 0 then."""
    asked = told_by.of(options)
    check_kill_filter(ProcFS())
    if options.output is not None:
        write_private(options.output, "", options.force)
    Service(asked, options).run()
    return OK


class Service:
    """`run` does it all."""

    def __init__(self, asked: Settings, options: argparse.Namespace) -> None:
        self._settings, self._options = asked, options
        self._proc = ProcFS()
        self._host = socket.gethostname()
        self._into = look_with_bundle.folder(asked.into)
        self._jobs = FollowedJobs(self._proc, read_environ, self._tell, self._wrong)
        self._alerts = Alerts(self._alerted)
        self._lock = HostLock(asked.lock)
        self._metrics: Any = None
        self._looking: Optional[Tuple[Followed, LookProcess]] = None
        self._wanted: List[Followed] = []
        self._complained: dict[str, str] = {}
        self._ending = self._reload = False

    def run(self) -> None:
        self._measure(self._settings)
        ours, theirs = socket.socketpair()
        with ours, theirs, contextlib.ExitStack() as stack:
            for end in (ours, theirs):
                end.setblocking(False)
            stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False))
            for number in _SIGNALS:
                stack.callback(signal.signal, number, signal.signal(number, self._on_signal))
            stack.callback(self._end)
            self._tell("service", f"started: {self._described()}")
            notify("READY=1")
            while not self._ending:
                if self._reload:
                    self._read_again()
                self._turn()
                self._wait(ours)

    def _on_signal(self, number: int, _: object) -> None:
        self._ending = self._ending or number in (signal.SIGTERM, signal.SIGINT)
        self._reload = self._reload or number == signal.SIGHUP

    def _turn(self) -> None:
        """Everything that is due."""
        for one in self._jobs.find(self._settings):
            self._gone(one)
        for one in self._jobs.due(time.monotonic()):
            if self._looking is not None and self._looking[0] is one:
                one.next_poll = time.monotonic() + self._settings.every  # a look disturbs what a poll sees
            else:
                self._poll(one)
        self._look()
        self._alerts.end_finished()
        if self._metrics is not None:
            self._metrics.turned(time.time())
        if self._metrics is not None and self._settings.textfile:
            self._try("textfile", self._metrics.write, self._settings.textfile)
        notify(f"WATCHDOG=1\nSTATUS={self._described()}")

    def _poll(self, one: Followed) -> None:
        if one.polled.poll():
            self._tell("moves", "the job moves again", one)
        one.next_poll = time.monotonic() + self._settings.every
        if not one.polled.whole:
            self._jobs.find_now()
            return
        if not one.polled.still_since_look:
            forget_first(self._into / one.name)
        if self._metrics is not None:
            self._metrics.polled(one.name, len(one.job.ranks), one.polled.stood)
        if one not in self._wanted and one.polled.wants_look():
            self._wanted.append(one)

    def _look(self) -> None:
        """The result of one look, then the next: one at a time."""
        if self._looking is not None and self._looking[1].ended:
            (one, look), self._looking = self._looking, None
            self._lock.free()
            self._judged(one, look)
        self._wanted = [one for one in self._wanted if one in self._jobs.followed and one.polled.wants_look()]
        if self._looking is None and self._wanted and self._lock.take():
            one = self._wanted.pop(0)
            pids = [rank.pid for rank in one.job.ranks]
            self._try("lock", self._check_lock)
            try:
                look = LookProcess(
                    pids, one.polled.stood, one.rule, self._settings, self._into / one.name, self._lock.descriptors
                )
                self._looking = (one, look)
            except GdbextError as error:
                self._lock.free()
                self._wrong("look", str(error), one.name)
                one.polled.looked(False, False)

    def _judged(self, one: Followed, look: LookProcess) -> None:
        undecided = hang = False
        try:
            event = replace(look.result(), job=one.name, host=self._host)
            hang, undecided = event.kind == "hang", event.kind == "undecided" and not look.second
            cause = event.cause or ("not-a-hang" if event.kind == "no-hang" else event.kind)
            if self._metrics is not None:
                self._metrics.looked(one.name, cause, event.pause_ms)
            self._complained.pop("look", None)
            self._say(event)
            if not undecided:
                self._alerts.tell(event, one.rule, self._settings.alert_timeout)
            self._shrink()
        except GdbextError as error:
            self._wrong("look", str(error), one.name)
        one.next_poll = one.polled.looked(hang, undecided) + self._settings.every

    def _shrink(self) -> None:
        """Bundles of all jobs within their quota."""
        most = self._settings.quota << 20
        gone, left = look_with_bundle.limit_bundle_bytes(
            tuple(path for path in self._into.iterdir() if path.is_dir()), most
        )
        if self._metrics is not None:
            self._metrics.set_bundle_bytes(left)
        if gone:
            self._tell("service", f"deleted the oldest bundles ({gone}): the quota is {self._settings.quota} MiB")
        if left > most:
            self._wrong("quota", f"the newest bundle alone has {left >> 20} MiB, and is kept: it exceeds the quota")

    def _gone(self, one: Followed) -> None:
        self._tell("gone", "the job has ended; waiting for the next", one)
        forget_first(self._into / one.name)
        if self._metrics is not None:
            self._metrics.forget(one.name)

    def _read_again(self) -> None:
        """SIGHUP: what is wrong with the new settings is told, and the old ones stay."""
        self._reload = False
        reloading()
        try:
            asked = told_by.of(self._options)
            self._into = look_with_bundle.folder(asked.into)
            self._measure(asked)
            self._lock = HostLock(asked.lock) if asked.lock != self._settings.lock else self._lock
            self._settings = asked
            self._jobs.find_now()
            self._tell("service", f"settings read again: {self._described()}")
        except GdbextError as error:
            self._wrong("settings", f"the old settings stay in force: {error}")
        notify("READY=1")

    def _measure(self, asked: Settings) -> None:
        """Raises `GdbextError`."""
        if not (asked.metrics or asked.textfile):
            if self._metrics is not None:
                self._metrics.listen("")
            return
        if importlib.util.find_spec("prometheus_client") is None:
            raise GdbextError("metrics need the package prometheus_client", "python3 -m pip install prometheus_client")
        if self._metrics is None:
            self._metrics = importlib.import_module("gdbext.cli.service.metrics").Metrics()
        self._metrics.listen(asked.metrics)

    def _wait(self, wakeup: socket.socket) -> None:
        """Until something is due, a signal comes, or an alert says something."""
        now = time.monotonic()
        until = min(self._jobs.next_due, self._alerts.next_end or now + 3600)
        if self._wanted or self._looking is not None:
            until = min(until, now + _RETRY)
        alive = watchdog_seconds()
        until = min(until, now + alive) if alive else until
        ready, _, _ = select.select([wakeup.fileno(), *self._alerts.descriptors], [], [], max(0.0, until - now))
        if wakeup.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                wakeup.recv(4096)

    def _end(self) -> None:
        notify("STOPPING=1")
        if self._looking is not None:
            self._looking[1].end()
        self._lock.free()
        self._alerts.end()
        if self._metrics is not None:
            self._metrics.close()
        self._tell("service", "ended; every process keeps running")

    # --- what is said ---

    def _described(self) -> str:
        names = [f"{one.name} ({len(one.job.ranks)})" for one in self._jobs.followed]
        return f"following {', '.join(names)}" if names else "no job yet"

    def _tell(self, kind: str, text: str, one: Optional[Followed] = None) -> None:
        name = one.name if one is not None else None
        event = WatchEvent(kind=kind, text=text, at=time.time(), job=name, host=self._host)
        self._say(event)
        if one is not None:
            self._alerts.tell(event, one.rule, self._settings.alert_timeout)

    def _say(self, event: WatchEvent) -> None:
        line = dumps(event)
        if self._options.output is None:
            write_lines([line])
        else:
            append_private(self._options.output, line + "\n")

    def _wrong(self, where: str, text: str, job: str = "") -> None:
        """Counted each time; said once, until something else is wrong there."""
        if self._metrics is not None:
            self._metrics.count_failure(where)
        if self._complained.get(where) != text:
            self._complained[where] = text
            self._say(WatchEvent(kind="trouble", text=text, at=time.time(), job=job or None, host=self._host))

    def _alerted(self, job: str, how: str, result: str, text: str) -> None:
        if self._metrics is not None:
            self._metrics.alerted(how, result)
            if result in ("failed", "late"):
                self._metrics.count_failure("alert")
        said = f"{'alert' if how == 'any' else how} {result}" + (f": {text}" if text else "")
        self._say(WatchEvent(kind="alert", text=said, at=time.time(), job=job or None, host=self._host))

    def _check_lock(self) -> None:
        if self._lock.why_none:
            raise GdbextError(f"no lock file for the diagnoses of this host: {self._lock.why_none}")

    def _try(self, where: str, what: Any, *arguments: Any) -> None:
        try:
            what(*arguments)
        except GdbextError as error:
            self._wrong(where, str(error))
