"""The answer of a command: text to stdout, with `--json` a document."""

from __future__ import annotations

import os
import sys
from typing import Optional

from gdbext.commands.files import write_private
from gdbext.frontend.interrupts import interrupts_wait
from gdbext.frontend.terminal import style_for, write_lines
from gdbext.render import dumps, render


def show(found: object, json: Optional[str]) -> None:
    """Print a result of `model`: as text, or with `--json` as a document; `--json FILE` writes that beside the text."""
    if json:
        with interrupts_wait():
            text = dumps(found)
        write_document(json, text)
    if json != "-":
        with interrupts_wait():  # loads modules, as above
            lines = render(found, style_for(sys.stdout, os.environ))
        write_lines(lines)


def write_document(where: str, text: str) -> None:
    """JSON to stdout for "-", else to a private file."""
    if where == "-":
        write_lines([text])
    else:
        write_private(where, text + "\n")
