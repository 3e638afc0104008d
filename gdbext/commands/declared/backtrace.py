"""The stack of one thread."""

from __future__ import annotations

from gdbext.commands.argument_types import frame_count
from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Show native and Python frames of a thread in one stack",
        gdb="llm-bt",
        body="gdbext.commands.backtrace:backtrace",
        category="stack",
        arguments=(
            Argument("count", "only so many innermost frames", "COUNT", frame_count, nargs="?", default=0),
            Argument("--ranks", "of these ranks instead of the selected one: 0-3,7 or all", "RANKS", completes="ranks"),
            Argument("--all", "every thread, not the selected one", flag=True),
        ),
        description=(
            "Frames of Python stand in place of the interpreter's frames that execute them, marked py; the numbers are "
            "gdb's, so `frame 7` selects the frame that is numbered 7 here. Frames of the interpreter are left out."
        ),
        examples=("llm-bt", "llm-bt 20 --ranks all", "llm-bt --all --ranks 1"),
        repeats=True,
    ),
)
