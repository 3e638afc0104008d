"""The command line of `gdbext`, made of the declarations. Loads nothing that a command needs to run."""

from __future__ import annotations

import argparse
from typing import NoReturn

from gdbext import __version__
from gdbext.cli.installed import installed
from gdbext.commands.all_commands import IN_SHELL
from gdbext.commands.argument_parser import add_arguments, in_shell, usage_error
from gdbext.commands.declaration import ALL_THE_REST, SHELL, Command

SUMMARY = "Say which rank of a multi-GPU job hangs, why, and what to do. Start with: gdbext diagnose"

_STATUSES = """0 nothing hangs, 1 a finding (something hangs, failed or is late),
3 undecided (something could not be read, or the evidence does not decide)"""
_EVERY_COMMAND = """2 wrong usage, 4 nothing could be read,
130 interrupted. The answer goes to stdout, progress to stderr."""
EPILOG = f"exit status: {_STATUSES}, {_EVERY_COMMAND}"


class _Parser(argparse.ArgumentParser):
    """argparse that says what is wrong in one line, as every error is said."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError`."""
        raise usage_error(self, message, self.prog.partition(" ")[2], f"see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    """The whole command line. Kept apart from `main` for the reference page and its test."""
    top = _Parser(prog="gdbext", description=SUMMARY, epilog=EPILOG)
    top.set_defaults(quiet=False)
    top.add_argument("--version", action="version", version=f"gdbext {__version__} ({installed()})")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")

    for command in IN_SHELL.values():
        summary = f"{command.summary}."
        one = commands.add_parser(
            command.gdbext,
            help=summary,
            description=summary,
            epilog=_examples(command) + _epilog(command),
            formatter_class=argparse.RawDescriptionHelpFormatter if command.shell_examples else argparse.HelpFormatter,
        )
        add_arguments(one, in_shell(command), SHELL)
        usage = one.format_usage().partition(": ")[2].strip()
        rest = next((each.metavar for each in command.arguments if each.nargs == ALL_THE_REST), None)
        if command.program:
            one.usage = f"{usage} [-- PROGRAM ...]"
        elif rest:
            one.usage = f"{usage[: -len(ALL_THE_REST)]}{rest} ..."
    return top


def _epilog(command: Command) -> str:
    """The exit statuses that this command has (docs/exit-status.md)."""
    return f"exit status: {command.statuses}" if command.statuses else EPILOG


def _examples(command: Command) -> str:
    lines = "".join(f"  {line}\n" for line in command.shell_examples)
    return f"examples:\n{lines}\n" if lines else ""
