"""The communicators of NCCL."""

from gdbext.commands.declaration import GDB, SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import DETAIL, HOSTS, PAGE, QUIET, SELECTING

COMMANDS = (
    Command(
        "List NCCL's communicators and the ranks that are behind; stops no process",
        gdb="llm-nccl-comms",
        aliases=("llm-comms",),
        body="gdbext.commands.comms:comms",
        gdbext="comms",
        statuses="0 communicators agree, 1 a rank is behind, or a communicator has an error or was aborted, "
        "3 they agree, but a rank was not read, 2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.comms",
        arguments=(
            Argument(
                "inputs", "pids, or a saved snapshot", "PID|FILE", nargs="*", completes="file", where=SHELL
            ),
            Argument(
                "ranks", "attached ranks such as 0-3,7 (default: all)", "RANKS",
                nargs="?", completes="ranks", where=GDB,
            ),
            Argument("--scan", "also search all private memory (at most 8 GiB and 10 s for each rank)", flag=True),
            Argument("--save", "save what was read; `gdbext comms FILE` shows it again", "FILE", where=SHELL),
            *(*SELECTING, *HOSTS, *DETAIL, *PAGE, QUIET),
        ),
        description=(
            "gdbext finds communicators in the memory of the ranks: through arguments of frames, through pointers on "
            "the stacks and, with --scan, by NCCL's magic numbers. Their layout comes from libnccl's debug "
            "information (the wheels of PyPI have it), or from a table of releases. With nothing attached, gdbext "
            "reads running ranks without stopping them; --name, --pgid, --parent and --engine choose the ranks. "
            "Counts are launches by the host, not "
            "completed work; sends and receives are not counted."
        ),
        examples=("llm-nccl-comms", "llm-nccl-comms 0-3 --scan"),
    ),
)  # fmt: skip
