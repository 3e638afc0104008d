"""Tensors and graphs that an engine wrote."""

from __future__ import annotations

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Say what was dumped, by rank and step, and what ranks do not have in common",
        gdbext="dump",
        run="gdbext.cli.dump",
        arguments=(
            Argument("action", "ls: list it", "ls", choices=("ls",)),
            Argument("folder", "the folder of the dump", "DIR", completes="file"),
            Argument("--rank", "only this rank's, each file by its name", "N", int),
            Argument("--step", "only of this step", "N", int),
            Argument("--name", "only tensors with this in their name", "TEXT"),
        ),
    ),
)
