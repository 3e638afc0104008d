"""`gdbext diagnose --bundle DIR`: everything a maintainer asks for, in one private folder, without secrets.

The folder is written beside its final name and renamed when it is whole; `gdbext diagnose DIR` reads it back.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Dict, List

from gdbext import __version__
from gdbext.capture.memory.maps import read_maps_text
from gdbext.commands.output import can_make_pages
from gdbext.commands.page import page_of
from gdbext.commands.releases import releases
from gdbext.commands.user_files import check_writable, write_private
from gdbext.model.codes import Given
from gdbext.model.command_typed import FULL, Typed
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.stack import Frame
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis
from gdbext.render import PLAIN, dumps, page_text, render
from gdbext.render.safe_text import clean_line
from gdbext.scrubbing.secrets_in_text import scrub_text
from gdbext.scrubbing.shareable_snapshot import shareable

SNAPSHOT, PAGE = "snapshot.json", "report.html"
_MOST_MAPS = 16 << 20
_CONTENTS = """gdbext {version}: a snapshot of a job and its diagnosis.

verdict.txt, verdict.json   the answer, for people and for programs (`--json`)
report.html                 the same as a page for a browser, where Jinja2 is installed
snapshot.json               all that was read; `gdbext diagnose FOLDER` judges it again
stacks/                     every thread of every rank, unabridged
maps/                       the memory maps of the ranks that were running
versions.txt                engine, torch, NCCL, CUDA, driver, kernel
variables.txt               known rank and tuning variables, no others
witnesses.txt               NCCL RAS, NVML, flight recorder, /dev/shm and kernel log, asked before the stop

Arguments, variables and log lines are scrubbed of tokens and passwords; review it before you share it.
"""


def check_new(name: str) -> None:
    """Raises `GdbextError` when a bundle of that name cannot be made: said before the look, not after it."""
    if os.path.lexists(name):
        raise UsageError(f"{name} exists", "choose another name for the bundle")
    check_writable(name)


def write(name: str, diagnosis: Diagnosis, running: bool = True) -> None:
    """Write the bundle. The diagnosis carries its tree. Raises `GdbextError`; then nothing is left behind.

    `running`: the processes were looked at just now. Those of a saved look are gone, or on another host: their pids and
    paths mean something else here.
    """
    check_new(name)
    target = Path(name).absolute()
    new = target.with_name(f".{target.name}.{os.getpid()}")
    clean = shareable(diagnosis)
    try:
        new.mkdir(mode=0o700)
        _fill(new, clean, running)
        check_new(name)
        new.rename(target)
    except OSError as error:
        raise GdbextError(f"cannot write {name}: {error.strerror}") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def snapshot_in(name: str) -> str:
    """The snapshot of a bundle where `name` is a folder, else `name` itself."""
    if not os.path.isdir(name):
        return name
    path = os.path.join(name, SNAPSHOT)
    if not os.path.isfile(path):
        raise GdbextError(f"{name} is a folder without {SNAPSHOT}", "give files, or a folder that --bundle wrote")
    return path


def _fill(folder: Path, diagnosis: Diagnosis, running: bool) -> None:
    snapshot = diagnosis.snapshot
    maps = {one.index: _maps(one) for one in snapshot.processes if running}
    files: Dict[str, List[str]] = {
        "README.txt": [_CONTENTS.format(version=__version__)],
        "verdict.txt": [scrub_text(line) for line in render(diagnosis, replace(PLAIN, typed=Typed(FULL)))],
        "verdict.json": [dumps(diagnosis)],
        SNAPSHOT: [dump_snapshot(snapshot)],
        "witnesses.txt": _witnesses(snapshot),
        "variables.txt": _variables(snapshot),
        **({PAGE: [page_text(page_of(diagnosis))]} if can_make_pages() else {}),
        "versions.txt": releases(snapshot, maps),
    }
    for process in snapshot.processes:
        name = file_name(process)
        files[f"stacks/{name}.txt"] = _stacks(process)
        if maps.get(process.index):
            files[f"maps/{name}.txt"] = maps[process.index]
    for name, lines in files.items():
        (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
        shown = lines if name.endswith((".json", ".html")) else [clean_line(line, PLAIN) for line in lines]
        write_private(str(folder / name), "\n".join(shown) + "\n")


def file_name(process: RankSnapshot) -> str:
    """`rank-3`, else `process-0`; with the pid, which keeps two jobs' ranks of one number apart."""
    name = f"process-{process.index}" if process.rank is None else f"rank-{process.rank}"
    return f"{name}-pid-{process.pid}" if process.pid is not None else name


def _stacks(process: RankSnapshot) -> List[str]:
    lines = [f"{process.label}: {counted(len(process.threads), 'thread')}, state {process.state}"]
    lines += [f"problem: {text}" for text in process.problems]
    for thread in process.threads:
        name = f' "{thread.name}"' if thread.name else ""
        known = [f"state {thread.state}" if thread.state else "", f"wchan {thread.wchan}" if thread.wchan else ""]
        known += [f"cpu {thread.cpu:.2f}" if thread.cpu is not None else ""]
        known += [f"syscall {thread.syscall[0]}" if thread.syscall else "", "holds the GIL" if thread.gil else ""]
        lines += ["", f"Thread {thread.id} (LWP {thread.lwp}){name}: {', '.join(filter(None, known))}"]
        lines += [_frame(number, frame) for number, frame in enumerate(thread.frames)]
        lines += [f"(cut: {thread.truncated})"] if thread.truncated else []
    return lines


def _frame(number: int, frame: Frame) -> str:
    """As gdb prints it, so that its readers can read it."""
    pc = f"0x{frame.pc:016x} in " if frame.pc is not None else ""
    place = f" at {frame.file}:{frame.line}" if frame.file and frame.line else f" at {frame.file}" if frame.file else ""
    place = place or (f" from {frame.module}" if frame.module else "")
    python = " [Python]" if frame.language == "python" else ""
    return f"#{number:<3} {pc}{frame.function or '??'} (){place}{python}"


def _maps(process: RankSnapshot) -> List[str]:
    """The maps of a process that still runs here; they name files, so they are scrubbed too."""
    if process.given is not Given.LIVE or process.pid is None or not process.alive:
        return []
    try:
        text = read_maps_text(process.pid)
    except OSError:
        return []
    return [scrub_text(line) for line in text[:_MOST_MAPS].splitlines()]


def _variables(snapshot: JobSnapshot) -> List[str]:
    lines: List[str] = []
    for process in snapshot.processes:
        lines += [f"{process.label}:", *(f"  {name}={value}" for name, value in sorted(process.environment.items()))]
    return lines


def _witnesses(snapshot: JobSnapshot) -> List[str]:
    lines: List[str] = []
    for witness in snapshot.witnesses:
        lines += [f"{witness.name}: {witness.state}" + (f" ({witness.reason})" if witness.reason else "")]
        lines += [f"  {one.says}: {one.text}" for one in witness.statements]
    return lines or ["no source was queried"]
