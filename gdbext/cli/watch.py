"""`gdbext watch`: a job followed at the terminal, or one look before a restart."""

from __future__ import annotations

import argparse
import importlib

from gdbext.model.errors import UsageError

_BODIES = {"before_kill": "before_kill"}


def run(options: argparse.Namespace) -> int:
    """The body is loaded when it is asked for: whoever is about to restart a job has no time for the others."""
    if options.hosts:
        raise UsageError(
            "a watch polls the ranks of its own host, many times a minute",
            "run gdbext watch on each host, and gdbext diagnose --hosts when one of them finds a hang",
        )
    name = next((body for option, body in _BODIES.items() if getattr(options, option)), "one_job")
    status: int = importlib.import_module(f"gdbext.cli.watching.{name}").run(options)
    return status
