"""A job watched until it stands still."""

from gdbext.commands.declaration import SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import MAX_PAUSE, PIDS, QUIET, SELECTING, SPINNING, WHICH_GDB

_SERVICE = "as a service, for every job on this host (docs/service.md)"
SERVING = (
    Argument(
        "--service",
        "follow all jobs until a signal ends the service; print events as JSON lines",
        flag=True,
        group=_SERVICE,
    ),
    Argument("--config", "settings in TOML, or JSON in NAME.json; SIGHUP reads them again", "FILE", group=_SERVICE),
    Argument("--exec", "run CMD when a job hangs, with the event on its standard input", "CMD", group=_SERVICE),
    Argument("--webhook", "POST the event to URL when a job hangs", "URL", group=_SERVICE),
    Argument("--cooldown", "seconds before the same alert for a job is sent again (600)", "S", float, group=_SERVICE),
    Argument("--metrics", "serve Prometheus metrics at [HOST:]PORT", "ADDRESS", group=_SERVICE),
    Argument("--textfile", "write the metrics to FILE, for node_exporter", "FILE", group=_SERVICE),
    Argument("--quota", "limit of all bundles together, in MiB (2048)", "MIB", int, group=_SERVICE),
)
"""Options that mean nothing without the first of them."""

COMMANDS = (
    Command(
        "Poll a job without stopping it, and save a bundle when it hangs",
        gdbext="watch",
        statuses="0 no hang was saved, 1 a hang was saved, 3 at the end the job makes no progress and it is "
        "undecided whether it hangs, 2 wrong usage, 4 nothing could be read, 130 interrupted; "
        "a service that a signal ends: 0",
        run="gdbext.cli.watch",
        arguments=(
            PIDS,
            Argument("--still", "seconds without progress that count as a hang (60)", "T", float),
            Argument("--every", "seconds between two polls (5; with --service 10)", "S", float),
            Argument("--keep", "how many bundles to keep for a job: the newest (5)", "N", int),
            Argument("--into", "folder for the bundles (gdbext-watch)", "DIR"),
            *(SPINNING._replace(default=None), MAX_PAUSE._replace(default=None)),
            Argument("--deadline", "time limit for symbols and gdb, in seconds (120)", "S", float),
            WHICH_GDB,
            Argument(
                "--before-kill",
                "diagnose once now, save a bundle, and always exit within --deadline (30) seconds",
                flag=True,
            ),
            Argument("--first-look", "", "FILE"),  # of the service: no bundle but of a hang
            Argument("--stood", "", "T", float),
            Argument("--json", "print events as JSON, one document on each line", flag=True),
            Argument("--output", "write events to a new file instead of the terminal", "FILE"),
            Argument("--force", "overwrite the file of --output", flag=True),
            *(QUIET, *SERVING, *SELECTING),
            Argument("--hosts", "", "HOSTS", where=SHELL),  # refused, with the way round it
        ),
        answers=False,  # many, as they come
    ),
)
