"""What a command is: plain data, of which gdb's commands and the shell's are made.

All of it is loaded whenever gdb sources the extension and whenever `gdbext` starts: a declaration names its body, and
loads nothing that the body needs (no dataclasses either: they take longer to load than all declarations).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, NamedTuple, Optional, Tuple

GDB, SHELL, BOTH = "gdb", "shell", "both"
ALL_THE_REST = "..."
"""As `nargs`: another program's command line."""


class Argument(NamedTuple):
    """One argument or option, in argparse's words.

    `completes`: one of rank, ranks, pid, file, label, engine, built, error, dtype, demo, place, command, expression, or
    the words that are offered: "torch|pyobject". `rest`: the option takes the rest of the line as it was typed; gdb's
    way to write it, without dashes, is understood behind the first word.
    """

    name: str  # "--name" for an option, else a positional argument
    help: str  # "" for one that only programs of ours give
    metavar: Optional[str] = None
    type: Callable[[str], Any] = str
    nargs: Optional[str] = None
    flag: bool = False  # an option without a value
    default: Any = None
    completes: Optional[str] = None
    rest: bool = False
    where: str = BOTH  # GDB or SHELL: it is there alone
    group: str = ""  # the heading it stands under in the shell's help
    short: str = ""  # "-q"
    choices: Tuple[str, ...] = ()  # the words that it takes, where no other is one
    many: bool = False  # the option may be given several times
    bare: Any = None  # the value of an option with nargs "?" that is typed without one
    shell_name: str = ""  # what the shell's bodies call it, where that is not its name

    @property
    def option(self) -> bool:
        return self.name.startswith("-")

    @property
    def offers(self) -> str:
        """What TAB shows for its value; a metavar may say it too: FILE, or words like stop|log."""
        if self.completes or not self.metavar:
            return self.completes or ""
        return "file" if self.metavar in ("FILE", "DIR", "PATH") else self.metavar if "|" in self.metavar else ""

    def only(self, where: str) -> Argument:
        return self._replace(where=where)


class Command(NamedTuple):
    """One command: of gdb, of the shell, or of both.

    `tail` names an argument that takes the rest of the line as it was typed: a gdb command has its own quoting. With
    `options_behind` the tail is an expression, and options may stand behind it too.
    `category` is the heading of gdb's `help` it appears under: "running", "stack", "data", "status", "breakpoints".
    """

    summary: str  # one line, without a full stop
    gdb: str = ""  # its name in gdb
    aliases: Tuple[str, ...] = ()  # its other names there
    body: str = ""  # "module:function" of a `Body` (commands/session_port.py); "": it needs a subcommand
    gdbext: str = ""  # its name behind `gdbext`, the command of the shell
    run: str = ""  # the module whose `run` takes the shell's options and returns the exit status
    category: str = "status"
    arguments: Tuple[Argument, ...] = ()
    tail: Optional[Argument] = None
    description: str = ""  # in gdb's words
    examples: Tuple[str, ...] = ()
    shell_examples: Tuple[str, ...] = ()  # lines for the shell, under its help
    statuses: str = ""  # what the exit statuses 0, 1 and 3 mean, where not what `diagnose` means by them
    prefix: bool = False  # other commands are named below it
    repeats: bool = False  # an empty line runs it again
    options_behind: bool = False
    holds: bool = False  # ranks stand still from then on: what the other commands need is loaded before
    program: str = ""  # what the words behind a lone `--` are kept as, where they are another program's command line
    answers: bool = True  # the shell's has --json, --output and --force; gdb's always has


def loaded(reference: str) -> Any:
    """What `module:name` names, or a module; loaded when it is asked for the first time."""
    module, _, name = reference.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found
