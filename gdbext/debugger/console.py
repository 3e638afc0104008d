"""Declarations become gdb commands: parse, run the body, print its answer, one line for every error."""

from __future__ import annotations

import os
import traceback
from typing import Iterable, List, Optional

import gdb

from gdbext.commands.catalogue import COMMANDS
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.explain import LABELS
from gdbext.commands.files import write_private
from gdbext.commands.parsing import HelpWanted, help_text, option_names, parse
from gdbext.debugger import compat, settings
from gdbext.debugger.about import INSTALL
from gdbext.debugger.rank_functions import RankFunction, TensorStatFunction
from gdbext.debugger.session import GdbSession
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.render import Style, dumps, load, render
from gdbext.render.text import clean_text

try:
    load()  # now, and not while ranks stand still
    WITHOUT_OUTPUT: Optional[Missing] = None
except (ImportError, SyntaxError) as error:  # a package is not there, or too new for gdb's Python
    WITHOUT_OUTPUT = Missing(str(error))

_UNLIMITED_WIDTH = 120
_MOST_COMPLETIONS = 200
_CATEGORIES = {
    "running": gdb.COMMAND_RUNNING,
    "stack": gdb.COMMAND_STACK,
    "data": gdb.COMMAND_DATA,
    "status": gdb.COMMAND_STATUS,
    "breakpoints": gdb.COMMAND_BREAKPOINTS,
}


class _Command(gdb.Command):
    def __init__(self, row: Command, session: GdbSession) -> None:
        self.__doc__ = help_text(row)
        self._row, self._session = row, session
        super().__init__(row.name, _CATEGORIES[row.category], prefix=row.prefix)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if not self._row.repeats:
            self.dont_repeat()
        try:
            args = parse(self._row, argument)
            _show(self._row.body(self._session, args), args.json)
        except HelpWanted as wanted:
            _write(str(wanted))
        except GdbextError as problem:
            raise _said(str(problem)) from None
        except gdb.error as problem:
            raise _said(f"{self._row.name}: {problem}") from None
        except Exception as problem:  # noqa: BLE001 - a bug of ours must not print a traceback at a user
            raise _said(_bug(self._row.name, problem)) from None

    def complete(self, text: str, word: Optional[str]) -> object:
        if word is None:
            return gdb.COMPLETE_NONE
        token = text.rpartition(" ")[2]
        if token.startswith("-"):
            return _completions(option_names(self._row), token, word)
        wanted = self._value_at(text)
        kind = wanted.completes if wanted else None
        if kind == "file":
            return gdb.COMPLETE_FILENAME
        if kind == "command":
            return self._commands(text, word)
        if kind in ("rank", "pid"):
            return _completions(self._numbers(kind), token, word)
        if kind == "ranks":
            return _completions([*self._numbers(kind), "all"], token, word)
        if kind == "label":
            return _completions(LABELS, token, word)
        return gdb.COMPLETE_NONE

    def _value_at(self, text: str) -> Optional[Argument]:
        """The argument that the word at the end of the line belongs to."""
        words = text.split(" ")[:-1]
        options = {argument.name: argument for argument in self._row.arguments if argument.option}
        before = words[-1] if words else ""
        if before in options and not options[before].flag:
            return options[before]
        positional = [argument for argument in self._row.arguments if not argument.option]
        given = sum(1 for word in words if word and not word.startswith("-"))
        if self._row.tail is not None and given >= len(positional):
            return self._row.tail
        many = positional[-1:] if positional and positional[-1].nargs == "*" else []
        return next(iter(positional[given:] or many), None)

    def _commands(self, text: str, word: str) -> List[str]:
        """What gdb itself would complete the tail to; returning COMPLETE_COMMAND completes the whole line instead."""
        given = sum(not argument.option for argument in self._row.arguments)
        tail = text.lstrip().split(None, given)[given:]
        typed = tail[0] if tail else ""
        lines = gdb.execute(f"complete {typed}", to_string=True).splitlines()
        return [line[len(typed) - len(word) :] for line in lines if line.startswith(typed)][:_MOST_COMPLETIONS]

    def _numbers(self, kind: str) -> List[str]:
        ranks = self._session.ranks()
        if kind == "pid":
            return [str(rank.process.pid) for rank in ranks]
        return [str(rank.process.rank) for rank in ranks if rank.process.rank is not None]


def _completions(candidates: Iterable[str], token: str, word: str) -> List[str]:
    """gdb breaks words at dashes too and wants only what stands behind the last break."""
    skip = len(token) - len(word)
    return [candidate[skip:] for candidate in candidates if candidate.startswith(token)][:_MOST_COMPLETIONS]


_registered: List[object] = []


def register() -> None:
    """Add commands, settings and functions to gdb; the second time it does nothing."""
    if _registered:
        return
    settings.register()
    session = GdbSession()
    session.checks.show, session.checks.text_of = _show, _document
    _registered.append(session)
    _registered.extend(_Command(row, session) for row in COMMANDS)
    _registered.extend((RankFunction(session.rank_of), TensorStatFunction(session.tensors)))


def style() -> Style:
    """How lines should look in this gdb. `set style enabled` is off in batch mode and on dumb terminals."""
    width = gdb.parameter("width") or _UNLIMITED_WIDTH
    wanted = settings.value("color")
    color = wanted == "on" or (
        wanted == "auto" and bool(compat.parameter("style enabled")) and not os.environ.get("NO_COLOR")
    )
    charset = str(compat.parameter("host-charset") or "")
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), charset)
    unicode = "utf" in (charset if charset not in ("", "auto") else locale).lower()
    return Style(width=width, color=color, unicode=unicode)


def _document(answer: object) -> str:
    return str(answer) if WITHOUT_OUTPUT is not None else dumps(answer)


def _show(answer: object, json: Optional[str] = None) -> None:
    if answer is None:
        return
    if WITHOUT_OUTPUT is not None:
        raise GdbextError(f"the answer cannot be printed ({WITHOUT_OUTPUT.reason})", f"install with: {INSTALL}")
    if json is None:
        _write("\n".join(render(answer, style())))
    elif json == "-":
        _write(dumps(answer))
    else:
        write_private(json, dumps(answer) + "\n")


def _write(text: str) -> None:
    gdb.write(text + "\n")
    gdb.flush()


def _said(text: str) -> gdb.GdbError:
    """An error as gdb prints it. Names of a target may stand in it."""
    return gdb.GdbError(clean_text(text, style()))


def _bug(command: str, problem: BaseException) -> str:
    text = f"{command} failed by a mistake of its own: {type(problem).__name__}: {problem}"
    if settings.value("debug"):
        return text + "\n" + "".join(traceback.format_tb(problem.__traceback__)).rstrip()
    return text + " (set llm debug on, and again, shows where)"
