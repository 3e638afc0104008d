"""`gdbext gdbinit`: where the file is that gdb must source."""

from __future__ import annotations

import argparse

from gdbext.cli.terminal import write_lines
from gdbext.collect.gdb_runs.batch_runs import INIT
from gdbext.model.errors import OK


def run(options: argparse.Namespace) -> int:
    """Print its path."""
    write_lines([INIT])
    return OK
