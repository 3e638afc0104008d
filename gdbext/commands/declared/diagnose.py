"""The verdict, and the merged stacks it is given on."""

from __future__ import annotations

from gdbext.commands.declaration import GDB, SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import (
    CORE_FILES,
    DETAIL,
    MAX_PAUSE,
    PIDS,
    QUIET,
    SELECTING,
    SPINNING,
    WHICH_GDB,
)

SAVE = Argument("--save", "write the snapshot: `gdbext diagnose FILE` judges it again", "FILE", completes="file")
NO_STOP = Argument("--no-stop", "stop nobody: only threads that sleep are read", flag=True)
LOOKING = (
    Argument("--samples", "look N times: tells slow from stuck", "N", int, default=1, where=SHELL),
    Argument("--interval", "seconds between two looks (2)", "S", float, default=2.0, where=SHELL),
    SPINNING,
    Argument("--once", "no second copy that tells waiting from passing through", flag=True, where=SHELL),
    Argument("--no-witnesses", "do not ask NCCL RAS, NVML, ... before the stop", flag=True, where=SHELL),
    Argument("--together", "one moment for all ranks, not one for each", flag=True, where=SHELL),
    MAX_PAUSE,
    Argument("--frames", "frames read of each thread (256)", "N", int, default=256, where=SHELL),
    Argument("--deadline", "seconds for symbols and gdb (120)", "S", float, default=120.0, where=SHELL),
    Argument("--jobs", "gdbs side by side (by cores and memory)", "N", int, default=0, where=SHELL),
    WHICH_GDB,
    *(one.only(SHELL) for one in CORE_FILES),
)
"""How `gdbext` looks."""

HOW = (
    "With ranks attached (or core files loaded) their stacks are walked once. With nothing attached, a "
    "`gdbext diagnose` of its own looks at the ranks, holding each for milliseconds only; with --no-stop not at all."
)
_INPUTS = Argument(
    "inputs", "pids, core files, pasted stacks, saved snapshots; - is standard input", "PID|FILE",
    nargs="*", completes="file", where=SHELL,
)  # fmt: skip

DIAGNOSE = Command(
    "Say who waits for what, who is to blame, why, and what to do",
    gdb="llm-nccl-diagnose",
    body="gdbext.commands.diagnose:diagnose",
    gdbext="diagnose",
    run="gdbext.cli.diagnose",
    arguments=(
        _INPUTS,
        *(PIDS.only(GDB), *SELECTING, NO_STOP, SAVE, *DETAIL),
        Argument("--explain-verdict", "tell all that was weighed, not the answer alone", flag=True),
        Argument("--bundle", "write all that was read to a new folder, for a maintainer", "DIR", where=SHELL),
        *(QUIET, *LOOKING),
    ),
    description=HOW,
    examples=(
        "llm-nccl-diagnose",
        "llm-nccl-diagnose -v",
        "llm-nccl-diagnose --no-stop",
        "llm-nccl-diagnose --save hang.json",
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
    arguments=(_INPUTS, PIDS.only(GDB), *SELECTING, NO_STOP, SAVE, QUIET, *LOOKING),
    description=HOW,
)
COMMANDS = (DIAGNOSE, STACKS)
