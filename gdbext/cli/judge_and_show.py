"""From a snapshot to the answer: judge it, print it, keep it. Loaded while gdb works: a look begins without it."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Optional

from gdbext import __version__, render
from gdbext.analysis.locks.lock_report import report
from gdbext.analysis.progress.not_clear import LONGER
from gdbext.analysis.stacks.merged_stacks import merge
from gdbext.analysis.verdict.judge import judge
from gdbext.cli import diagnosis_bundle
from gdbext.cli.answer_output import show, show_page
from gdbext.cli.terminal import Progress
from gdbext.commands.page import page_of
from gdbext.commands.scrubbed_answer import for_others
from gdbext.commands.user_files import write_private
from gdbext.model.exit_status import exit_status
from gdbext.model.job import JobSnapshot
from gdbext.model.look_origin import FromFile, Origin
from gdbext.model.snapshot_files.codec import dump_snapshot
from gdbext.model.verdict import Diagnosis


def ready(options: argparse.Namespace) -> None:
    """Load what an answer takes besides this."""
    page = getattr(options, "html", None) is not None
    render.load_for(Diagnosis, options.json or bool(options.json_file), not options.json, page)


def judged(snapshot: JobSnapshot, options: argparse.Namespace) -> Diagnosis:
    """The answer to what was read, with the command that asked."""
    snapshot = replace(snapshot, tool=f"gdbext {__version__}", command=" ".join(["gdbext", options.command]))
    return judge(snapshot, None, options.spinning_after)


def seconds_to_wait(diagnosis: Diagnosis, spinning_after: float) -> Optional[float]:
    """For how long to wait before the job is looked at again; None where the answer stands, or looks do not help."""
    snapshot, answer = diagnosis.snapshot, diagnosis.verdict.decided_by
    first = min((one.taken_at for one in (*snapshot.earlier, snapshot) if one.taken_at is not None), default=None)
    if answer is None or not answer.startswith(LONGER) or first is None or snapshot.taken_at is None:
        return None
    covered = snapshot.taken_at + (snapshot.apart or 0.0) - first
    # What the looks saw counts, not the clock: one look may take longer than that, and two are needed to compare.
    enough = bool(snapshot.earlier) and covered >= spinning_after
    return None if enough else max(0.0, first + spinning_after - time.time())


def conclude(
    diagnosis: Diagnosis,
    options: argparse.Namespace,
    progress: Progress,
    started: float,
    origin: Optional[Origin] = None,
) -> int:
    """Print the answer, keep what shall be kept; returns the exit status.

    `origin`: the file that the look was read from; without it the processes were looked at just now.
    """
    diagnosis = replace(diagnosis, explains=getattr(options, "explain_verdict", False))
    snapshot = diagnosis.snapshot
    tree = merge(snapshot, diagnosis.processes)
    shown: object = replace(diagnosis, tree=tree) if options.command == "diagnose" else tree
    locks = report(diagnosis) if options.command == "locks" else None
    shown = locks or shown
    form = getattr(options, "format", None)
    if form is not None:
        show(for_others(form, diagnosis, origin), options)
    else:
        show(shown if origin is None else FromFile(shown, origin), options)
    if getattr(options, "html", None) is not None:
        show_page(page_of(diagnosis, options.command, origin), options)
    _keep(options, snapshot, replace(diagnosis, tree=tree), progress, origin is None)
    progress.say(f"done in {time.monotonic() - started:.1f} s")
    return exit_status(diagnosis.hangs if locks is None else locks.finding, snapshot.read)


def _keep(
    options: argparse.Namespace, snapshot: JobSnapshot, diagnosis: Diagnosis, progress: Progress, running: bool
) -> None:
    """Write what was asked to be kept. After the answer: a full disk must not cost it."""
    into = getattr(options, "bundle", None)
    if options.save:
        write_private(options.save, dump_snapshot(snapshot) + "\n", options.force)
        progress.note(f"snapshot written to {options.save}")
    if into:
        diagnosis_bundle.write(into, diagnosis, running)
        progress.note(f"bundle written to {into}")
