"""A job watched until it stands still."""

from gdbext.commands.declaration import SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import MAX_PAUSE, PIDS, QUIET, SELECTING, SPINNING, WHICH_GDB

_SERVICE = "as a service: every job that is found (docs/service.md)"
SERVING = (
    Argument("--service", "follow them day and night; events are JSON lines", flag=True, group=_SERVICE),
    Argument("--config", "settings in TOML, or JSON in NAME.json; SIGHUP reads them again", "FILE", group=_SERVICE),
    Argument("--exec", "run CMD when a job hangs, with the event on its standard input", "CMD", group=_SERVICE),
    Argument("--webhook", "POST the event to URL when a job hangs", "URL", group=_SERVICE),
    Argument("--cooldown", "seconds in which the same of a job is not told again (600)", "S", float, group=_SERVICE),
    Argument("--metrics", "serve numbers for Prometheus at [HOST:]PORT", "ADDRESS", group=_SERVICE),
    Argument("--textfile", "write them to FILE, for node_exporter", "FILE", group=_SERVICE),
    Argument("--quota", "how much all bundles may take, in MiB (2048)", "MIB", int, group=_SERVICE),
)
"""Options that mean nothing without the first of them."""

COMMANDS = (
    Command(
        "Poll a job without stopping it, and save a bundle when it hangs",
        gdbext="watch",
        statuses="0 no hang was saved, 1 a hang was saved, 3 the last standstill is undecided, "
        "and continues, 2 wrong usage, 4 nothing could be read, 130 interrupted; a service that is told to end: 0",
        run="gdbext.cli.watch",
        arguments=(
            PIDS,
            Argument("--still", "how many seconds without progress count as a hang (60)", "T", float),
            Argument("--every", "seconds between two polls (5; a service 10)", "S", float),
            Argument("--keep", "how many bundles of a job to keep, the newest ones (5)", "N", int),
            Argument("--into", "folder of the bundles (gdbext-watch)", "DIR"),
            *(SPINNING._replace(default=None), MAX_PAUSE._replace(default=None)),
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
            *(QUIET, *SERVING, *SELECTING),
            Argument("--hosts", "", "HOSTS", where=SHELL),  # refused, with the way round it
        ),
        answers=False,  # many, as they come
    ),
)
