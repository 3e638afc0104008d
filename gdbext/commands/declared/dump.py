"""Tensors and graphs that an engine wrote."""

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "List dumped tensors and graphs by rank and step, and those that some ranks lack",
        gdbext="dump",
        run="gdbext.cli.dump",
        arguments=(
            Argument("action", "ls: list what was dumped", "ls", choices=("ls",)),
            Argument("folder", "the folder of the dump", "DIR", completes="file"),
            Argument("--rank", "only this rank; lists each file", "N", int),
            Argument("--step", "only this step", "N", int),
            Argument("--name", "only tensors whose name contains TEXT", "TEXT"),
        ),
    ),
)
