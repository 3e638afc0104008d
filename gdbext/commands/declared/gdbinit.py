"""The file that gdb sources."""

from gdbext.commands.declaration import Command

COMMANDS = (
    Command(
        "Print the path of the file to source in gdb",
        gdbext="gdbinit",
        statuses="0 done, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.gdbinit",
        answers=False,
    ),
)
