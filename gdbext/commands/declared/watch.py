"""A job watched until it stands still."""

from __future__ import annotations

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import MAX_PAUSE, PIDS, QUIET, SELECTING, SPINNING, WHICH_GDB

COMMANDS = (
    Command(
        "Poll a job without stopping it, and keep a bundle when it stands still",
        gdbext="watch",
        run="gdbext.cli.watch",
        arguments=(
            PIDS,
            Argument("--still", "seconds of standstill (60)", "T", float, default=60.0),
            Argument("--every", "seconds between two polls (5)", "S", float, default=5.0),
            Argument("--keep", "how many bundles are kept, the newest (5)", "N", int, default=5),
            Argument("--into", "folder of the bundles (gdbext-watch)", "DIR", default="gdbext-watch"),
            *(SPINNING, MAX_PAUSE),
            Argument("--deadline", "for symbols and gdb (120)", "S", float, default=120.0),
            WHICH_GDB,
            Argument("--json", "one JSON document a line", flag=True),
            Argument("--output", "write what is seen to FILE, a new one, not to stdout", "FILE"),
            Argument("--force", "let --output replace a file", flag=True),
            *(QUIET, *SELECTING),
        ),
        answers=False,  # many, as they come
    ),
)
