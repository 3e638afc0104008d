"""`gdbext explain [LABEL]`: what the words of an answer mean."""

from __future__ import annotations

import argparse

from gdbext.cli.answer_output import show
from gdbext.commands.explain import explain
from gdbext.model.errors import OK


def run(options: argparse.Namespace) -> int:
    """Print one explanation, or the list of labels. Raises `UsageError` for an unknown label."""
    show(explain(options.label), options)
    return OK
