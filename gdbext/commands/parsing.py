"""Command lines to arguments, and declarations to help texts: one parser for `CMD`, `CMD -h` and `help CMD`."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, List, NoReturn, Tuple

from gdbext.commands.declaration import Argument, Command
from gdbext.commands.files import add_json
from gdbext.model.errors import UsageError

_HELP_WIDTH = 80


class HelpWanted(Exception):
    """`-h` was typed. Carries the help text."""


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of printing and ending the process, which would be gdb."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", f"{self.prog} -h shows how")

    def print_help(self, file: Any = None) -> None:
        raise HelpWanted(self.format_help().rstrip())


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        # A fixed width: the text is registered once and must not depend on the terminal.
        super().__init__(prog, max_help_position=26, width=_HELP_WIDTH)


def parser_of(command: Command) -> Parser:
    """The parser of a command; every command takes `--json [FILE]`."""
    description = f"{command.summary}.\n\n{_wrapped(command.description)}".rstrip()
    epilog = "\n".join(["examples:"] + [f"  {line}" for line in command.examples]) if command.examples else None
    parser = Parser(
        command.name, description=description, epilog=epilog, formatter_class=_Formatter, allow_abbrev=False
    )
    for argument in command.arguments + ((command.tail,) if command.tail else ()):
        _add(parser, argument)
    add_json(parser)
    return parser


def _wrapped(text: str) -> str:
    formatter = argparse.HelpFormatter("", width=_HELP_WIDTH)
    formatter.add_text(text)
    return formatter.format_help().rstrip()


def _add(parser: Parser, argument: Argument) -> None:
    more: dict[str, Any] = {"help": argument.help, "default": argument.default}
    if argument.flag:
        parser.add_argument(argument.name, action="store_true", help=argument.help)
        return
    if argument.nargs is not None:
        more["nargs"] = argument.nargs
    if not argument.option and argument.nargs == "*":
        del more["default"]
    parser.add_argument(argument.name, metavar=argument.metavar, type=argument.type, **more)


def help_text(command: Command) -> str:
    """What `help CMD` shows: the summary line first, as gdb wants it, then what `CMD -h` shows below it."""
    parser = parser_of(command)
    head, _, rest = (parser.description or "").partition("\n\n")
    parser.description = rest or None
    return f"{head}\n{parser.format_help().rstrip()}"


def parse(command: Command, line: str) -> argparse.Namespace:
    """Arguments of a command line. Raises UsageError, HelpWanted."""
    parser = parser_of(command)
    words, tail = _split(command, line)
    return parser.parse_args(words + tail)


def _split(command: Command, line: str) -> Tuple[List[str], List[str]]:
    """Words as a shell would split them, and the tail (if the command has one) as it was typed."""
    try:
        if command.tail is None:
            return shlex.split(line), []
        positional = sum(not argument.option for argument in command.arguments)
        words: List[str] = []
        rest = line.strip()
        while rest and (positional or rest.startswith("-")):
            word, _, rest = rest.partition(" ")
            words += ["--json=-"] if word == "--json" else shlex.split(word)  # what follows is no FILE
            positional -= not word.startswith("-")
            rest = rest.strip()
    except ValueError as error:
        raise UsageError(f"{command.name}: {error} in: {line}") from None
    # "--" keeps argparse from reading the tail's dashes as ours.
    return words, ["--", rest] if rest else []


def option_names(command: Command) -> Tuple[str, ...]:
    """All options, for completion."""
    return tuple(argument.name for argument in command.arguments if argument.option) + ("--json", "--help")
