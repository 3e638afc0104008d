"""Tensors and graphs that an engine wrote."""

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "List dumped tensors and graphs by rank and step, and what some ranks did not write",
        gdbext="dump",
        statuses="0 done, 2 wrong usage, 4 no dump was found, 130 interrupted",
        run="gdbext.cli.dump",
        arguments=(
            Argument("action", "list the dumped files", "ls", choices=("ls",)),
            Argument("folder", "the folder of the dump", "DIR", completes="file"),
            Argument("--rank", "only this rank; lists each file", "N", int),
            Argument("--step", "only this step", "N", int),
            Argument("--name", "only tensors whose name contains TEXT", "TEXT"),
        ),
    ),
)
