"""The `gdbext` command: runs the sub-command that is asked for; exit codes."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import sys
from typing import Dict, List, Optional

from gdbext.frontend.arguments import parser
from gdbext.frontend.interrupts import interrupts_wait
from gdbext.frontend.terminal import Progress
from gdbext.model.errors import NOTHING, USAGE, GdbextError

_PACKAGES = ("tabulate", "pygments", "elftools")
COMMANDS: Dict[str, str] = {
    "diagnose": "diagnose",
    "stacks": "diagnose",
    "locks": "diagnose",
    "ranks": "ranks",
    "comms": "comms",
    "attach": "attach",
    "doctor": "doctor",
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
    """Run one command; returns the exit status (model/errors.py)."""
    try:
        top = parser()
        options = top.parse_args(arguments)
        if options.command is None:
            top.print_help(sys.stderr)
            return USAGE
        with interrupts_wait():
            _check_packages()
            module = importlib.import_module(f"gdbext.frontend.{COMMANDS[options.command]}")
        status: int = module.run(options)
        return status
    except GdbextError as error:
        Progress().say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        Progress().say("interrupted; every process runs on")
        return 130
    except MemoryError:
        Progress().say("out of memory; raise the limit (ulimit -v), or look at fewer ranks; every process runs on")
        return NOTHING
    except Exception as error:  # a traceback helps no user; who wants it can have it
        if os.environ.get("GDBEXT_TRACEBACK"):
            raise
        Progress().say(f"{_in_one_line(error)}; every process runs on")
        return NOTHING


def _check_packages() -> None:
    """At once, for a clone that nothing was installed for: what needs them is loaded late, an answer after its look."""
    missing = next((name for name in _PACKAGES if importlib.util.find_spec(name) is None), None)
    if missing is not None:
        raise GdbextError(f"the package {missing} is missing", "python3 -m pip install tabulate pygments pyelftools")


def _in_one_line(error: Exception) -> str:
    """What the system refused, or where the bug is."""
    if isinstance(error, OSError) and error.errno is not None:
        what = f" ({error.filename})" if error.filename else ""
        hint = "; raise the limit (ulimit -n)" if error.errno in (errno.EMFILE, errno.ENFILE) else ""
        return f"the system refuses: {os.strerror(error.errno)}{what}{hint}"
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    where = f" at {os.path.basename(step.tb_frame.f_code.co_filename)}:{step.tb_lineno}" if step else ""
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return f"a bug of gdbext: {what}{where}; GDBEXT_TRACEBACK=1 shows more, please report it"
