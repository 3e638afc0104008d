"""The answer of a command: text to stdout, with `--json` a document."""

from __future__ import annotations

import os
import sys
from typing import Optional

from gdbext.commands.files import write_private
from gdbext.frontend.terminal import style_for, write_lines
from gdbext.render import render
from gdbext.render.document import dumps


def show(found: object, json: Optional[str]) -> None:
    """Print a result of `model`: as text, or with `--json` as a document; `--json FILE` writes that beside the text."""
    if json:
        write_document(json, dumps(found))
    if json != "-":
        write_lines(render(found, style_for(sys.stdout, os.environ)))


def write_document(where: str, text: str) -> None:
    """JSON to stdout for "-", else to a private file."""
    if where == "-":
        write_lines([text])
    else:
        write_private(where, text + "\n")
