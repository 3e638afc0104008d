"""`gdbext explain [LABEL]`: what the words of an answer mean."""

from __future__ import annotations

import argparse

from gdbext.commands.explain import explain
from gdbext.frontend.answer import show
from gdbext.model.errors import OK, UsageError


def run(options: argparse.Namespace) -> int:
    """Print one explanation, or the list of labels. Raises `UsageError` for an unknown label."""
    word = options.json or "-"
    if not options.label and word != "-" and not set("./") & set(word):
        raise UsageError(f"is {word} a label", f"put --json behind it (a file of that name: ./{word})")
    found = explain(options.label)
    show(found, options.json)
    return OK
