"""Two looks compared."""

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import PAGE, QUIET

COMMANDS = (
    Command(
        "Compare two saved snapshots: which ranks moved, which stacks are new or gone, which counters advanced",
        gdbext="diff",
        statuses="0 nothing differs, 1 something does, 3 no difference seen, but a rank was not read, "
        "2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.diff",
        arguments=(
            Argument("before", "a saved snapshot or a bundle, or - for standard input", "BEFORE", completes="file"),
            Argument(
                "after", "another snapshot: a later one, or one of another build or host", "AFTER", completes="file"
            ),
            *PAGE,
            QUIET,
        ),
        shell_examples=(
            "gdbext diagnose --save 10h.json; gdbext diagnose --save 11h.json",
            "gdbext diff 10h.json 11h.json",
            "gdbext diff 10h.json 11h.json --html diff.html",
        ),
    ),
)
