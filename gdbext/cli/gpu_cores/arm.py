"""`gdbext gpucore arm [-- COMMAND]`: start a program so that the driver writes GPU cores, or print the variables."""

from __future__ import annotations

import argparse
import os
import re
from typing import Dict, List, Mapping, Optional, Tuple

from gdbext.cli.answer_output import show
from gdbext.cli.terminal import Progress
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.knowledge.launch.gpu_core_settings import ARM, DRIVER, FILE, FLAGS, LEAST_FREE, NEWEST, old_row
from gdbext.model.errors import GdbextError, NothingFound, refused_as
from gdbext.model.exit_status import exit_status
from gdbext.model.gpu_core_arming import ArmedEnvironment
from gdbext.model.missing import Missing
from gdbext.render.style import Style
from gdbext.render.text.gpu_core_arming import environment_lines

FOLDER = "gpucores"
_MPI = ("mpirun", "mpiexec", "orterun", "prterun")


def run(options: argparse.Namespace) -> int:
    """Become the program; without one print the variables. Raises `GdbextError`, `NothingFound`."""
    words: List[str] = options.program
    found = environment(options.dir or FOLDER, options.driver, options.full, dict(os.environ), ProcFS(), words)
    if not words:
        show(found, options)
        return exit_status(False)
    progress = Progress(options.quiet)
    for line in environment_lines(found, Style()):
        progress.say(line)
    try:
        os.execvpe(words[0], words, {**os.environ, **found.variables})  # noqa: S606 - the user's own words
    except OSError as error:
        raise NothingFound(f"cannot run {words[0]}: {error.strerror}") from None


def environment(
    folder: str, driver: Optional[int], full: bool, environ: Mapping[str, str], proc: ProcFS, words: List[str]
) -> ArmedEnvironment:
    """The variables, the folder made. What is set already stays. Raises `GdbextError`."""
    folder = os.path.abspath(os.path.expanduser(folder))
    notes: List[str] = []
    known = driver or driver_of(proc)
    if known is None:
        notes.append(
            f"no NVIDIA driver is here (/proc/driver/nvidia/version); the names are those of r{NEWEST}: --driver N"
            " takes others"
        )
    free, said = _room(folder, environ, proc, full)
    notes += said
    variables: Dict[str, str] = {}
    for row in ARM:
        if not row.fits(known or NEWEST) or (full and not row.full):
            continue
        value = row.value.format(folder=folder)
        if row.name in environ and environ[row.name] != value:
            notes.append(f"{row.name}={environ[row.name]} is already set and stays; gdbext would set {value}")
        variables[row.name] = environ.get(row.name, value)
    for name in sorted(environ):
        old = old_row(name, environ[name], known or NEWEST)
        if old is not None:
            notes.append(f"{name}: {old.says}")
    if "|" in variables[FILE] or "gzip_compress" in variables.get(FLAGS, ""):
        notes.append("`gdbext gpucore read` unpacks gzip; a core that a command takes it cannot see")
    if words and os.path.basename(words[0]) in _MPI:
        names = " ".join(f"-x {name}" for name in variables)
        notes.append(f"ranks on other hosts get the variables by options of Open MPI: {names}")
    notes.append("a compute-sanitizer or debugger in the same process keeps the driver from writing cores")
    return ArmedEnvironment(driver=known, folder=folder, free=free, variables=variables, notes=tuple(notes))


def driver_of(proc: ProcFS) -> Optional[int]:
    """The branch of the driver of this host: 535, 580."""
    text = proc.text("driver/nvidia/version")
    found = None if isinstance(text, Missing) else re.search(DRIVER, text)
    return int(found[1]) if found else None


def _room(folder: str, environ: Mapping[str, str], proc: ProcFS, full: bool) -> Tuple[Optional[int], List[str]]:
    """Make the folder; how much is free there. Raises `GdbextError` where nothing can be written."""
    if FILE in environ:
        folder = os.path.dirname(environ[FILE]) or "."
    with refused_as(f"GPU cores cannot be written to {folder}", "name another with --dir"):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
        free = os.statvfs(folder)
    free_bytes = free.f_bavail * free.f_frsize
    gpus = max(1, _gpus(proc))
    if free_bytes < LEAST_FREE * gpus:
        raise GdbextError(
            f"{folder} has {free_bytes >> 20} MiB free, too little for the cores of {gpus} GPUs",
            "name another with --dir",
        )
    notes = (
        [f"with --full a core holds the memory that is in use on its GPU: {free_bytes >> 30} GiB are free"]
        if full
        else []
    )
    return free_bytes, notes


def _gpus(proc: ProcFS) -> int:
    try:
        return len(os.listdir(os.path.join(proc.root, "driver/nvidia/gpus")))
    except OSError:
        return 0
