"""Whoever is to know of a standstill is told: a command gets the event on its standard input, a server as a POST.

Each runs as a process of its own with a time limit, so whatever it does, the watch goes on: it never waits for one.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.cli.service.service_settings import JobRule
from gdbext.model.watching import WatchEvent
from gdbext.render import dumps
from gdbext.render.safe_text import clean_text
from gdbext.render.style import Style

_CHILD = str(Path(__file__).with_name("webhook_child.py"))
_MOST = 16  # at once
_PIECE, _PIECES = 64 << 10, 16  # bytes and pieces that are read at once of what a command says: it may say much
_KEPT = 300  # bytes of its last words
_SHELL = ("/bin/sh", "-c", 'exec "$@"', "sh")
"""Finds and starts the command: a file system that hangs then holds up the shell, and not us."""


class _Running(NamedTuple):
    job: str
    how: str  # "exec" or "webhook"
    process: subprocess.Popen[bytes]
    until: float
    said: List[bytes]


class Alerts:
    """`tell` starts, `end_finished` sees to the end. `report(job, how, result, text)` hears how each went."""

    def __init__(self, report: Callable[[str, str, str, str], None]) -> None:
        self._report = report
        self._running: List[_Running] = []
        self._killed: List[subprocess.Popen[bytes]] = []  # and not ended yet
        self._told: Dict[Tuple[str, str, str], float] = {}

    def tell(self, event: WatchEvent, rule: JobRule, seconds: float) -> None:
        """Unless the same was told of this job a short while ago."""
        job = event.job or ""
        if event.kind not in rule.alert_on or not (rule.exec or rule.webhook):
            return
        now, same = time.monotonic(), (job, event.kind, event.cause or "")
        self._told = {key: at for key, at in self._told.items() if now - at < rule.cooldown or key[0] != job}
        if same in self._told:
            self._report(job, "any", "held back", f"the same alert was sent {now - self._told[same]:.0f} s ago")
            return
        self._told[same] = now
        body = dumps(event).encode("utf-8", "replace") + b"\n"
        if rule.exec:
            self._start(job, "exec", (*_SHELL, *rule.exec), body, seconds)
        if rule.webhook:
            words = (sys.executable, "-I", "-S", _CHILD, f"{seconds / 2:g}")
            self._start(job, "webhook", words, rule.webhook.encode() + b"\n" + body, seconds)

    def _start(self, job: str, how: str, words: Sequence[str], given: bytes, seconds: float) -> None:
        if len(self._running) >= _MOST:
            self._report(job, how, "failed", f"{_MOST} other alerts are still running")
            return
        try:
            with open(os.memfd_create("alert"), "w+b", buffering=0) as stdin:
                stdin.write(given)
                stdin.seek(0)
                process = subprocess.Popen(
                    words, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
                )
        except OSError as error:
            self._report(job, how, "failed", f"cannot start {shlex.quote(words[0])}: {error.strerror}")
            return
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        self._running.append(_Running(job, how, process, time.monotonic() + seconds, [b""]))

    def end_finished(self) -> None:
        """Those that have ended, and those whose time is up."""
        now, left = time.monotonic(), []
        self._killed = [one for one in self._killed if one.poll() is None]
        for one in self._running:
            _listen(one)
            code = one.process.poll()
            late = code is None and now > one.until
            if late:
                self._kill(one.process)
            if code is None and not late:
                left.append(one)
                continue
            _listen(one)
            assert one.process.stderr is not None
            one.process.stderr.close()
            words = clean_text(one.said[0].decode("utf-8", "replace"), Style(unicode=False)).split()
            said = " ".join(words)[-_KEPT:]
            if late:
                self._report(one.job, one.how, "late", "killed at its time limit")
            elif code:
                self._report(one.job, one.how, "failed", said or f"status {code}")
            else:
                self._report(one.job, one.how, "sent", "")
        self._running = left

    @property
    def next_end(self) -> Optional[float]:
        """When the time of the first of them is up (CLOCK_MONOTONIC)."""
        return min((one.until for one in self._running), default=None)

    @property
    def descriptors(self) -> List[int]:
        """Descriptors that may say something."""
        return [one.process.stderr.fileno() for one in self._running if one.process.stderr and one.said[0] is not None]

    def end(self) -> None:
        """All that still run."""
        for one in self._running:
            self._kill(one.process)
        self._running = []

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """With all that it has started in its session's first group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:  # it sleeps uninterruptibly, or the machine is busy: nobody waits for it
            self._killed.append(process)


def _listen(one: _Running) -> None:
    assert one.process.stderr is not None
    for _ in range(_PIECES):
        try:
            piece = os.read(one.process.stderr.fileno(), _PIECE)
        except OSError:  # nothing now
            return
        if not piece:
            return
        one.said[0] = (one.said[0] + piece)[-_KEPT:]
