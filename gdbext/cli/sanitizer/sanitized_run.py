"""A program under the sanitizer, until it has ended.

Whoever ends the sanitizer loses its reports and leaves the program running; whoever ends the program gets them. So a
Ctrl-C is for the program alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from typing import Callable, Dict, List, Optional, Sequence, Set

from gdbext.cli.terminal import Progress
from gdbext.collect.cleanup_on_signals import handled
from gdbext.discovery.proc.process_table import Entry, read_table
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.launch.launchers import NOT_RANKS
from gdbext.model.errors import refused_as
from gdbext.model.text.ranges import counted

PATIENCE = (60.0, 20.0, 20.0, 10.0)
"""Seconds that each step of a stop has: Ctrl-C for the program, TERM, KILL; then the sanitizer is ended."""
_STEPS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_END_STEPS = ("asked to stop", "told to end", "killed")
_NAP = 0.2
_SHOWN = 8  # processes named in one line
_FIRST_WORD = 30.0  # seconds to the first line about progress; each next one takes twice as long, to ten minutes
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2): orphans of the job become our children
_DIRECTORIES = re.compile(r"^\S*/")  # of the program
_FRONT_END = re.compile(r"compute-sanitiz|TreeLauncher")
_LAUNCHER = tuple(re.compile(rule.pattern) for rule in NOT_RANKS if rule.role == "launcher")


class SanitizedRun:
    """One run. `bytes_written`: how much of reports is there by now."""

    def __init__(
        self, words: Sequence[str], environ: Dict[str, str], progress: Progress, bytes_written: Callable[[], int]
    ) -> None:
        self._progress, self._bytes = progress, bytes_written
        self._asked: List[int] = []
        self._step, self._since = -1, 0.0
        ctypes.CDLL(None).prctl(_SUBREAPER, 1)
        with refused_as(f"cannot run {words[0]}"):
            self._job = subprocess.Popen(
                list(words),
                env=environ,
                stdin=subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None,
                start_new_session=True,  # the terminal's Ctrl-C would end the sanitizer
            )

    def finished(self) -> int:
        """Stay until it has ended; its exit status, as a shell says it."""
        began, patience, said = time.monotonic(), _FIRST_WORD, 0.0
        with handled((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda got, _: self._asked.append(got)):
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = self._job.wait(_NAP)
                    break
                passed = time.monotonic() - began
                if self._asked or self._step >= 0:
                    self._stop()
                elif passed - said >= patience:
                    size = self._bytes()
                    self._progress.note(f"{_time(passed)} under the sanitizer, {size:,} bytes of reports so far")
                    said, patience = passed, min(2 * patience, 600.0)
            self._tell_of_orphans()
        return 128 - status if status < 0 else status

    @property
    def was_stopped(self) -> bool:
        return self._step >= 0

    def _stop(self) -> None:
        """The next step of a stop, when it was asked for or the last one took too long."""
        late = self._step >= 0 and time.monotonic() - self._since >= PATIENCE[min(self._step, len(PATIENCE) - 1)]
        if not self._asked and not late:
            return
        self._asked.clear()
        self._step, self._since = self._step + 1, time.monotonic()
        programs = sorted((one for one in self._below() if not _is_tool(one)), key=lambda one: one.pid)
        targets = {one.pid for one in programs}
        if self._step >= len(_STEPS) or (not targets and self._step > 0):
            self._progress.warn("the sanitizer does not end by itself: it is ended, its last reports may be lost")
            _signal({one.pid for one in self._below()}, signal.SIGTERM if self._step == 1 else signal.SIGKILL)
        elif targets:
            _signal(targets, _STEPS[self._step])
            more = "" if self._step else "; the sanitizer then writes its reports. Ctrl-C again hurries"
            self._progress.warn(f"{_named(programs)} {_END_STEPS[self._step]}{more}")
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._job.pid, signal.SIGINT)
            self._progress.warn(
                "no process of the program is below gdbext (srun, other hosts): the launcher is asked to stop, and what"
                " the sanitizers there have not written yet is lost"
            )

    def _below(self) -> List[Entry]:
        return [one for one in read_table(ProcFS()).descendants(os.getpid()) if one.state not in "ZX"]

    def _tell_of_orphans(self) -> None:
        left = self._below()
        if left:
            pids = " ".join(str(one.pid) for one in left[:_SHOWN])
            self._progress.warn(
                f"{counted(len(left), 'process', 'processes')} of the program outlived the sanitizer: kill {pids}"
            )


def _named(programs: Sequence[Entry]) -> str:
    """`2 processes (4711 python serve.py, 4712 python serve.py)`."""
    names = [f"{one.pid} {_DIRECTORIES.sub('', one.shown)[:60]}" for one in programs[:_SHOWN]]
    names += ["..."] * (len(programs) > _SHOWN)
    return f"{counted(len(programs), 'process', 'processes')} ({', '.join(names)})"


def _is_tool(entry: Entry) -> bool:
    """The sanitizer, or a launcher, whose end ends the sanitizers behind it."""
    return bool(_FRONT_END.match(entry.comm)) or any(one.search(entry.title) for one in _LAUNCHER)


def _signal(pids: Set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def size_of(paths: Optional[Sequence[str]]) -> int:
    """Bytes of the files that are there."""
    total = 0
    for path in paths or ():
        with contextlib.suppress(OSError):
            total += os.stat(path).st_size
    return total
