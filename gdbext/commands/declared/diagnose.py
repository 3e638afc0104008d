"""The verdict, and the merged stacks it is given on."""

from gdbext.commands.declaration import GDB, SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import (
    CORE_FILES,
    DETAIL,
    FORMAT,
    HOSTS,
    MAX_PAUSE,
    PAGE,
    PIDS,
    QUIET,
    SELECTING,
    SPINNING,
    WHICH_GDB,
)

SAVE = Argument("--save", "save a snapshot; `gdbext diagnose FILE` diagnoses it again", "FILE", completes="file")
LET_RUN = Argument(
    "--let-run",
    "release the attached ranks, look as with nothing attached (up to --spinning-after), attach to them again",
    flag=True,
    where=GDB,
)
NO_STOP = Argument("--no-stop", "do not stop any process; only sleeping threads are read", flag=True)
LOOK_ARGUMENTS = (
    Argument(
        "--samples",
        "take N samples, to tell slow from stuck; each reads every rank twice (default: 1; if it is not clear yet "
        "whether anything hangs, more of them within --spinning-after)",
        "N",
        int,
        where=SHELL,
    ),
    Argument("--interval", "seconds between two samples (2)", "S", float, default=2.0, where=SHELL),
    SPINNING,
    Argument(
        "--once",
        "read each rank only once for a sample: faster, but the answer cannot say whether a thread moved",
        flag=True,
        where=SHELL,
    ),
    Argument("--no-witnesses", "do not query NCCL RAS, NVML, ... before the stop", flag=True, where=SHELL),
    Argument("--together", "stop all ranks at the same instant", flag=True, where=SHELL),
    MAX_PAUSE,
    Argument("--frames", "frames to read for each thread (256)", "N", int, default=256, where=SHELL),
    Argument("--deadline", "time limit for symbols and gdb, in seconds (120)", "S", float, default=120.0, where=SHELL),
    Argument("--jobs", "number of parallel gdbs (default: by cores and memory)", "N", int, default=0, where=SHELL),
    WHICH_GDB,
    *HOSTS,
    Argument("--not-ranks", "", flag=True, where=SHELL),  # of a gdb that holds these: only the engine's other processes
    Argument("--look-only", "", flag=True, where=SHELL),  # of --hosts: saves the snapshot; who asked judges it
    *(one.only(SHELL) for one in CORE_FILES),
)
"""How `gdbext` looks."""

HOW = (
    "With ranks attached (or core files loaded), reads their stacks once, and stops the engine's other processes for "
    "a moment each to read theirs. With nothing attached, runs `gdbext "
    "diagnose`, which stops each rank for milliseconds only; with --no-stop, not at all."
)
_INPUTS = Argument(
    "inputs",
    "pids, core files, logs, folders of logs, pasted stacks, saved snapshots; - is standard input", "PID|FILE",
    nargs="*", completes="file", where=SHELL,
)  # fmt: skip

DIAGNOSE = Command(
    "Find the rank that is holding up the job: who waits for what, why, what to do",
    gdb="llm-nccl-diagnose",
    aliases=("llm-diagnose",),
    body="gdbext.commands.diagnose:diagnose",
    gdbext="diagnose",
    run="gdbext.cli.diagnose",
    arguments=(
        _INPUTS,
        *(PIDS.only(GDB), *SELECTING, NO_STOP, LET_RUN, SAVE, *DETAIL, FORMAT),
        Argument("--explain-verdict", "also list the evidence and the hypotheses that were rejected", flag=True),
        Argument(
            "--bundle",
            "save everything that was read in a new folder, to share or to diagnose again",
            "DIR",
            where=SHELL,
        ),
        *(*PAGE, QUIET, *LOOK_ARGUMENTS),
    ),
    description=HOW,
    examples=(
        "llm-nccl-diagnose",
        "llm-nccl-diagnose -v",
        "llm-nccl-diagnose --no-stop",
        "llm-nccl-diagnose --let-run",
        "llm-nccl-diagnose --save hang.json",
        "llm-nccl-diagnose --html hang.html",
        "llm-nccl-diagnose --explain-verdict",
    ),
)
STACKS = Command(
    "Show the stacks of all ranks merged into one tree",
    gdb="llm-stacks",
    body="gdbext.commands.diagnose:stacks",
    gdbext="stacks",
    run="gdbext.cli.diagnose",
    category="stack",
    arguments=(_INPUTS, PIDS.only(GDB), *SELECTING, NO_STOP, SAVE, FORMAT, *PAGE, QUIET, *LOOK_ARGUMENTS),
    description=HOW,
)
COMMANDS = (DIAGNOSE, STACKS)
