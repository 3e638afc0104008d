"""What the words of an answer mean."""

from gdbext.commands.declaration import Argument, Command

COMMANDS = (
    Command(
        "Explain a label of an answer: its meaning, how it is recognised, what to do",
        gdb="llm-explain",
        body="gdbext.commands.explain:answer",
        gdbext="explain",
        statuses="0 done, 2 wrong usage, 130 interrupted",
        run="gdbext.cli.explain",
        arguments=(
            Argument("label", "a cause, a wait or a state (default: list all)", "LABEL", nargs="?", completes="label"),
        ),
        examples=("llm-explain missing-rank", "llm-explain pinned-host-alloc"),
    ),
)
