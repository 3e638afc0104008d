"""The ranks in an editor."""

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import NEEDS_GDB, PIDS, SELECTING

COMMANDS = (
    Command(
        "Write a launch.json that attaches VS Code to every rank of the running job, and keep its other entries",
        gdbext="vscode",
        statuses="0 done; with --check 0 launch.json has the current pids, 1 it was rewritten, "
        "2 wrong usage, 4 no job was found, 130 interrupted",
        run="gdbext.cli.vscode",
        arguments=(
            *(PIDS, NEEDS_GDB),
            Argument("--into", "folder for launch.json (.vscode)", "DIR", default=".vscode"),
            Argument("--check", "if the pids have changed, rewrite launch.json and return 1", flag=True),
            Argument("--print", "print launch.json instead of writing it", flag=True),
            *SELECTING,
        ),
        answers=False,
    ),
)
