"""`gdbext diff BEFORE AFTER`: two looks at a job that lie an hour, a build or a host apart.

Exit status as git diff has it, and the contract's: 0 nothing differs, 1 something does, 3 it cannot be told of a rank.
"""

from __future__ import annotations

import argparse

from gdbext.analysis.progress.look_difference import difference
from gdbext.cli.answer_output import show, show_page
from gdbext.cli.inputs.given_files import read_snapshot
from gdbext.cli.terminal import Progress
from gdbext.model.errors import FINDING, OK, UNTOLD, UsageError
from gdbext.scrubbing.shareable_snapshot import shareable


def run(options: argparse.Namespace) -> int:
    """Read both, compare, print; returns the exit status. Raises GdbextError."""
    if options.before == options.after == "-":
        raise UsageError("standard input holds only one snapshot", "give a file for the other snapshot")
    progress = Progress(options.quiet)
    (before, old), (after, new) = (read_snapshot(name, progress) for name in (options.before, options.after))
    found = difference(before, after, (old, new))
    show(found, options)
    if options.html is not None:
        show_page(shareable(found), options)
    return FINDING if found.differs else OK if found.told else UNTOLD
