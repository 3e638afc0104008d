"""`gdbext gpucore read FILE...`: what GPU cores hold."""

from __future__ import annotations

import argparse

from gdbext.cli.answer_output import show
from gdbext.cli.inputs.reading import refuse_device
from gdbext.cli.terminal import Progress
from gdbext.model.errors import NothingFound, UsageError
from gdbext.model.exit_status import ALL, PART, exit_status
from gdbext.snapshot_builder.gpu_cores import read_all


def run(options: argparse.Namespace) -> int:
    """The whole command; status 1 when there is an exception. Raises `UsageError`, `NothingFound`."""
    if not options.inputs:
        raise UsageError("no file is named", "gdbext gpucore read *.nvcudmp")
    for name in options.inputs:
        refuse_device(name)
    progress = Progress(options.quiet, one_line=True)
    listing = read_all(options.inputs, progress.say)
    if not listing.cores:
        raise NothingFound("no GPU core could be read: " + "; ".join(listing.unread))
    show(listing, options)
    found = any(core.exceptions for core in listing.cores)
    return exit_status(found, PART if listing.unread else ALL)
