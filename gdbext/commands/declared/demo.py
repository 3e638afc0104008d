"""A job to try gdbext on."""

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import QUIET

COMMANDS = (
    Command(
        "Show gdbext at work on a hanging job: a live one where a compiler is, else a recorded one",
        gdbext="demo",
        run="gdbext.cli.demo",
        arguments=(
            Argument("name", "which hang to show (default: pinned-alloc)", "NAME", nargs="?", completes="demo"),
            Argument("--list", "list the hangs, with one line on each", flag=True),
            Argument("--live", "build and start the demo engine, or say what is lacking", flag=True),
            Argument("--recorded", "use the recording, even where a compiler is", flag=True),
            QUIET,
        ),
        shell_examples=("gdbext demo", "gdbext demo collective-mismatch"),
        answers=False,
    ),
)
