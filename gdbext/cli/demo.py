"""`gdbext demo [NAME]`: gdbext at work on a small engine that hangs in a known way.

Where a compiler is, the engine is built and started, and ended again: in a clone by scripts/demo, of an installed
package from the sources in it (setup.py), in the user's folder for caches. Elsewhere there are looks at it that
tests/inferiors/record.py took: snapshots in `gdbext/demo`, as --save writes them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import List

import gdbext
from gdbext.analysis.verdict.judge import judge
from gdbext.capture.user_cache import folder_of
from gdbext.cli import diagnose
from gdbext.cli.command_line import parser
from gdbext.cli.parse_command_line import parse
from gdbext.cli.terminal import Progress, write_lines
from gdbext.commands.demo_looks import FOLDER, NAMES
from gdbext.model.errors import OK, GdbextError, UsageError
from gdbext.model.snapshot_files.codec import load_snapshot

_FIRST = "pinned-alloc"
_TOOLS = ("gdb", "g++", "gcc", "strip")


def run(options: argparse.Namespace) -> int:
    """List them, or show one; returns the status of its diagnosis. Raises `UsageError` for an unknown name."""
    if options.list:
        write_lines([f"{name:28}{_cause(name)}" for name in NAMES])
        return OK
    name = options.name or _FIRST
    if name not in NAMES:
        raise UsageError(f"unknown demo {name!r}", "run `gdbext demo --list` to list all of them")
    progress = Progress(options.quiet)
    if options.live and options.recorded:
        raise UsageError("--live and --recorded cannot be combined", "give one of them")
    if not options.recorded:
        lacking = _start_engine(name)  # it returns only where it cannot
        if options.live:
            raise GdbextError(f"the demo engine cannot be started here: {lacking}", "gdbext demo --recorded")
    path = os.path.join(FOLDER, f"{name}.json")
    progress.note("a recorded snapshot of a small engine, as written by: gdbext diagnose --save hang.json")
    progress.note(f"$ gdbext diagnose {path}")
    return diagnose.run(_of_diagnose(["diagnose", path, *(["--quiet"] if options.quiet else [])]))


def _start_engine(name: str) -> str:
    """Build it, start it and diagnose it in place of this process; what is lacking where that cannot be."""
    tools = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} not found"
    sys.stdout.flush()
    script = Path(gdbext.__file__).resolve().parents[1] / "scripts" / "demo"
    if script.is_file():
        os.execv(script, [str(script), "--hang", name])  # noqa: S606 - an argument list, no shell
    engine = Path(FOLDER, "engine")
    show = engine / "tests" / "inferiors" / "show.py"
    if not show.is_file():
        return "this package does not contain its sources"
    folder = folder_of()
    if folder is None:
        return "there is no cache folder to build it in"
    path = os.pathsep.join(filter(None, (str(engine), os.environ.get("PYTHONPATH"))))
    environ = {**os.environ, "PYTHONPATH": path, "GDBEXT_DEMO_BUILD": os.path.join(folder, "demo")}
    os.execve(sys.executable, [sys.executable, str(show), "--hang", name], environ)  # noqa: S606
    return ""


def _of_diagnose(words: List[str]) -> argparse.Namespace:
    options = argparse.Namespace(answered=False, json=False)
    parse(parser(), words, options)
    return options


def _cause(name: str) -> str:
    text = Path(FOLDER, f"{name}.json").read_bytes()
    return judge(load_snapshot(text)).verdict.cause
