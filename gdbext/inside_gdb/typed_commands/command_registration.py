"""Declarations become gdb commands. What runs them is loaded with the first that is typed.

Whoever has `source .../init.py` in a file that gdb reads pays for this module at every start of gdb, and for no other.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import Iterator, List, Optional

import gdb

from gdbext import __version__
from gdbext.commands.all_commands import IN_GDB
from gdbext.commands.argument_parser import help_text
from gdbext.commands.declaration import Command, loaded
from gdbext.inside_gdb.base import compat, settings
from gdbext.inside_gdb.base.alarm import nudged_from_now
from gdbext.inside_gdb.typed_commands.rank_functions import RankFunction, TensorStatFunction

_CATEGORIES = {
    "running": gdb.COMMAND_RUNNING,
    "stack": gdb.COMMAND_STACK,
    "data": gdb.COMMAND_DATA,
    "status": gdb.COMMAND_STATUS,
    "breakpoints": gdb.COMMAND_BREAKPOINTS,
}
_GREETING = "llm-attach-all, then llm-diagnose; all commands: apropos llm-"
_EXECUTION = "gdbext.inside_gdb.typed_commands.execution"
_COMPLETION = "gdbext.inside_gdb.typed_commands.completion"


class _Command(gdb.Command):
    def __init__(self, row: Command) -> None:
        self.__doc__ = help_text(row)
        self._row = row
        super().__init__(row.gdb, _CATEGORIES[row.category], prefix=row.prefix)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if not self._row.repeats:
            self.dont_repeat()
        with _loading(self._row):
            execution = loaded(_EXECUTION)
            execution.load_for(self._row)
        execution.run(self._row, argument, from_tty)

    def complete(self, text: str, word: Optional[str]) -> object:
        if word is None:
            return gdb.COMPLETE_NONE
        with _loading(self._row):
            completion = loaded(_COMPLETION)
        return completion.completed(self._row, text, word)


@contextmanager
def _loading(row: Command) -> Iterator[None]:
    """Ctrl-C waits until the end of the block: in the middle of an import it may come while Python runs a callback of
    its own, which prints it and goes on. Raises gdb.GdbError."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    except (MemoryError, OSError) as error:  # limits
        what = str(error) or type(error).__name__
        raise gdb.GdbError(f"gdbext: {row.gdb} could not be loaded ({what}); run it again") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_registered: List[object] = []


def register() -> None:
    """Add commands, settings and functions to gdb; the second time it does nothing."""
    if _registered:
        return
    settings.register()
    compat.on_exit(nudged_from_now)  # gdb lets go by itself then, and may get stuck in it too
    for row in IN_GDB:
        _registered.append(_Command(row))
        for alias in row.aliases:
            with suppress(gdb.error):  # somebody else's command has that name
                gdb.execute(f"alias {alias} = {row.gdb}", to_string=True)
    _registered.extend((RankFunction(), TensorStatFunction()))
    if compat.somebody_types():
        gdb.write(f"gdbext {__version__}: {_GREETING}\n")
