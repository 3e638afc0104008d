"""The stack of one thread."""

from gdbext.commands.argument_types import frame_count
from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Show native and Python frames of a thread in one stack",
        gdb="llm-bt",
        body="gdbext.commands.backtrace:backtrace",
        category="stack",
        arguments=(
            Argument("count", "at most N innermost frames", "COUNT", frame_count, nargs="?", default=0),
            Argument("--ranks", "ranks such as 0-3,7 or all (default: the selected one)", "RANKS", completes="ranks"),
            Argument("--all", "every thread (default: the selected one)", flag=True),
        ),
        description=(
            "Python frames, marked py, replace the interpreter's frames that execute them. The numbers are "
            "gdb's, so `frame 7` selects the frame that is numbered 7 here."
        ),
        examples=("llm-bt", "llm-bt 20 --ranks all", "llm-bt --all --ranks 1"),
        repeats=True,
    ),
)
