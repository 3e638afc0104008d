"""The stack of one thread."""

from gdbext.commands.argument_types import frame_count, frame_number
from gdbext.commands.declaration import Argument, Command

_SELECTED = (
    "Names in llm-tensor are those of the selected Python frame. It stays selected until the program runs or another "
    "thread or native frame is selected; then it is the one that gdb's frame executes. gdb's own frame stays as it is."
)

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
            Argument("--locals", "with the local variables of the Python frames", flag=True),
        ),
        description=(
            "Python frames, marked py, replace the interpreter's frames that execute them. The numbers are "
            "gdb's, so `frame 7` selects the frame that is numbered 7 here; `llm-py-frame 2` selects py2."
        ),
        examples=("llm-bt", "llm-bt --locals", "llm-bt 20 --ranks all", "llm-bt --all --ranks 1"),
        repeats=True,
    ),
    Command(
        "Select and show the Python frame that called the selected one",
        gdb="llm-py-up",
        body="gdbext.commands.backtrace:up",
        category="stack",
        arguments=(
            Argument("count", "so many frames further out (default: 1)", "COUNT", frame_count, nargs="?", default=0),
        ),
        description=_SELECTED,
        examples=("llm-py-up", "llm-py-up 3"),
        repeats=True,
    ),
    Command(
        "Select and show the Python frame that the selected one called",
        gdb="llm-py-down",
        body="gdbext.commands.backtrace:down",
        category="stack",
        arguments=(
            Argument("count", "so many frames further in (default: 1)", "COUNT", frame_count, nargs="?", default=0),
        ),
        description=_SELECTED,
        repeats=True,
    ),
    Command(
        "Show the selected Python frame, or select one by its number",
        gdb="llm-py-frame",
        body="gdbext.commands.backtrace:frame",
        category="stack",
        arguments=(Argument("number", "the number of a Python frame in `llm-bt`", "NUMBER", frame_number, nargs="?"),),
        description=_SELECTED,
        examples=("llm-py-frame", "llm-py-frame 2"),
    ),
)
