"""What TAB shows behind a command. Loaded with the first one."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Iterable, List, Optional, Sequence

import gdb

from gdbext.commands.argument_parser import in_gdb, option_names
from gdbext.commands.completion_words import files_at, words_for
from gdbext.commands.declaration import SHELL, Argument, Command
from gdbext.commands.gdb_arguments import rest_of
from gdbext.discovery.proc.procfs import ProcFS
from gdbext.discovery.ranks.chosen_job import find_jobs
from gdbext.discovery.ranks.selectors import Selector
from gdbext.inside_gdb.base import compat
from gdbext.inside_gdb.expressions.printed_frames import names_behind
from gdbext.inside_gdb.session.one_session import session
from gdbext.model.errors import GdbextError

_MOST_COMPLETIONS = 200
_VERBS = {"place": "break "}
"""The command of gdb that takes the same."""
_CUT = " *** List may be truncated"  # gdb's last line of many


def completed(row: Command, text: str, word: str) -> object:
    """What `gdb.Command.complete` returns. `text` is the line behind the command, `word` what gdb wants completed."""
    rest = rest_of(row, text)
    if rest is not None:
        return _expressions(row, rest, word)
    token = text.rpartition(" ")[2]
    option, equals, value = token.partition("=")
    if token.startswith("-") and not equals:
        return _completions(option_names(row), token, word)
    wanted = _option(row, option) if token.startswith("-") else _value_at(row, text)
    if wanted is None:
        return gdb.COMPLETE_NONE
    typed = value if token.startswith("-") else token
    kind = wanted.offers
    if kind == "command":
        return _commands(row, text, word)
    if kind == "expression":
        return _expressions(row, typed, word)
    if kind in _VERBS:
        return _completed_by_gdb(_VERBS[kind], typed, word)
    before = token[: len(token) - len(typed)]
    return _completions((before + one for one in _words(wanted, typed)), token, word)


def _words(wanted: Argument, typed: str) -> Sequence[str]:
    """What the value may be, as far as it is known what was typed of it."""
    kind = wanted.offers
    if kind == "file":
        return files_at(typed)
    if kind == "ranks":  # of 0-3,1 what stands behind the last comma or dash is not whole yet
        before = re.sub(r"\d*\Z", "", typed)
        return [before + one for one in _ranks()] + ["all"]
    if kind == "rank":
        return _ranks()
    return _pids() if kind == "pid" else words_for(wanted)


def _option(row: Command, name: str) -> Optional[Argument]:
    """The option of this name that takes a value."""
    return next((one for one in in_gdb(row) if one.name == name and one.option and not one.flag), None)


def _value_at(row: Command, text: str) -> Optional[Argument]:
    """The argument that the word at the end of the line belongs to."""
    words = text.split(" ")[:-1]
    option = _option(row, words[-1]) if words else None
    if option is not None:
        return option
    positional = [one for one in row.arguments if not one.option and one.where != SHELL]
    values = [after for before, after in zip(words, words[1:]) if _option(row, before)]
    given = sum(1 for word in words if word and not word.startswith("-")) - len(values)
    if row.tail is not None and given >= len(positional):
        return row.tail
    many = positional[-1:] if positional and positional[-1].nargs == "*" else []
    return next(iter(positional[given:] or many), None)


def _commands(row: Command, text: str, word: str) -> List[str]:
    """What gdb itself would complete the tail to."""
    given = sum(not argument.option for argument in row.arguments)
    tail = text.lstrip().split(None, given)[given:]
    return _completed_by_gdb("", tail[0] if tail else "", word)


def _expressions(row: Command, typed: str, word: str) -> List[str]:
    """Expressions of the program's language, and for llm-tensor names of the selected Python frame."""
    found = _completed_by_gdb("print ", typed, word)
    if row.gdb.startswith("llm-tensor"):
        python = [name[len(typed) - len(word) :] for name in names_behind(typed)]
        found = [*python, *(one for one in found if one not in python)]
    return found[:_MOST_COMPLETIONS]


def _ranks() -> List[str]:
    return [str(rank.process.rank) for rank in session().ranks() if rank.process.rank is not None]


def _pids() -> List[str]:
    """Of the attached ranks, else of those that run here."""
    attached = [rank.process.pid for rank in session().ranks()]
    with suppress(GdbextError):
        jobs = () if attached else find_jobs(ProcFS(), Selector())
        attached += [rank.pid for job in jobs for rank in job.ranks]
    return [str(pid) for pid in attached]


def _completed_by_gdb(verb: str, typed: str, word: str) -> List[str]:
    """A part of the line as if it stood behind the verb; COMPLETE_COMMAND and the like complete the whole line."""
    start = verb + typed
    lines = compat.one_command(f"complete {start}").splitlines()
    found = [line[len(start) - len(word) :] for line in lines if line.startswith(start) and _CUT not in line]
    return found[:_MOST_COMPLETIONS]


def _completions(candidates: Iterable[str], token: str, word: str) -> List[str]:
    """gdb breaks words at dashes too and wants only what stands behind the last break."""
    skip = len(token) - len(word)
    return [candidate[skip:] for candidate in candidates if candidate.startswith(token)][:_MOST_COMPLETIONS]
