"""What a command is: plain data that the debugger registers, completes, parses and documents."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any, Callable, Optional, Tuple

from gdbext.commands.session import Session

Body = Callable[[Session, Namespace], object]
"""Does the work and returns a model object (or None); never prints. Raises `GdbextError` for the user."""


@dataclass(frozen=True)
class Argument:
    """One argument or option, in argparse's words. `completes`: one of rank, ranks, pid, file, label, command,
    expression. `rest`: the option takes the rest of the line as it was typed; gdb's way to write it, without dashes, is
    understood behind the first word."""

    name: str  # "--name" for an option, else a positional argument
    help: str
    metavar: Optional[str] = None
    type: Callable[[str], Any] = str
    nargs: Optional[str] = None
    flag: bool = False  # an option without a value
    default: Any = None
    completes: Optional[str] = None
    rest: bool = False

    @property
    def option(self) -> bool:
        return self.name.startswith("-")


@dataclass(frozen=True)
class Command:
    """One command of gdb.

    `tail` names an argument that takes the rest of the line as it was typed: a gdb command has its own quoting. With
    `options_behind` the tail is an expression, and options may stand behind it too.
    `category` is the heading of gdb's `help` it appears under: "running", "stack", "data", "status", "breakpoints".
    """

    name: str
    summary: str  # one line, without a full stop
    body: Body
    category: str
    arguments: Tuple[Argument, ...] = ()
    tail: Optional[Argument] = None
    description: str = ""
    examples: Tuple[str, ...] = ()
    prefix: bool = False  # other commands are named below it
    repeats: bool = False  # an empty line runs it again
    options_behind: bool = False
