"""Whether everything is there that a look needs."""

from gdbext.commands.declaration import GDB, Argument, Command
from gdbext.commands.declared.shared_arguments import HOSTS, SELECTORS, WHICH_GDB

COMMANDS = (
    Command(
        "Check for problems that prevent inspection of ranks, and say how to fix them",
        gdb="llm-doctor",
        body="gdbext.commands.doctor:doctor",
        gdbext="doctor",
        statuses="0 nothing prevents a look, 1 something does, 2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.doctor",
        arguments=(*SELECTORS, Argument("--gdb", "check only this gdb", flag=True, where=GDB), WHICH_GDB, *HOSTS),
        description=(
            "Checks this gdb, its Python and settings, the jobs on this host, and the permission to attach to them."
        ),
        examples=("llm-doctor",),
    ),
)
