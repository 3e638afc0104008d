"""`gdbext explain [LABEL]`: what the words of an answer mean."""

from __future__ import annotations

import argparse
import os
import sys

from gdbext.commands.explain import explain
from gdbext.commands.files import write_private
from gdbext.frontend.terminal import style_for, write_lines
from gdbext.model.errors import OK, UsageError
from gdbext.render import render
from gdbext.render.document import dumps


def run(options: argparse.Namespace) -> int:
    """Print one explanation, or the list of labels. Raises `UsageError` for an unknown label."""
    word = options.json or "-"
    if not options.label and word != "-" and not set("./") & set(word):
        raise UsageError(f"is {word} a label", f"put --json behind it (a file of that name: ./{word})")
    found = explain(options.label)
    if options.json == "-":
        write_lines([dumps(found)])
    elif options.json:
        write_private(options.json, dumps(found) + "\n")
    else:
        write_lines(render(found, style_for(sys.stdout, os.environ)))
    return OK
