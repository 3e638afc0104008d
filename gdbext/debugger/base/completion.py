"""What TAB shows behind a command. Loaded with the first one."""

from __future__ import annotations

from typing import Iterable, List, Optional

import gdb

from gdbext.commands.argument_parser import in_gdb, option_names
from gdbext.commands.declaration import SHELL, Argument, Command, loaded
from gdbext.commands.parsing import rest_of
from gdbext.debugger.base import compat
from gdbext.debugger.ranks.one_session import session

_MOST_COMPLETIONS = 200


def completed(row: Command, text: str, word: str) -> object:
    """What `gdb.Command.complete` returns. `text` is the line behind the command, `word` what gdb wants completed."""
    rest = rest_of(row, text)
    if rest is not None:
        return _completed_by_gdb("print ", rest, word)
    token = text.rpartition(" ")[2]
    if token.startswith("-"):
        return _completions(option_names(row), token, word)
    wanted = _value_at(row, text)
    kind = wanted.completes if wanted else None
    if kind == "file":
        return gdb.COMPLETE_FILENAME
    if kind == "command":
        return _commands(row, text, word)
    if kind in ("rank", "pid"):
        return _completions(_numbers(kind), token, word)
    if kind == "ranks":
        return _completions([*_numbers(kind), "all"], token, word)
    if kind == "label":
        return _completions(loaded("gdbext.commands.explain:LABELS"), token, word)
    return gdb.COMPLETE_NONE


def _value_at(row: Command, text: str) -> Optional[Argument]:
    """The argument that the word at the end of the line belongs to."""
    words = text.split(" ")[:-1]
    options = {argument.name: argument for argument in in_gdb(row) if argument.option}
    before = words[-1] if words else ""
    if before in options and not options[before].flag:
        return options[before]
    positional = [one for one in row.arguments if not one.option and one.where != SHELL]
    given = sum(1 for word in words if word and not word.startswith("-"))
    if row.tail is not None and given >= len(positional):
        return row.tail
    many = positional[-1:] if positional and positional[-1].nargs == "*" else []
    return next(iter(positional[given:] or many), None)


def _commands(row: Command, text: str, word: str) -> List[str]:
    """What gdb itself would complete the tail to."""
    given = sum(not argument.option for argument in row.arguments)
    tail = text.lstrip().split(None, given)[given:]
    return _completed_by_gdb("", tail[0] if tail else "", word)


def _numbers(kind: str) -> List[str]:
    ranks = session().ranks()
    if kind == "pid":
        return [str(rank.process.pid) for rank in ranks]
    return [str(rank.process.rank) for rank in ranks if rank.process.rank is not None]


def _completed_by_gdb(verb: str, typed: str, word: str) -> List[str]:
    """A part of the line as if it stood behind the verb; COMPLETE_COMMAND and the like complete the whole line."""
    start = verb + typed
    lines = compat.one_command(f"complete {start}").splitlines()
    return [line[len(start) - len(word) :] for line in lines if line.startswith(start)][:_MOST_COMPLETIONS]


def _completions(candidates: Iterable[str], token: str, word: str) -> List[str]:
    """gdb breaks words at dashes too and wants only what stands behind the last break."""
    skip = len(token) - len(word)
    return [candidate[skip:] for candidate in candidates if candidate.startswith(token)][:_MOST_COMPLETIONS]
