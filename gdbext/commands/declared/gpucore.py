"""GPU core dumps: asked for, and read."""

from gdbext.commands.argument_types import number
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import QUIET, SELECTING

_ARM, _TRIGGER = "arm", "trigger"
_ACTIONS = ("arm", "status", "trigger", "read")

COMMANDS = (
    Command(
        "Read GPU core dumps, start a job so that it writes them, ask a hung job for them",
        gdbext="gpucore",
        run="gdbext.cli.gpucore",
        program="program",
        arguments=(
            Argument(
                "action",
                "arm: start the program behind -- so that it writes them, or print the variables; status: whether each"
                " rank of a job is ready; trigger: ask all ranks now, which can end or stall the job; read: show files"
                " (needs no cuda-gdb and no GPU)",
                "arm|status|trigger|read",
                choices=_ACTIONS,
            ),
            Argument(
                "inputs",
                "status, trigger: pid of any rank; read: GPU core files",
                "PID|FILE",
                nargs="*",
                completes="file",
            ),
            *SELECTING,
            Argument("--dir", "folder for the files and pipes (gpucores)", "DIR", group=_ARM),
            Argument(
                "--driver",
                "variables for this branch of the driver: 535, 580 (default: this host's)",
                "N",
                number,
                group=_ARM,
            ),
            Argument("--full", "with the GPU's memory: as large as what is in use there", flag=True, group=_ARM),
            Argument("--yes", "do not ask: for scripts", flag=True, group=_TRIGGER),
            Argument("--deadline", "seconds to wait for the files (300)", "S", float, default=300.0, group=_TRIGGER),
            QUIET,
        ),
        statuses="read: 0 no exception in any core, 1 an exception, 3 a file was not read and no exception is in the"
        " others; status: 0 every rank is armed, 1 some are not; trigger: 0 all cores are written, 3 some are, 4 none;"
        " all: 2 wrong usage, 4 nothing could be read, 130 interrupted; arm: that of the program",
        shell_examples=(
            "gdbext gpucore arm -- torchrun --nproc-per-node 8 serve.py",
            "gdbext gpucore status",
            "gdbext gpucore trigger",
            "gdbext gpucore read gpucores/*.nvcudmp",
        ),
    ),
)
