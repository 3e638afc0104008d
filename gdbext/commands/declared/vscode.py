"""The ranks in an editor."""

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import PIDS, SELECTING, WHICH_GDB

COMMANDS = (
    Command(
        "Write a launch.json that attaches VS Code to every rank of the running job",
        gdbext="vscode",
        statuses="0 done; with --check 0 launch.json has the current pids, 1 it was rewritten, "
        "2 wrong usage, 130 interrupted",
        run="gdbext.cli.vscode",
        arguments=(
            *(PIDS, WHICH_GDB),
            Argument("--into", "folder of the launch.json (.vscode)", "DIR", default=".vscode"),
            Argument("--check", "write it again, and fail, if the ranks have other pids now", flag=True),
            Argument("--print", "print it instead of writing it", flag=True),
            *SELECTING,
        ),
        answers=False,
    ),
)
