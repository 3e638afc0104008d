"""A job to try gdbext on."""

from __future__ import annotations

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import QUIET

COMMANDS = (
    Command(
        "Show gdbext at work on a job that hangs: a recorded look, or in a clone the job itself",
        gdbext="demo",
        run="gdbext.cli.demo",
        arguments=(
            Argument("name", "which hang (pinned-alloc); --list names them", "NAME", nargs="?", completes="demo"),
            Argument("--list", "name the hangs, and what is to be said of each", flag=True),
            Argument("--recorded", "the recorded look, in a clone too", flag=True),
            QUIET,
        ),
        shell_examples=("gdbext demo", "gdbext demo collective-mismatch"),
        answers=False,
    ),
)
