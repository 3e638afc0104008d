"""A job to try gdbext on."""

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import QUIET

COMMANDS = (
    Command(
        "Diagnose a small job that hangs: live if a compiler is installed, else recorded",
        gdbext="demo",
        run="gdbext.cli.demo",
        arguments=(
            Argument("name", "which hang to show (default: pinned-alloc)", "NAME", nargs="?", completes="demo"),
            Argument("--list", "list all hangs, one on each line", flag=True),
            Argument("--live", "build and start the demo engine; never show a recording instead", flag=True),
            Argument("--recorded", "show the recording, even if a compiler is installed", flag=True),
            QUIET,
        ),
        shell_examples=("gdbext demo", "gdbext demo collective-mismatch"),
        answers=False,
    ),
)
