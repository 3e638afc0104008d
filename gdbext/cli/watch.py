"""`gdbext watch`: a job followed at the terminal, all of them by a service, or one look before a restart."""

from __future__ import annotations

import argparse
import importlib

from gdbext.commands.declared.watch import SERVING
from gdbext.knowledge.spinning import SPINNING_AFTER
from gdbext.model.errors import UsageError

_DEFAULTS = {
    "still": 60.0,
    "every": 5.0,
    "keep": 5,
    "into": "gdbext-watch",
    "spinning_after": SPINNING_AFTER,
    "max_pause": 2.0,
}
"""Of all but the service, whose file has a say in them."""


def run(options: argparse.Namespace) -> int:
    """The body is loaded when it is asked for: whoever is about to restart a job has no time for the others."""
    if options.hosts:
        raise UsageError(
            "a watch polls the ranks of its own host, many times a minute",
            "run gdbext watch on each host, and gdbext diagnose --hosts when one of them finds a hang",
        )
    if options.service and options.before_kill:
        raise UsageError("--service and --before-kill cannot be combined", "give one of them")
    if not options.service:
        needless = [one.name for one in SERVING if getattr(options, one.name[2:]) not in (None, False)]
        if needless:
            raise UsageError(f"{needless[0]} is for a service", f"gdbext watch --service {needless[0]} ...")
        for name, value in _DEFAULTS.items():
            if getattr(options, name) is None:
                setattr(options, name, value)
    body = (
        "service.service"
        if options.service
        else "watching.before_kill"
        if options.before_kill
        else "watching.terminal_watch"
    )
    status: int = importlib.import_module(f"gdbext.cli.{body}").run(options)
    return status
