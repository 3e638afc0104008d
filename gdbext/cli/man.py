"""`gdbext man`: the manual page, made of the rows of the commands. Macros: man(7)."""

from __future__ import annotations

import argparse
import re
from typing import Dict, List, Sequence

from gdbext import __version__
from gdbext.cli.command_line import EPILOG, SUMMARY, parser
from gdbext.cli.terminal import write_lines
from gdbext.commands.all_commands import IN_GDB, IN_SHELL
from gdbext.commands.argument_parser import in_gdb, in_shell, parser_of
from gdbext.commands.declaration import Argument
from gdbext.commands.declared.shared_arguments import COMMON
from gdbext.model.errors import OK

_ENVIRONMENT = (
    ("GDBEXT_GDB", "The gdb to use without --gdb."),
    ("GDBEXT_CACHE", "off: keep no index of symbols between two runs."),
    ("GDBEXT_SITE", "Folders where gdb's Python finds tabulate, pygments and pyelftools."),
    ("NO_COLOR", "Print without colours."),
)


def run(_: argparse.Namespace) -> int:
    """Print it."""
    write_lines(page())
    return OK


def page() -> List[str]:
    """All lines of gdbext(1)."""
    usages = _usages()
    lines = [
        f'.TH GDBEXT 1 "" "gdbext {__version__}" "User Commands"',
        ".SH NAME",
        "gdbext \\- debug multi-GPU LLM inference engines: which rank hangs, why, and with what numbers",
        ".SH SYNOPSIS",
        ".B gdbext",
        ".I COMMAND",
        "[\\fIARGUMENT\\fR]...",
        ".br",
        ".B gdb \\-x",
        "$(gdbext gdbinit)",
        ".SH DESCRIPTION",
        _text(SUMMARY + "."),
        ".SH COMMANDS OF THE SHELL",
    ]
    for name, command in IN_SHELL.items():
        lines += [f".SS gdbext {name}", _text(f"{command.summary}."), *_usage(usages[name])]
        lines += _arguments([one for one in in_shell(command) if one not in COMMON])
        lines += _examples(command.shell_examples)
        lines += [".PP", _text(f"Exit status: {command.statuses or 'see EXIT STATUS'}.")]
    lines += [".SS All commands that answer", *_arguments(COMMON), ".SH COMMANDS OF GDB"]
    for command in IN_GDB:
        names = ", ".join((command.gdb, *command.aliases))
        lines += [f".SS {names}", _text(f"{command.summary}. {command.description}".rstrip())]
        lines += _usage(parser_of(command).format_usage())
        lines += _arguments([one for one in in_gdb(command) if one not in COMMON])
        lines += _examples(command.examples)
    lines += [".SH EXIT STATUS", _text(EPILOG.partition(": ")[2]), ".SH ENVIRONMENT"]
    for name, meaning in _ENVIRONMENT:
        lines += [".TP", f".B {name}", _text(meaning)]
    return [*lines, ".SH SEE ALSO", ".BR gdb (1),", ".BR py-spy (1)"]


def _usages() -> Dict[str, str]:
    """The shell's commands, and how each is used."""
    (commands,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    return {name: one.format_usage() for name, one in commands.choices.items()}


def _usage(usage: str) -> List[str]:
    words = " ".join(usage.partition(":")[2].split())
    return [".PP", ".RS 2", _text(words), ".RE"]


def _arguments(arguments: Sequence[Argument]) -> List[str]:
    lines: List[str] = []
    for one in arguments:
        if not one.help:
            continue
        value = "" if one.flag or not one.option else f" \\fI{_escaped(one.metavar or one.name)}\\fR"
        names = ", ".join(f"\\fB{_escaped(name)}\\fR{value}" for name in (one.short, one.name) if name and one.option)
        lines += [".TP", names or f"\\fI{_escaped(one.metavar or one.name)}\\fR", _text(one.help)]
    return lines


def _examples(examples: Sequence[str]) -> List[str]:
    if not examples:
        return []
    return [".PP", "Examples:", ".PP", ".RS 2", ".nf", *map(_text, examples), ".fi", ".RE"]


def _text(text: str) -> str:
    """A text as lines that no macro is read in."""
    return re.sub(r"^(?=[.'])", r"\\&", _escaped(text), flags=re.MULTILINE)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\`").replace("'", "\\(aq").replace("~", "\\(ti")
