"""`gdbext error CODE`: what an error number or name means."""

from __future__ import annotations

import argparse

from gdbext.cli.answer_output import show
from gdbext.commands.error import explain_error
from gdbext.model.errors import OK, UsageError


def run(options: argparse.Namespace) -> int:
    """Print what is known of the error. Raises `UsageError` for one that is not known."""
    if len(options.error) > 1 and all(word.isdigit() for word in options.error):
        raise UsageError("one error number at a time", f"gdbext error {options.error[0]}")
    found = explain_error(" ".join(options.error))
    show(found, options)
    return OK
