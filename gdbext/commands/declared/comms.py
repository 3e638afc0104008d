"""The communicators of NCCL."""

from __future__ import annotations

from gdbext.commands.declaration import GDB, SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import DETAIL, QUIET, SELECTING

COMMANDS = (
    Command(
        "List NCCL's communicators and who is behind in what; no running rank is stopped",
        gdb="llm-nccl-comms",
        body="gdbext.commands.comms:comms",
        gdbext="comms",
        run="gdbext.cli.comms",
        arguments=(
            Argument(
                "inputs", "pids, or a saved snapshot", "PID|FILE", nargs="*", completes="file", where=SHELL
            ),
            Argument(
                "ranks", "of these attached ranks: 0-3,7 or all (default)", "RANKS",
                nargs="?", completes="ranks", where=GDB,
            ),
            Argument("--scan", "search all private memory too (8 GiB and 10 s a rank at most)", flag=True),
            Argument("--save", "write what was read: `gdbext comms FILE` shows it again", "FILE", where=SHELL),
            *(*SELECTING, *DETAIL, QUIET),
        ),
        description=(
            "Communicators are read from the memory of the ranks: what frames were called with, what pointers on the "
            "stacks lead to, with --scan whatever carries NCCL's magic words. Where the members lie is known by the "
            "debug information of libnccl (the wheels of PyPI carry it), else by a table of releases. "
            "With nothing attached, running ranks are read without a stop; the selectors choose which. "
            "Counts are launches by the host, not completed work; sends and receives are not counted."
        ),
        examples=("llm-nccl-comms", "llm-nccl-comms 0-3 --scan"),
    ),
)  # fmt: skip
