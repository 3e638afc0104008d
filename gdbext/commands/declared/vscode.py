"""The ranks in an editor."""

from __future__ import annotations

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import PIDS, SELECTING, WHICH_GDB

COMMANDS = (
    Command(
        "Write a launch.json that attaches VS Code to every rank of the running job",
        gdbext="vscode",
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
