"""One gdb at work for us: what it may have of time and memory, what it says, and why it left no result."""

from __future__ import annotations

import contextlib
import math
import os
import re
import resource
import signal
import subprocess
import time
from typing import Callable, List, Pattern

from gdbext.collect.gdbs_side_by_side import memory_of_gdb
from gdbext.model.errors import MORE_MEMORY, GdbextError

_NO_PYTHON = re.compile(r"not supported in this copy of GDB|Python scripting is not supported", re.IGNORECASE)
_NOISE = re.compile(r"debuginfod|index-cache|^warning:|^$|^progress:")
_LOST_ERROR = re.compile(r"error return without exception set|^Error while executing Python code\.$")
"""Of CPython, and of gdb behind it: an exception, often MemoryError, was lost."""
_NO_MEMORY = re.compile(
    r"memory exhausted|MemoryError|bad_alloc|annot allocate memory|failed to map segment"
    r"|Recursive internal problem|can't load unicodedata module"  # gdb 13 and 18 under `ulimit -v`
)
_WITHOUT_MEMORY = (signal.SIGKILL, signal.SIGABRT)  # of the kernel; of itself, also without a word (18.1)
_BUSY = re.compile(r"stacks of (\d+)/(\d+)$")  # which copy it reads (inside_gdb/stacks/read_copies.py)
_PART = 0.75
"""Of the time that is left, what one copy may take while others wait behind it."""
_LEFT_BEHIND = (
    5.0  # seconds after SIGKILL: what still waits in the kernel then, for a dead file system, may do so for ever
)
_MAX_KEPT_OUTPUT = 64 << 10
_MOST_ASKED = 16 << 10  # bytes that a pipe takes, whether gdb reads them or not


class GdbProcess:
    """One gdb at work: its progress lines are passed on, of all else that it prints the beginning is kept."""

    def __init__(
        self,
        argv: List[str],
        parallel_gdbs: int,
        on_progress: Callable[[str], None] = lambda line: None,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """`parallel_gdbs`: how many of them share the memory at hand."""
        self._on_progress = on_progress
        self._printed: List[str] = []
        self._size, self._rest, self._timed_out = 0, b"", False
        self._asked = 0  # bytes
        self._until, self._begun_at, self._ended_at = math.inf, time.monotonic(), 0.0
        self.until = math.inf  # CLOCK_MONOTONIC: for what it does now
        self._process = subprocess.Popen(
            argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        _limit(self._process.pid, parallel_gdbs)
        assert self._process.stdout is not None
        self.output = self._process.stdout

    def read_early(self, path: str) -> None:
        """A library that will be in its request."""
        line = os.fsencode(path) + b"\n"
        if b"\n" in line[:-1] or self._asked + len(line) > _MOST_ASKED:
            return
        self._asked += len(line)
        self._write(line)

    def work_until(self, until: float, several: bool) -> None:
        """When all of its work must be done. `several`: it says before each copy that it begins with it."""
        self._begun_at = now = time.monotonic()
        self._until = until
        self.until = now + _PART * (until - now) if several else until

    def go(self, on_progress: Callable[[str], None]) -> None:
        """The request that it waits for is there."""
        self._on_progress = on_progress
        self._write(b"\n")

    def _write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: `reason` says why
            os.write(self._process.stdin.fileno(), line)

    def read(self) -> bool:
        """Take what there is; False when no more will come."""
        data = os.read(self.output.fileno(), 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data or len(self._rest) > _MAX_KEPT_OUTPUT:
            lines, self._rest = [*lines, self._rest], b""
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip()
            if line.startswith("progress: "):
                self._goes_on(line[len("progress: ") :])
            elif self._size < _MAX_KEPT_OUTPUT:
                self._size += len(line)
                self._printed.append(line)
        return bool(data)

    def _goes_on(self, text: str) -> None:
        busy = _BUSY.match(text)
        if busy:
            now = time.monotonic()
            is_last = int(busy[1]) >= int(busy[2])
            self.until = self._until if is_last else now + _PART * (self._until - now)
        self._on_progress(text)

    def wait(self) -> None:
        try:
            self._process.wait(None if self.until == math.inf else max(0.0, self.until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.time_out()

    def time_out(self) -> None:
        self._timed_out = True
        self._ended_at = time.monotonic()
        _kill_group(self._process.pid)

    def end(self) -> None:
        """It is gone when this returns, unless the kernel itself keeps it."""
        if self._process.poll() is None:
            _kill_group(self._process.pid)
            try:
                self._process.wait(_LEFT_BEHIND)
            except subprocess.TimeoutExpired:
                _left.append(self._process)
        for stream in (self.output, self._process.stdin):
            if stream is not None:
                stream.close()

    def reason(self, gdb: str, deadline: float) -> GdbextError:
        """Why it left no result."""
        status = self._process.returncode
        if _says(self._printed, _NO_PYTHON):
            return GdbextError(f"{gdb} was built without Python", "use another gdb with --gdb PATH")
        if self._timed_out:
            time = min(deadline, self._ended_at - self._begun_at)
            return GdbextError(f"gdb did not finish in {time:.3g} s", "give it more time with --deadline SECONDS")
        lines = [line for line in (line.strip("\0 ") for line in self._printed) if not _NOISE.search(line)]
        if _says(lines, _NO_MEMORY):
            return GdbextError(f"{gdb} ran out of memory", f"{MORE_MEMORY}, or select fewer ranks")
        if status < 0:
            starved = -status in _WITHOUT_MEMORY
            ended = f"it was ended by signal {-status}{' (out of memory?)' if starved else ''}"
            hint = f"try again; {MORE_MEMORY}" if starved else "try again"
            return GdbextError(f"{gdb} gave no result: {ended}", f"every process keeps running; {hint}")
        said = lines[-1] if lines else "it printed nothing"
        lost = _LOST_ERROR.search(said) and not any("Exception" in line for line in lines)
        hint = f"it may be short of memory: {MORE_MEMORY}; or try" if lost else "try"
        return GdbextError(f"{gdb} gave no result: {said}", f"{hint} --gdb PATH")


_left: List[subprocess.Popen[bytes]] = []


def _limit(pid: int, parallel_gdbs: int) -> None:
    """A gdb that crashes leaves no core file in the user's folder: the copies of the ranks would be in it. One that is
    given symbols without an end leaves memory to the ranks."""
    for kind, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory_of_gdb(parallel_gdbs))):
        with contextlib.suppress(OSError, ValueError):  # it has ended
            now, most = resource.prlimit(pid, kind)
            if wanted is not None and (now == resource.RLIM_INFINITY or wanted < now):
                resource.prlimit(pid, kind, (wanted, most))


def _kill_group(pid: int) -> None:
    """SIGKILL, not SIGTERM: gdb may sit in a place where it ignores the polite one."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _says(lines: List[str], what: Pattern[str]) -> bool:
    return any(what.search(line) for line in lines)
