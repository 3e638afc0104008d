"""`gdbext error CODE`: what an error number or name means."""

from __future__ import annotations

import argparse
import os
import sys

from gdbext.commands.error import explain_error
from gdbext.commands.files import write_private
from gdbext.frontend.terminal import style_for, write_lines
from gdbext.model.errors import OK
from gdbext.render import render
from gdbext.render.document import dumps


def run(options: argparse.Namespace) -> int:
    """Print what is known of the error. Raises `UsageError` for one that is not known."""
    found = explain_error(" ".join(options.error))
    if options.json == "-":
        write_lines([dumps(found)])
    elif options.json:
        write_private(options.json, dumps(found) + "\n")
    else:
        write_lines(render(found, style_for(sys.stdout, os.environ)))
    return OK
