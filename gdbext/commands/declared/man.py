"""The manual page."""

from gdbext.commands.declaration import Command

COMMANDS = (
    Command(
        "Print the manual page, in troff format",
        gdbext="man",
        statuses="0 done, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.man",
        shell_examples=("gdbext man | man -l -", "gdbext man > ~/.local/share/man/man1/gdbext.1"),
        answers=False,
    ),
)
