"""`gdbext demo [NAME]`: gdbext at work on a small engine that hangs in a known way.

In a clone with a compiler the engine is built and started by scripts/demo, which ends it again. Elsewhere there are
looks at it that tests/inferiors/record.py took: snapshots in `gdbext/demo`, as --save writes them.
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
from gdbext.cli import diagnose
from gdbext.cli.command_line import parser
from gdbext.cli.parsing import parse
from gdbext.cli.terminal import Progress, write_lines
from gdbext.commands.demo_looks import FOLDER, NAMES
from gdbext.model.errors import OK, UsageError
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
        raise UsageError(f"there is no demo {name}", "gdbext demo --list names them")
    progress = Progress(options.quiet)
    script = Path(gdbext.__file__).resolve().parents[1] / "scripts" / "demo"
    if script.is_file() and not options.recorded and all(map(shutil.which, _TOOLS)):
        sys.stdout.flush()
        os.execv(script, [str(script), "--hang", name])  # noqa: S606 - an argument list, no shell
    path = os.path.join(FOLDER, f"{name}.json")
    progress.note("a recorded look at a small engine; as after: gdbext diagnose --save look.json")
    progress.note(f"$ gdbext diagnose {path}")
    return diagnose.run(_of_diagnose(["diagnose", path, *(["--quiet"] if options.quiet else [])]))


def _of_diagnose(words: List[str]) -> argparse.Namespace:
    options = argparse.Namespace(answered=False, json=False)
    parse(parser(), words, options)
    return options


def _cause(name: str) -> str:
    text = Path(FOLDER, f"{name}.json").read_bytes()
    return judge(load_snapshot(text)).verdict.cause
