"""`gdbext completion SHELL`: the lines that a shell sources; and what they ask for at each TAB.

The words come from the rows of the commands, as those of gdb's completion do; argcomplete speaks with the shells.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any, Iterable, List

from gdbext.cli.command_line import parser
from gdbext.cli.terminal import write_lines
from gdbext.commands.completion_words import files_at, words_for
from gdbext.commands.declaration import Argument
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.model.errors import OK, GdbextError
from gdbext.model.text.digits import is_whole

_CODE = {"bash": "bash", "zsh": "bash", "fish": "fish"}
"""A shell, and argcomplete's code that it understands."""


def run(options: argparse.Namespace) -> int:
    """Print them. Raises `GdbextError` without argcomplete."""
    lines: str = _argcomplete().shellcode(["gdbext"], False, _CODE[options.shell])
    write_lines([lines.rstrip("\n")])
    return OK


def complete() -> None:
    """Answer the shell, whose question is in the environment; the process ends with it. Raises as `run`."""
    argcomplete = _argcomplete()
    top = parser()
    for action in _actions(top):
        row = getattr(action, "declared", None)
        action.completer = _Words(row)  # type: ignore[attr-defined]
    argcomplete.autocomplete(top, always_complete_options=False)


class _Words:
    """What may stand for one argument."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __call__(self, prefix: str, **_: object) -> List[str]:
        row = self._row
        if not isinstance(row, Argument):
            return []
        found = [*words_for(row)]
        if "PID" in (row.metavar or "") and is_whole(prefix or "0"):
            found += _pids()
        return found + (files_at(prefix) if row.offers == "file" else [])


def _pids() -> List[str]:
    """Of the ranks that run here."""
    with suppress(GdbextError):
        return [str(rank.pid) for job in find_jobs(ProcFS(), Selector()) for rank in job.ranks]
    return []


def _actions(top: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from one._actions
        elif action.choices is None:
            yield action


def _argcomplete() -> Any:
    try:
        import argcomplete
    except ImportError:
        raise GdbextError("the package argcomplete is missing", "python3 -m pip install argcomplete") from None
    return argcomplete
