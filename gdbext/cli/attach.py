"""`gdbext attach`: becomes a gdb that has our commands and every rank attached."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import List

from gdbext.cli.chosen_processes import chosen_job
from gdbext.collect.gdb_runs.batch_runs import INIT, find_gdb
from gdbext.discovery.proc.procfs import ProcFS


def attach_command(options: argparse.Namespace) -> str:
    """The `llm-attach-all` line that asks for the same processes as the shell's options."""
    words: List[str] = ["llm-attach-all", *map(str, options.inputs)]
    for name in ("name", "pgid", "parent", "engine"):
        value = getattr(options, name)
        if value is not None:
            words += [f"--{name}", shlex.quote(str(value))]
    return " ".join(words)


def run(options: argparse.Namespace) -> int:
    """Replace this process by gdb: signals, terminal and exit status are then gdb's own."""
    # No such job is said here, with an exit status: gdb would print it and then wait for commands.
    chosen_job(ProcFS(), options, options.inputs)
    program = find_gdb(options.gdb)
    argv = [
        program,
        "-q",
        "-iex",
        "set debuginfod enabled off",
        "-ex",
        f"source {INIT}",
        "-ex",
        attach_command(options),
    ]
    os.execv(program, argv)  # noqa: S606 - an argument list, no shell
    return 0
