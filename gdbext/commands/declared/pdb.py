"""The prompt of pdb in a rank."""

from gdbext.commands.argument_types import number
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import NEEDS_GDB, QUIET

COMMANDS = (
    Command(
        "Open the pdb prompt of the rank that stopped at a breakpoint_() of gdbext.rankpdb",
        gdbext="pdb",
        statuses="0 the prompt has ended, also by Ctrl-C (with --list: ranks were found; with --release: ranks were "
        "released), 2 wrong usage, 4 no rank found, 130 interrupted before there was a prompt to wait for",
        run="gdbext.cli.pdb.command",
        arguments=(
            Argument(
                "pid",
                "pid of a rank; needed if the job runs as another user or in a container",
                "PID",
                number,
                nargs="?",
                completes="pid",
            ),
            Argument(
                "--pid",
                "the same as PID, but with Python 3.14 it also stops a rank that is not at a breakpoint",
                "PID",
                number,
                shell_name="also_pid",
            ),
            Argument("--rank", "debug this rank, at this breakpoint and all later ones", "N", int),
            Argument("--job", "the job, if there are several; --list shows them", "NAME"),
            Argument("--list", "list the ranks and where each one is", flag=True),
            Argument("--release", "resume the ranks that wait for the rank at the prompt", flag=True),
            Argument("--inject", "set a one-time breakpoint in the running ranks", "FILE:LINE"),
            Argument("--deadline", "time limit in seconds (30)", "S", float, default=30.0),
            *(NEEDS_GDB, QUIET),
        ),
    ),
)
