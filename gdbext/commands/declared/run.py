"""A program started with its engine's checks."""

from __future__ import annotations

from gdbext.commands.declaration import ALL_THE_REST, Argument, Command

COMMANDS = (
    Command(
        "Start a program, with the engines' own debug checks switched on",
        gdbext="run",
        run="gdbext.cli.run",
        arguments=(
            Argument("--check", "set the variables that make engines check every layer", flag=True),
            Argument("--engine", "only those of this engine", "NAME"),
            Argument("--quiet", "do not say what is set", flag=True, short="-q"),
            Argument("program", "the program and its arguments", "-- COMMAND", nargs=ALL_THE_REST),
        ),
        answers=False,
    ),
)
