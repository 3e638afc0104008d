"""The JSON schema of the answers."""

from __future__ import annotations

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Print the JSON schema of the answers",
        gdbext="schema",
        run="gdbext.cli.schema",
        arguments=(
            Argument("answer", "of one command alone: diagnose, locks, llm-bt, ...", "COMMAND", nargs="?"),
            Argument("--path", "print where the file with all of it is", flag=True),
        ),
        answers=False,
    ),
)
