"""An engine's own profiler, started and stopped."""

from gdbext.commands.argument_types import profile_seconds, steps
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import PIDS, QUIET, SELECTING

_SERVER = "the server (gdbext finds it through the processes of the job)"
_WHAT = "what start and run record (gdbext refuses options that the engine does not support)"
_RUN = "run"
_ACTIONS = ("start", "stop", "status", "run")

COMMANDS = (
    Command(
        "Start and stop the profiler of a running server, merge its traces, and find the late rank",
        gdbext="profile",
        statuses="0 done (run: no rank is late), 1 a rank is late (run), 3 a file was not read, or the "
        "traces do not decide, 2 wrong usage, 4 nothing could be read, 130 interrupted",
        run="gdbext.cli.profiler.profile",
        arguments=(
            Argument(
                "action",
                "status: show the server; start, stop: start or stop the profiler; run: start, stop, wait for the "
                "traces, and report the late rank",
                "start|stop|status|run",
                choices=_ACTIONS,
            ),
            PIDS,
            *SELECTING,
            Argument("--port", "the server's port, if there are several servers", "N", int, group=_SERVER),
            Argument("--url", "the URL of a server whose process is not visible here", "URL", group=_SERVER),
            Argument("--yes", "send requests to a server on another host too", flag=True, group=_SERVER),
            Argument(
                "--token-file", "a file with the server's access token (or set $GDBEXT_TOKEN)", "FILE", group=_SERVER
            ),
            Argument("--dir", "folder for the traces, as the server sees it", "DIR", group=_SERVER),
            Argument("--steps", "stop after N steps of the engine", "N", steps, group=_WHAT),
            Argument(
                "--start-step", "begin at step N, or after N steps (depends on the engine)", "N", steps, group=_WHAT
            ),
            Argument("--activities", "CPU,GPU,MEM,RPD,CUDA_PROFILER", "A,B", group=_WHAT),
            Argument("--by-stage", "separate traces of prefill and decode", flag=True, group=_WHAT),
            Argument("--stages", "only these stages: prefill,decode", "A,B", group=_WHAT),
            Argument("--stack", "record Python stacks", flag=True, group=_WHAT),
            Argument("--no-stack", "do not record Python stacks: much smaller traces", flag=True, group=_WHAT),
            Argument("--shapes", "record tensor shapes", flag=True, group=_WHAT),
            Argument("--engine-merge", "also let the engine merge the traces of its ranks", flag=True, group=_WHAT),
            Argument("--prefix", "prefix for the names of the traces", "NAME", group=_WHAT),
            Argument(
                "--seconds", "longest time to record, in seconds (5)", "S", profile_seconds, default=5.0, group=_RUN
            ),
            Argument("--request", "send the JSON requests in FILE while the profiler runs", "FILE", group=_RUN),
            Argument(
                "--flush",
                "seconds to wait for the traces without new data (900)",
                "S",
                profile_seconds,
                default=900.0,
                group="run, stop",
            ),
            QUIET,
        ),
    ),
)
