"""Runs one gdb in batch mode under a deadline and trusts nothing but its result record.

gdb's exit code says nothing (0 after a failed attach, measured on 13.1), so the script inside writes a result
file by rename; no file means failure, and the reason is looked for in what gdb printed.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

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
) -> Dict[str, Any]:
    """Let `gdb` work on `request` (protocol of debugger/batch.py) for at most `deadline` seconds.

    Returns its result record. Raises `GdbextError` when there is none. Only our own gdb is ever killed; it reads
    copies (core files), so no target can be left stopped by that.
    """
    result = folder / "result.json"
    script = folder / "request.json"
    script.write_text(json.dumps({**request, "result": str(result), "parent": os.getpid()}), "utf-8")
    work = f"python from gdbext.debugger import batch; batch.main({str(script)!r})"
    argv = [gdb, *QUIET_START, "-ex", "set $gdbext_library_only = 1", "-ex", f"source {INIT}", "-ex", work]
    printed = _run(argv, deadline, on_progress)
    try:
        record: Dict[str, Any] = json.loads(result.read_text("utf-8"))
    except (OSError, ValueError):
        raise GdbextError(*_why_no_result(gdb, printed, deadline)) from None
    return record


def _run(argv: List[str], deadline: float, on_progress: Callable[[str], None]) -> List[str]:
    """Start, pass its progress lines on, kill it at the deadline; returns the other lines that it printed."""
    printed: List[str] = []
    size = 0
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    _no_core(process.pid)
    watchdog = threading.Timer(deadline, _kill_group, (process.pid,))
    watchdog.daemon = True
    watchdog.start()
    try:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip()
            if line.startswith("progress: "):
                on_progress(line[len("progress: ") :])
            elif size < _MAX_KEPT_OUTPUT:
                size += len(line)
                printed.append(line)
        process.wait()
    finally:
        if process.poll() is None:
            _kill_group(process.pid)
            process.wait()
        timed_out = not watchdog.is_alive()
        watchdog.cancel()
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode < 0 and not timed_out:
        printed.append(f"{_KILLED} {-process.returncode}" + (" (out of memory?)" if process.returncode == -9 else ""))
    if timed_out:
        printed.append(f"gdb did not finish in {deadline:g} s")
    return printed


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


def _why_no_result(gdb: str, printed: List[str], deadline: float) -> tuple[str, str]:
    lines = [line for line in printed if not _NOISE.search(line)]
    if any(_NO_PYTHON.search(line) for line in printed):
        return f"{gdb} was built without Python", "use another gdb with --gdb PATH"
    if lines and lines[-1].startswith("gdb did not finish"):
        return lines[-1], "give it more time with --deadline SECONDS"
    if lines and lines[-1].startswith(_KILLED):
        return f"{gdb} gave no result: {lines[-1]}", "every process runs on; try again"
    return f"{gdb} gave no result: {lines[-1] if lines else 'it printed nothing'}", "try --gdb PATH"
