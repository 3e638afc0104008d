"""Runs gdb in batch mode, one or several, under a deadline and trusts nothing but their result records.

gdb's exit code says nothing (0 after a failed attach, measured on 13.1), so the script inside writes a result file; no
file means failure, and the reason is looked for in what gdb printed. What it reads was written by others: of a gdb that
one rank's files have ended, or kept busy, the ranks before it count.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import gdbext
from gdbext.collect.gdb_runs.process import GdbProcess
from gdbext.discovery.proc import programs
from gdbext.model.errors import GdbextError

INIT = str(Path(gdbext.__file__).resolve().parent / "init.py")
"""The file that gdb sources."""

PROGRAMS = {"batch": "gdbext.inside_gdb.stacks.read_copies", "pending": "gdbext.inside_gdb.ranks.pending_python"}
"""What gdb runs: a module with `main`."""

QUIET_START = (
    "-nx",  # no .gdbinit: a stranger's settings are not ours
    "-nh",
    "-batch",
    "-iex", "set auto-load off",  # nothing of the target's folders is executed
    "-iex", "set debuginfod enabled off",  # would ask a question or wait for the network
    "-iex", "set index-cache enabled off",  # leaves no file behind
)  # fmt: skip

Begun = Sequence[GdbProcess]
"""gdbs that wait for their requests (`begin`)."""


NO_GDB = "none"
"""In place of a gdb's path: look without one."""


def find_gdb(wanted: Optional[str] = None) -> str:
    """Path of the gdb to use: the one asked for, else $GDBEXT_GDB, else `gdb`. A name without a slash is looked for on
    PATH, where nobody else can have put it (discovery/proc/programs.py). Raises `GdbextError`."""
    name = wanted or os.environ.get("GDBEXT_GDB") or "gdb"
    found = programs.find(name)
    if found.path is not None:
        return found.path
    if found.passed_over:
        raise GdbextError(f"not used: {', '.join(found.passed_over)}", "name it with --gdb PATH if you trust it")
    raise GdbextError(f"no gdb found ({name})", "install it (apt-get install gdb) or name one with --gdb PATH")


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
    running: List[GdbProcess] = []
    try:
        for number, (request, result) in enumerate(zip(requests, results)):
            script, said = _file(folder, "request", number), functools.partial(on_progress, number)
            result.unlink(missing_ok=True)
            script.write_text(json.dumps({**request, "result": str(result), "parent": os.getpid()}), "utf-8")
            if number < len(begun):
                running.append(begun[number])
                begun[number].go(said)
            else:
                running.append(GdbProcess(_argv(gdb, module, script), len(requests), said))
        until = time.monotonic() + deadline
        for one, request in zip(running, requests):
            one.work_until(until, len(request.get("ranks", ())) > 1 and module == "batch")
        meanwhile()
        _pass_on(running)
    finally:
        for one in running:
            one.end()
    return [_record(result, one.reason(gdb, deadline)) for result, one in zip(results, running)]


@contextlib.contextmanager
def begin(gdb: str, count: int, folder: Path) -> Iterator[Begun]:
    """Start gdbs whose requests are not ready yet: to start takes each of them as long as to prepare a request."""
    begun: List[GdbProcess] = []
    try:
        for number in range(count):
            argv = _argv(gdb, "batch", _file(folder, "request", number), ", awaited=True")
            begun.append(GdbProcess(argv, count, stdin=subprocess.PIPE))
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
    work = f"python from {PROGRAMS[module]} import main; main({str(script)!r}{further})"
    alone = ["-ex", "set $gdbext_library_only = 1"] if module == "batch" else []
    return [gdb, *QUIET_START, *alone, "-ex", f"source {INIT}", "-ex", work]


def _record(result: Path, otherwise: GdbextError) -> Union[Dict[str, Any], GdbextError]:
    """What it wrote, a line for each step (protocol of inside_gdb/stacks/read_copies.py). Of one that did not end
    `complete` is False, `failure` says why, and `at` is the index of the copy that it read then."""
    record: Dict[str, Any] = {}
    try:
        for line in result.read_text("utf-8").splitlines():
            step = json.loads(line)
            if "rank" in step:
                record["frames"] += step["frames"]
                record["ranks"].append(step["rank"])
                record["at"] = None
            else:
                record.update(step)
    except (OSError, ValueError, KeyError, TypeError):  # it was killed while it wrote
        pass
    if not record.get("complete", True):
        record["failure"] = otherwise
    return record or otherwise


def _pass_on(running: Sequence[GdbProcess]) -> None:
    """Read what all of them print until each has closed its output; those that take too long are killed."""
    with selectors.DefaultSelector() as selector:
        for one in running:
            selector.register(one.output, selectors.EVENT_READ, one)
        while selector.get_map():
            now = time.monotonic()
            at_work = [key.data for key in selector.get_map().values()]
            for one in at_work:
                if one.until <= now:
                    one.time_out()
                    selector.unregister(one.output)
            for key, _ in selector.select(max(0.0, min(one.until for one in at_work) - now)):
                if not key.data.read():
                    selector.unregister(key.fileobj)
        for one in running:  # one that has closed its output may still run
            one.wait()
