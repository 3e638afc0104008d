"""A full look of a service: `gdbext watch --before-kill` as a process of its own, which holds up nobody."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO, Sequence

from gdbext.cli.service.service_settings import JobRule, Settings
from gdbext.model.errors import GdbextError, refused_as
from gdbext.model.watching import WatchEvent

_FIRST = ".first-look.json"
_GRACE = 20.0  # seconds after which a look that did not end itself is ended
_MOST = 1 << 20  # bytes of what it prints
_FIELDS = ("text", "at", "bundle", "cause", "confidence", "standstill", "pause_ms")


class LookProcess:
    """Started at once. `into` is the folder of this job's bundles."""

    def __init__(
        self,
        pids: Sequence[int],
        still_seconds: float,
        rule: JobRule,
        settings: Settings,
        into: Path,
        keep_open: Sequence[int],
    ) -> None:
        """Raises `GdbextError`."""
        self._first = into / _FIRST
        self.second = self._first.is_file()  # of this standstill
        options = {
            "--deadline": max(2.0, settings.deadline),
            "--into": into,
            "--keep": settings.keep,
            "--first-look": self._first,
            "--stood": still_seconds,
            "--spinning-after": rule.spinning_after,
            "--max-pause": rule.max_pause,
            **({"--gdb": settings.gdb} if settings.gdb else {}),
        }
        words = [sys.executable, "-m", "gdbext", "watch", "--before-kill", "--json", "--quiet"]
        words += [word for name, value in options.items() for word in (name, str(value))]
        self._until = time.monotonic() + settings.deadline + _GRACE
        with refused_as("cannot start a diagnosis"):
            into.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._out, self._err = (os.fdopen(os.memfd_create(name), "w+b", buffering=0) for name in ("out", "err"))
            self._process = subprocess.Popen(
                [*words, *map(str, pids)],
                stdin=subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=tuple(keep_open),
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        if time.monotonic() > self._until:
            self.end()
        return self._process.poll() is not None

    def result(self) -> WatchEvent:
        """What it found. Raises `GdbextError` where it found nothing out."""
        with self._out, self._err:
            said = _all_of(self._out).decode("utf-8", "replace").splitlines()
            wrong = _all_of(self._err).decode("utf-8", "replace").split()
        try:
            found = json.loads(said[-1])
            kind = found["event"]
        except (IndexError, KeyError, TypeError, ValueError):
            why = " ".join(wrong)[:300] or f"status {self._process.returncode}"
            raise GdbextError(f"a diagnosis returned no result ({why})") from None
        if kind != "undecided" or self.second:
            self.forget_first()
        values = {name: found.get(name) for name in _FIELDS}
        return WatchEvent(
            kind=kind, culprits=tuple(found.get("culprits", ())), steps=tuple(found.get("steps", ())), **values
        )

    def forget_first(self) -> None:
        forget_first(self._first.parent)

    def end(self) -> None:
        """The kernel lets go of the ranks when it is killed."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)


def forget_first(into: Path) -> None:
    """The look of a standstill that could not tell is of no use for the next standstill."""
    with contextlib.suppress(OSError):
        (into / _FIRST).unlink()


def _all_of(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read(_MOST)
