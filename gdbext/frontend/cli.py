"""The `gdbext` command: runs the sub-command that is asked for; exit codes."""

from __future__ import annotations

import importlib
import sys
from typing import Dict, List, Optional

from gdbext.frontend.arguments import parser
from gdbext.frontend.terminal import Progress
from gdbext.model.errors import USAGE, GdbextError

COMMANDS: Dict[str, str] = {
    "diagnose": "diagnose",
    "stacks": "diagnose",
    "locks": "diagnose",
    "ranks": "ranks",
    "comms": "comms",
    "attach": "attach",
    "explain": "explain",
    "error": "error",
    "run": "run",
    "pdb": "pdb",
    "watch": "watch",
    "launch": "launch",
    "vscode": "vscode",
    "gdbinit": "gdbinit",
}
"""The module of each command. It is loaded when the command is given: a start takes as long as one of them does."""


def main(arguments: Optional[List[str]] = None) -> int:
    """Run one command; returns the exit status of DESIGN 5."""
    top = parser()
    options = top.parse_args(arguments)
    if options.command is None:
        top.print_help(sys.stderr)
        return USAGE
    try:
        status: int = importlib.import_module(f"gdbext.frontend.{COMMANDS[options.command]}").run(options)
        return status
    except GdbextError as error:
        Progress().say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        Progress().say("interrupted; every process runs on")
        return 130
