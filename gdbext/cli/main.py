"""The `gdbext` command: runs the sub-command that is asked for; exit codes."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import importlib.util
import os
import sys
from typing import List, Optional

from gdbext import INSTALL, PACKAGES
from gdbext.cli.command_line import parser
from gdbext.cli.parse_command_line import is_for_us, parse, split_at_dashes
from gdbext.cli.terminal import Progress, erase_line, write_lines
from gdbext.collect.ctrl_c_while_loading import interrupts_wait
from gdbext.commands.all_commands import IN_SHELL
from gdbext.commands.output import wants_json
from gdbext.model.errors import USAGE, GdbextError, Interrupted
from gdbext.render import dumps


def main(arguments: Optional[List[str]] = None) -> int:
    """Run one command; returns the exit status (model/exit_status.py). With `--json` stdout has one document, also of
    an error; one that comes behind the answer (a file that could not be kept) is on stderr alone."""
    words = sys.argv[1:] if arguments is None else arguments
    options = argparse.Namespace(answered=False, json=is_for_us(words) and wants_json(split_at_dashes(words)[0]))
    try:
        top = parser()
        parse(top, words, options)
        if options.command is None:
            top.print_help(sys.stderr)
            return USAGE
        with interrupts_wait():
            _check_packages()
            module = importlib.import_module(IN_SHELL[options.command].run)
        status: int = module.run(options)
        return status
    except GdbextError as error:
        return _failed(error, options)
    except KeyboardInterrupt:
        return _failed(Interrupted("interrupted; every process keeps running"), options)
    except MemoryError:
        hint = "raise the limit (ulimit -v), or select fewer ranks; every process keeps running"
        return _failed(GdbextError("out of memory", hint), options)
    except Exception as error:  # a traceback helps no user; who wants it can have it
        if os.environ.get("GDBEXT_TRACEBACK"):
            raise
        return _failed(GdbextError(f"{_in_one_line(error)}; every process keeps running"), options)
    finally:
        erase_line()


def _failed(error: GdbextError, options: argparse.Namespace) -> int:
    """Say it; returns its exit status."""
    if options.json and not options.answered:
        with contextlib.suppress(GdbextError):  # stdout is closed
            write_lines([dumps(error)])
    Progress().warn(str(error))
    return error.exit_code


def _check_packages() -> None:
    """At once, for a clone that nothing was installed for: what needs them is loaded late, an answer after its look."""
    missing = next((name for name in PACKAGES if importlib.util.find_spec(name) is None), None)
    if missing is not None:
        raise GdbextError(f"the package {missing} is missing", INSTALL)


def _in_one_line(error: Exception) -> str:
    """What the system refused, or where the bug is."""
    if isinstance(error, OSError) and error.errno is not None:
        what = f" ({error.filename})" if error.filename else ""
        hint = "; raise the limit (ulimit -n)" if error.errno in (errno.EMFILE, errno.ENFILE) else ""
        return f"system error: {os.strerror(error.errno)}{what}{hint}"
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    where = f" at {os.path.basename(step.tb_frame.f_code.co_filename)}:{step.tb_lineno}" if step else ""
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return f"internal error: {what}{where}; set GDBEXT_TRACEBACK=1 for a traceback, and please report it"
