"""Runs gdb in batch mode, one or several, under a deadline and trusts nothing but their result records.

gdb's exit code says nothing (0 after a failed attach, measured on 13.1), so the script inside writes a result
file by rename; no file means failure, and the reason is looked for in what gdb printed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import resource
import selectors
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import gdbext
from gdbext.model.errors import GdbextError

INIT = str(Path(gdbext.__file__).resolve().parent / "init.py")
"""The file that gdb sources."""

QUIET_START = (
    "-nx",  # no .gdbinit: a stranger's settings are not ours
    "-nh",
    "-batch",
    "-iex", "set auto-load off",  # nothing of the target's folders is executed
    "-iex", "set debuginfod enabled off",  # would ask a question or wait for the network
    "-iex", "set index-cache enabled off",  # leaves no file behind
)  # fmt: skip

_NO_PYTHON = re.compile(r"not supported in this copy of GDB|Python scripting is not supported", re.IGNORECASE)
_NOISE = re.compile(r"debuginfod|index-cache|^warning:|^$|^progress:")
_MAX_KEPT_OUTPUT = 64 << 10
_KILLED = "it was ended by signal"
_MOST_ASKED = 16 << 10  # bytes that a pipe takes, whether gdb reads them or not


Begun = Sequence["_Gdb"]
"""gdbs that wait for their requests (`begin`)."""


def find_gdb(wanted: Optional[str] = None) -> str:
    """Path of the gdb to use: the one asked for, else $GDBEXT_GDB, else `gdb` on the PATH. Raises `GdbextError`."""
    name = wanted or os.environ.get("GDBEXT_GDB") or "gdb"
    found = shutil.which(name)
    if found is None:
        raise GdbextError(f"no gdb found ({name})", "install it (apt-get install gdb) or name one with --gdb PATH")
    return found


def run_batch(
    gdb: str,
    request: Dict[str, Any],
    folder: Path,
    deadline: float,
    on_progress: Callable[[str], None] = lambda line: None,
    module: str = "batch",
) -> Dict[str, Any]:
    """Let `gdb` work on `request` (protocol of debugger/`module`.py) for at most `deadline` seconds.

    Returns its result record. Raises `GdbextError` when there is none. Only our own gdb is ever killed; it reads
    copies (core files), so no target can be left stopped by that.
    """
    found = run_batches(gdb, [request], folder, deadline, lambda _, line: on_progress(line), module)[0]
    if isinstance(found, GdbextError):
        raise found
    return found


def run_batches(
    gdb: str,
    requests: Sequence[Dict[str, Any]],
    folder: Path,
    deadline: float,
    on_progress: Callable[[int, str], None],
    module: str = "batch",
    begun: Begun = (),
    meanwhile: Callable[[], object] = lambda: None,
) -> List[Union[Dict[str, Any], GdbextError]]:
    """The same with a gdb for each request, side by side. Returns the record of each, or why there is none.
    `meanwhile` is called once, when all of them work."""
    results = [_file(folder, "result", number) for number in range(len(requests))]
    running: List[_Gdb] = []
    try:
        for number, (request, result) in enumerate(zip(requests, results)):
            script, said = _file(folder, "request", number), functools.partial(on_progress, number)
            script.write_text(json.dumps({**request, "result": str(result), "parent": os.getpid()}), "utf-8")
            if number < len(begun):
                running.append(begun[number])
                begun[number].go(said)
            else:
                running.append(_Gdb(_argv(gdb, module, script), said))
        until = time.monotonic() + deadline
        meanwhile()
        _pass_on(running, until)
    finally:
        for one in running:
            one.end()
    return [_record(result, one.reason(gdb, deadline)) for result, one in zip(results, running)]


@contextlib.contextmanager
def begin(gdb: str, count: int, folder: Path) -> Iterator[Begun]:
    """Start gdbs whose requests are not ready yet: to start takes each of them as long as to prepare a request."""
    begun: List[_Gdb] = []
    try:
        for number in range(count):
            argv = _argv(gdb, "batch", _file(folder, "request", number), ", awaited=True")
            begun.append(_Gdb(argv, stdin=subprocess.PIPE))
        yield begun
    finally:
        for one in begun:
            one.end()


def read(begun: Begun, path: str) -> None:
    """Let them read the symbols of a library while their requests are made."""
    for one in begun:
        one.read_early(path)


def _file(folder: Path, what: str, number: int) -> Path:
    return folder / (f"{what}.{number}.json" if number else f"{what}.json")


def _argv(gdb: str, module: str, script: Path, further: str = "") -> List[str]:
    work = f"python from gdbext.debugger import {module}; {module}.main({str(script)!r}{further})"
    alone = ["-ex", "set $gdbext_library_only = 1"] if module == "batch" else []
    return [gdb, *QUIET_START, *alone, "-ex", f"source {INIT}", "-ex", work]


def _record(result: Path, otherwise: GdbextError) -> Union[Dict[str, Any], GdbextError]:
    try:
        record: Dict[str, Any] = json.loads(result.read_text("utf-8"))
    except (OSError, ValueError):
        return otherwise
    return record


def _pass_on(running: Sequence[_Gdb], until: float) -> None:
    """Read what all of them print until each has closed its output; at the deadline those that have not are killed."""
    with selectors.DefaultSelector() as selector:
        for one in running:
            selector.register(one.output, selectors.EVENT_READ, one)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                for key in list(selector.get_map().values()):
                    key.data.time_out()
                return
            for key, _ in selector.select(left):
                if not key.data.read():
                    selector.unregister(key.fileobj)
        for one in running:  # one that has closed its output may still run
            one.wait(until)


class _Gdb:
    """One gdb at work: its progress lines are passed on, of all else that it prints the beginning is kept."""

    def __init__(
        self, argv: List[str], on_progress: Callable[[str], None] = lambda line: None, stdin: int = subprocess.DEVNULL
    ) -> None:
        self._on_progress = on_progress
        self._printed: List[str] = []
        self._size, self._rest, self._timed_out = 0, b"", False
        self._asked = 0  # bytes
        self._process = subprocess.Popen(
            argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        _no_core(self._process.pid)
        assert self._process.stdout is not None
        self.output = self._process.stdout

    def read_early(self, path: str) -> None:
        """A library that will be in its request."""
        line = os.fsencode(path) + b"\n"
        if b"\n" in line[:-1] or self._asked + len(line) > _MOST_ASKED:
            return
        self._asked += len(line)
        self._write(line)

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
                self._on_progress(line[len("progress: ") :])
            elif self._size < _MAX_KEPT_OUTPUT:
                self._size += len(line)
                self._printed.append(line)
        return bool(data)

    def wait(self, until: float) -> None:
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.time_out()

    def time_out(self) -> None:
        self._timed_out = True
        _kill_group(self._process.pid)

    def end(self) -> None:
        """It is gone when this returns, whatever happened."""
        if self._process.poll() is None:
            _kill_group(self._process.pid)
            self._process.wait()
        for stream in (self.output, self._process.stdin):
            if stream is not None:
                stream.close()

    def reason(self, gdb: str, deadline: float) -> GdbextError:
        """Why it left no result."""
        printed, status = self._printed, self._process.returncode
        if self._timed_out:
            printed = [*printed, f"gdb did not finish in {deadline:g} s"]
        elif status < 0:
            printed = [*printed, f"{_KILLED} {-status}" + (" (out of memory?)" if status == -9 else "")]
        return GdbextError(*_why_no_result(gdb, printed))


def _no_core(pid: int) -> None:
    """A gdb that crashes leaves no core file in the user's folder: the copies of the ranks would be in it."""
    try:
        _, most = resource.prlimit(pid, resource.RLIMIT_CORE)
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, most))
    except OSError:
        pass  # it has ended


def _kill_group(pid: int) -> None:
    """SIGKILL, not SIGTERM: gdb may sit in a place where it ignores the polite one."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _why_no_result(gdb: str, printed: List[str]) -> tuple[str, str]:
    lines = [line for line in printed if not _NOISE.search(line)]
    if any(_NO_PYTHON.search(line) for line in printed):
        return f"{gdb} was built without Python", "use another gdb with --gdb PATH"
    if lines and lines[-1].startswith("gdb did not finish"):
        return lines[-1], "give it more time with --deadline SECONDS"
    if lines and lines[-1].startswith(_KILLED):
        return f"{gdb} gave no result: {lines[-1]}", "every process runs on; try again"
    return f"{gdb} gave no result: {lines[-1] if lines else 'it printed nothing'}", "try --gdb PATH"
