"""Declarations to parsers and help texts: of gdb's `CMD`, `CMD -h` and `help CMD`, and of the shell's `gdbext CMD`."""

from __future__ import annotations

import argparse
import ast
import re
from typing import Any, Dict, Iterable, NoReturn, Tuple

from gdbext.commands.declaration import GDB, SHELL, Argument, Command
from gdbext.commands.declared.shared_arguments import COMMON
from gdbext.model.errors import UsageError
from gdbext.model.text.nearest import unknown_word_error

_HELP_WIDTH = 80


_NO_CHOICE = re.compile(
    r"argument (?P<name>\S+): invalid choice: (?P<word>'.*?'|\".*?\") \(choose from (?P<known>.*)\)"
)
_NO_OPTION = "unrecognized arguments: "
_OF_PROCESS = ("--pid", "--pids", "-p")
"""What other tools call the option of a process: here its number stands alone."""
_MISSING = "the following arguments are required: "


def usage_error(parser: argparse.ArgumentParser, message: str, command: str, otherwise: str) -> UsageError:
    """What argparse says of a wrong command line, as git and kubectl say it. `otherwise`: where the usage is shown."""
    prefix = f"{command}: " if command else ""
    choice = _NO_CHOICE.match(message)
    if choice:
        known = re.findall(r"[\w.-]+", choice["known"])
        name = choice["name"]
        sort = "command" if name == "COMMAND" else f"value for {name}" if name.startswith("-") else "subcommand"
        return unknown_word_error(sort, ast.literal_eval(choice["word"]), known, otherwise, prefix)
    if message.startswith(_NO_OPTION):
        word = message[len(_NO_OPTION) :].split()[0]
        takes_pid = any("PID" in str(one.metavar) for one in parser._get_positional_actions())
        if takes_pid and word.partition("=")[0] in _OF_PROCESS:
            return UsageError(f"{prefix}unknown option '{word}'", f"give the pid without an option: {parser.prog} PID")
        if word.startswith("-"):
            return unknown_word_error(
                "option", word.partition("=")[0], parser._option_string_actions, otherwise, prefix
            )
        return UsageError(f"{prefix}unexpected argument '{word}'", otherwise)
    if message.startswith(_MISSING):
        names = message[len(_MISSING) :].split(", ")
        message = f"missing {', '.join('subcommand' if one.islower() and '|' in one else one for one in names)}"
    return UsageError(f"{prefix}{message}", otherwise)


class HelpWanted(Exception):
    """`-h` was typed. Carries the help text."""


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of printing and ending the process, which would be gdb."""

    def error(self, message: str) -> NoReturn:
        raise usage_error(self, message, self.prog, f"see `{self.prog} -h`")

    def print_help(self, file: Any = None) -> None:
        raise HelpWanted(self.format_help().rstrip())

    def __contains__(self, word: str) -> bool:
        """Whether a word is one of the options."""
        return word in self._option_string_actions

    def needs_value(self, word: str) -> bool:
        """Whether a word is an option behind which its value stands."""
        return word in self and self._option_string_actions[word].nargs is None


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        # A fixed width: the text is registered once and must not depend on the terminal.
        super().__init__(prog, max_help_position=26, width=_HELP_WIDTH)


def parser_of(command: Command) -> Parser:
    """The parser of a command of gdb."""
    description = f"{command.summary}.\n\n{_wrapped(command.description)}".rstrip()
    epilog = "\n".join(["examples:"] + [f"  {line}" for line in command.examples]) if command.examples else None
    parser = Parser(command.gdb, description=description, epilog=epilog, formatter_class=_Formatter, allow_abbrev=False)
    add_arguments(parser, in_gdb(command), GDB)
    return parser


def in_gdb(command: Command) -> Tuple[Argument, ...]:
    """All arguments of a command of gdb."""
    tail = (command.tail,) if command.tail else ()
    return (*(one for one in command.arguments if one.where != SHELL), *tail, *COMMON)


def in_shell(command: Command) -> Tuple[Argument, ...]:
    """All arguments of a command of the shell."""
    own = tuple(one for one in command.arguments if one.where != GDB)
    return own + COMMON if command.answers else own


def takes(arguments: Iterable[Argument]) -> str:
    """What stands among them besides options, by the words of `output.without_file`."""
    kinds = {one.completes for one in arguments if not one.option}
    return "files" if "file" in kinds else "pids" if kinds <= {"pid", "rank", "ranks"} else "text"


def _wrapped(text: str) -> str:
    formatter = argparse.HelpFormatter("", width=_HELP_WIDTH)
    formatter.add_text(text)
    return formatter.format_help().rstrip()


def add_arguments(parser: argparse.ArgumentParser, arguments: Iterable[Argument], where: str) -> None:
    """Add them as gdb or the shell has them: gdb's help has no headings."""
    groups: Dict[str, Any] = {"": parser}
    for one in arguments:
        heading = one.group if where == SHELL else ""
        if heading not in groups:
            groups[heading] = parser.add_argument_group(heading)
        _add(groups[heading], one, one.shell_name if where == SHELL else "")


def _add(parser: Any, argument: Argument, other_name: str) -> None:
    more: Dict[str, Any] = {"help": argument.help or argparse.SUPPRESS}
    names = (argument.name, argument.short) if argument.short else (argument.name,)
    if other_name and argument.option:
        more["dest"] = other_name
    elif other_name:
        names = (other_name,)
    if argument.flag:
        more["action"] = "store_true"
    else:
        more.update(metavar=argument.metavar, type=argument.type, nargs=argument.nargs)
        if argument.choices:
            more["choices"] = argument.choices
        if argument.bare is not None:
            more["const"] = argument.bare
        if argument.many:
            more["action"] = "append"
        if argument.option or argument.nargs != "*":
            more["default"] = argument.default
    parser.add_argument(*names, **more).declared = argument  # whoever completes it asks for its row


def help_text(command: Command) -> str:
    """What `help CMD` shows: the summary line first, as gdb wants it, then what `CMD -h` shows below it."""
    parser = parser_of(command)
    head, _, rest = (parser.description or "").partition("\n\n")
    parser.description = rest or None
    return f"{head}\n{parser.format_help().rstrip()}"


def option_names(command: Command) -> Tuple[str, ...]:
    """All options of a command of gdb, for completion."""
    return (*(one.name for one in in_gdb(command) if one.option), "--help")
