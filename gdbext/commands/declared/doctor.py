"""Whether everything is there that a look needs."""

from __future__ import annotations

from gdbext.commands.declaration import GDB, Argument, Command
from gdbext.commands.declared.shared_arguments import SELECTORS, WHICH_GDB

COMMANDS = (
    Command(
        "Say what hinders a look at the ranks, and how to remove it",
        gdb="llm-doctor",
        body="gdbext.commands.doctor:doctor",
        gdbext="doctor",
        run="gdbext.cli.doctor",
        arguments=(*SELECTORS, Argument("--gdb", "only what concerns this gdb", flag=True, where=GDB), WHICH_GDB),
        description="Looks at this gdb, its Python and settings, the jobs here, and the right to attach to them.",
        examples=("llm-doctor",),
    ),
)
