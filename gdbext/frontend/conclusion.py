"""From a snapshot to the answer: judge it, print it, keep it. Loaded while gdb works: a look begins without it."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Optional

from gdbext import __version__, render
from gdbext.analysis.judge import judge
from gdbext.analysis.lock_report import report
from gdbext.analysis.merge import merge
from gdbext.commands.files import write_private
from gdbext.frontend import bundle
from gdbext.frontend.answer import show
from gdbext.frontend.terminal import Progress
from gdbext.model.codec import dump_snapshot
from gdbext.model.errors import FINDING, NOTHING, OK, PARTIAL
from gdbext.model.job import JobSnapshot
from gdbext.model.verdict import Diagnosis


def ready(options: argparse.Namespace) -> None:
    """Load what an answer takes besides this."""
    render.load_for(Diagnosis, bool(options.json), options.json != "-")


def conclude(snapshot: JobSnapshot, options: argparse.Namespace, progress: Progress, started: float) -> int:
    """Judge the snapshot, print the answer, keep what shall be kept; returns the exit status."""
    snapshot = replace(snapshot, tool=f"gdbext {__version__}", command=" ".join(["gdbext", options.command]))
    diagnosis = judge(snapshot)
    tree = merge(snapshot, diagnosis.processes)
    shown: object = replace(diagnosis, tree=tree) if options.command == "diagnose" else tree
    locks = report(diagnosis) if options.command == "locks" else None
    show(locks or shown, options.json)
    _keep(options.save, getattr(options, "bundle", None), snapshot, replace(diagnosis, tree=tree), progress)
    progress.say(f"done in {time.monotonic() - started:.1f} s")
    return exit_status(diagnosis, None if locks is None else locks.finding)


def _keep(
    save: Optional[str], into: Optional[str], snapshot: JobSnapshot, diagnosis: Diagnosis, progress: Progress
) -> None:
    """Write what was asked to be kept. After the answer: a full disk must not cost it."""
    if save:
        write_private(save, dump_snapshot(snapshot) + "\n")
        progress.say(f"snapshot written to {save}")
    if into:
        bundle.write(into, diagnosis)
        progress.say(f"bundle written to {into}")


def exit_status(diagnosis: Diagnosis, finding: Optional[bool] = None) -> int:
    """As in model/errors.py. Like grep, an error weighs more than a match: what was not read may hide the truth.

    `finding` is what was asked for where that is not the verdict.
    """
    states = [process.state for process in diagnosis.snapshot.processes]
    if not states and diagnosis.snapshot.said:
        return FINDING  # log lines alone
    if not states or all(state == "lost" for state in states):
        return NOTHING
    if any(state != "ok" for state in states):
        return PARTIAL
    return FINDING if (diagnosis.verdict.finding if finding is None else finding) else OK
