"""What `gdbext profile run` ends with: the traces of all ranks merged, and who is late."""

from __future__ import annotations

import argparse

from gdbext.cli.answer import show
from gdbext.cli.terminal import Progress
from gdbext.model.exit_status import ALL, NONE, PART, exit_status
from gdbext.model.profiling import ProfileAnswer


def report(answer: ProfileAnswer, options: argparse.Namespace, progress: Progress) -> int:
    """Show it; returns the exit status."""
    show(answer, options)
    read = NONE if not answer.files else ALL if answer.complete else PART
    return exit_status(False, read)
