"""`gdbext error CODE`: what an error number or name means."""

from __future__ import annotations

import argparse

from gdbext.commands.error import explain_error
from gdbext.frontend.answer import show
from gdbext.model.errors import OK


def run(options: argparse.Namespace) -> int:
    """Print what is known of the error. Raises `UsageError` for one that is not known."""
    found = explain_error(" ".join(options.error))
    show(found, options.json)
    return OK
