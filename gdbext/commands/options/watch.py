"""A job watched until it stands still."""

from gdbext.commands.declaration import SHELL, Argument, Command
from gdbext.commands.options.shared_arguments import MAX_PAUSE, PIDS, QUIET, SELECTING, SPINNING, WHICH_GDB

COMMANDS = (
    Command(
        "Poll a job without stopping it, and save a bundle when it hangs",
        gdbext="watch",
        statuses="0 no hang was saved, 1 a hang was saved, 3 the last standstill is undecided, "
        "and continues, 2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.watch",
        arguments=(
            PIDS,
            Argument("--still", "how many seconds without progress count as a hang (60)", "T", float, default=60.0),
            Argument("--every", "seconds between two polls (5)", "S", float),
            Argument("--keep", "how many bundles to keep, the newest ones (5)", "N", int, default=5),
            Argument("--into", "folder of the bundles (gdbext-watch)", "DIR", default="gdbext-watch"),
            *(SPINNING, MAX_PAUSE),
            Argument("--deadline", "time limit for symbols and gdb, in seconds (120)", "S", float),
            WHICH_GDB,
            Argument(
                "--before-kill",
                "take one look now, keep a bundle, and be gone within --deadline (30) seconds whatever happens",
                flag=True,
            ),
            Argument("--first-look", "", "FILE"),  # of the service: no bundle but of a hang
            Argument("--stood", "", "T", float),
            Argument("--json", "print one JSON document for each line", flag=True),
            Argument("--output", "write events to FILE instead; FILE must not exist", "FILE"),
            Argument("--force", "let --output overwrite a file", flag=True),
            *(QUIET, *SELECTING),
            Argument("--hosts", "", "HOSTS", where=SHELL),  # refused, with the way round it
        ),
        answers=False,  # many, as they come
    ),
)
