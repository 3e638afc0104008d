"""The one look of `gdbext watch --before-kill`, in a child that is killed when it takes too long."""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from gdbext.cli.chosen_processes import chosen_job
from gdbext.cli.terminal import Progress, style_for, write_lines
from gdbext.cli.watching import look_with_bundle
from gdbext.collect.live_ranks import Limits
from gdbext.commands.user_files import write_private
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.model.exit_status import exit_status
from gdbext.model.snapshot_files.codec import dump_snapshot, load_snapshot
from gdbext.render import dumps
from gdbext.render.text.watch import event_lines

_FOR_GDB = 0.6  # of the time: what it has read until then is in the bundle
_ENOUGH = 10.0  # seconds, from which other witnesses are asked


def run(options: argparse.Namespace, into: Path, end: float) -> int:
    """The status."""
    look_with_bundle.folder(options.into)
    progress, proc = Progress(options.quiet), ProcFS()
    left = max(0.5, end - time.monotonic())
    limits = Limits(
        max_pause=min(options.max_pause, left / 4),
        deadline=max(0.3, left * _FOR_GDB),
        gdb=options.gdb,
        confirm=min(1.2, left / 10),
        witnesses=left > _ENOUGH,
    )
    first = None
    if options.first_look and os.path.isfile(options.first_look):
        first = load_snapshot(Path(options.first_look).read_bytes())
    asked = look_with_bundle.Asked(options.stood, options.spinning_after, first)
    diagnosis = look_with_bundle.take(chosen_job(proc, options, options.inputs), limits, asked, progress, proc)
    event = look_with_bundle.watch_event(diagnosis, asked)
    if options.first_look is None or event.kind == "hang":
        event = replace(event, bundle=look_with_bundle.write_bundle(diagnosis, into, options.keep))
    elif event.kind == "undecided" and first is None:
        write_private(options.first_look, dump_snapshot(diagnosis.snapshot), force=True)
    write_lines([dumps(event)] if options.json else event_lines(event, style_for(sys.stdout, os.environ)))
    return exit_status({"hang": True, "no-hang": False}.get(event.kind))
