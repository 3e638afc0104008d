"""The answer of a command: text or, with `--json`, a document; to stdout or, with `--output FILE`, into a file."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import Callable, Sequence

from gdbext.cli.terminal import Progress, style_for, write_lines
from gdbext.collect.interrupts import interrupts_wait
from gdbext.commands.again import in_shell
from gdbext.commands.user_files import write_private
from gdbext.render import PLAIN, Style, dumps, render


def show(found: object, options: argparse.Namespace) -> None:
    """Give a result of `model` as the options ask for it."""
    give(lambda: dumps(found), lambda style: render(found, style), options)


def give(document: Callable[[], str], lines: Callable[[Style], Sequence[str]], options: argparse.Namespace) -> None:
    """The same for what is no result of `model`. Notes in `options.answered` that stdout has its one document."""
    with interrupts_wait():  # they load modules
        if options.json_file is not None:
            write_private(options.json_file, document() + "\n")
        style = PLAIN if options.output else style_for(sys.stdout, os.environ)
        style = replace(style, typed=in_shell(options))
        text = [document()] if options.json else lines(style)
    if options.output:
        write_private(options.output, "\n".join(text) + "\n", options.force)
        Progress(getattr(options, "quiet", False)).note(f"answer written to {options.output}")
    else:
        options.answered = True
        write_lines(text)
