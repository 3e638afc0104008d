"""An engine's own profiler, started and stopped."""

from __future__ import annotations

from gdbext.commands.argument_types import profile_seconds, steps
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.declared.shared_arguments import PIDS, QUIET, SELECTING

_SERVER = "the server (found by the job's processes)"
_WHAT = "what is recorded by start and run (each engine knows some of these; others are refused)"
_RUN = "run"
_ACTIONS = ("start", "stop", "status", "run")

COMMANDS = (
    Command(
        "Start and stop the profiler of a running server, merge its traces and say which rank is late",
        gdbext="profile",
        run="gdbext.cli.profiler.profile",
        arguments=(
            Argument(
                "action",
                "status: which server it is; start, stop; run: both, then wait for every rank's trace and report",
                "start|stop|status|run",
                choices=_ACTIONS,
            ),
            PIDS,
            *SELECTING,
            Argument("--port", "its port, where there are several", "N", int, group=_SERVER),
            Argument("--url", "a server whose process cannot be seen from here", "URL", group=_SERVER),
            Argument("--yes", "also on another host", flag=True, group=_SERVER),
            Argument("--token-file", "the token that it asks for (or $GDBEXT_TOKEN)", "FILE", group=_SERVER),
            Argument("--dir", "folder of the traces, as the server sees it", "DIR", group=_SERVER),
            Argument("--steps", "stop after so many steps of the engine", "N", steps, group=_WHAT),
            Argument("--start-step", "begin with this step, or after so many", "N", steps, group=_WHAT),
            Argument("--activities", "CPU,GPU,MEM,RPD,CUDA_PROFILER", "A,B", group=_WHAT),
            Argument("--by-stage", "a trace of prefill and one of decode", flag=True, group=_WHAT),
            Argument("--stages", "only these stages: prefill,decode", "A,B", group=_WHAT),
            Argument("--stack", "with Python stacks", flag=True, group=_WHAT),
            Argument("--no-stack", "without: much smaller traces", flag=True, group=_WHAT),
            Argument("--shapes", "with the shapes of tensors", flag=True, group=_WHAT),
            Argument("--engine-merge", "let the engine merge its ranks as well", flag=True, group=_WHAT),
            Argument("--prefix", "begin the names of the traces with NAME", "NAME", group=_WHAT),
            Argument("--seconds", "how long at most (5)", "S", profile_seconds, default=5.0, group=_RUN),
            Argument("--request", "send the JSON requests in FILE while the profiler runs", "FILE", group=_RUN),
            Argument(
                "--flush",
                "seconds that writing the traces may take (900)",
                "S",
                profile_seconds,
                default=900.0,
                group="run, stop",
            ),
            QUIET,
        ),
    ),
)
