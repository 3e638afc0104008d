"""The prompt of pdb in a rank."""

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
                "pid",
                "a rank, if the job is another user's or in a container",
                "PID",
                number,
                nargs="?",
                completes="pid",
            ),
            Argument(
                "--pid", "the same; with Python 3.14 it stops where it is now", "PID", number, shell_name="also_pid"
            ),
            Argument("--rank", "debug this rank, at this breakpoint and all later ones", "N", int),
            Argument("--job", "the job, if there are several; --list shows them", "NAME"),
            Argument("--list", "list where each rank is", flag=True),
            Argument("--release", "resume the ranks that wait for the one at its prompt", flag=True),
            Argument("--inject", "set a breakpoint in the running ranks, for one hit", "FILE:LINE"),
            Argument("--deadline", "time limit in seconds (30)", "S", float, default=30.0),
            *(WHICH_GDB, QUIET),
        ),
    ),
)
