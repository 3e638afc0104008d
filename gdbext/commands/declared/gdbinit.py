"""The file that gdb sources."""

from __future__ import annotations

from gdbext.commands.declaration import Command

COMMANDS = (
    Command("Print the path of the file to source in gdb", gdbext="gdbinit", run="gdbext.cli.gdbinit", answers=False),
)
