"""The prompt of pdb in a rank."""

from __future__ import annotations

from gdbext.commands.argument_types import number
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import QUIET, WHICH_GDB

COMMANDS = (
    Command(
        "Open the pdb prompt of the rank that a breakpoint_() of gdbext.rankpdb stopped",
        gdbext="pdb",
        run="gdbext.cli.pdb.command",
        arguments=(
            Argument(
                "pid", "a rank of another user's job, or in a container", "PID", number, nargs="?", completes="pid"
            ),
            Argument("--pid", "the same; Python 3.14 stops where it is", "PID", number, shell_name="also_pid"),
            Argument("--rank", "debug this rank, now and at all breakpoints to come", "N", int),
            Argument("--job", "when there are several; --list names them", "NAME"),
            Argument("--list", "which rank is where", flag=True),
            Argument("--release", "let the ranks go on that wait for the one at its prompt", flag=True),
            Argument("--inject", "put a breakpoint there into the running ranks, once", "FILE:LINE"),
            Argument("--deadline", "seconds that it may take (30)", "S", float, default=30.0),
            *(WHICH_GDB, QUIET),
        ),
    ),
)
