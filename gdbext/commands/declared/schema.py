"""The JSON schema of the answers."""

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Print the JSON schema of the answers",
        gdbext="schema",
        statuses="0 done, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.schema",
        arguments=(
            Argument("answer", "only the schema of this command: diagnose, locks, llm-bt, ...", "COMMAND", nargs="?"),
        ),
        answers=False,
    ),
)
