"""Declarations become gdb commands: parse, run the body, print its answer, one line for every error."""

from __future__ import annotations

import os
import traceback
from argparse import Namespace
from typing import Iterable, List, Optional

import gdb

from gdbext.commands.catalogue import COMMANDS
from gdbext.commands.declaration import Argument, Command
from gdbext.commands.explain import LABELS
from gdbext.commands.output import COMMON, check_files, wants_json
from gdbext.commands.parsing import HelpWanted, help_text, option_names, parse, rest_of, typed_options
from gdbext.commands.user_files import write_private
from gdbext.debugger.base import compat, settings
from gdbext.debugger.base.about import INSTALL
from gdbext.debugger.breakpoints.rank_functions import RankFunction, TensorStatFunction
from gdbext.debugger.ranks.session import GdbSession
from gdbext.model.errors import GdbextError
from gdbext.model.missing import Missing
from gdbext.render import PLAIN, Style, dumps, load, render
from gdbext.render.safe_text import clean_text
from gdbext.render.text.notices import error_document

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
        args: Optional[Namespace] = None
        try:
            self._session.from_terminal = from_tty
            args = parse(self._row, argument)
            self._run(args)
        except HelpWanted as wanted:
            _write(str(wanted))
        except GdbextError as problem:
            raise self._said(problem, args, argument) from None
        except gdb.error as problem:
            raise self._said(GdbextError(f"{self._row.name}: {problem}"), args, argument) from None
        except Exception as problem:  # noqa: BLE001 - a bug of ours must not print a traceback at a user
            raise self._said(_bug(self._row.name, problem), args, argument) from None

    def _run(self, args: Namespace) -> None:
        check_files(args)
        answer = self._row.body(self._session, args)
        if args.warning:
            self._session.say(args.warning)
        _show(answer, args)

    def _said(self, problem: GdbextError, args: Optional[Namespace], line: str) -> gdb.GdbError:
        """An error as gdb prints it, and before it as a document where JSON is wanted. Names of a target may stand in
        it."""
        if wants_json(typed_options(self._row, line)) if args is None else args.json:
            _write(error_document(problem))
        return gdb.GdbError(clean_text(str(problem), style()))

    def complete(self, text: str, word: Optional[str]) -> object:
        if word is None:
            return gdb.COMPLETE_NONE
        rest = rest_of(self._row, text)
        if rest is not None:
            return _completed_by_gdb("print ", rest, word)
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
        options = {argument.name: argument for argument in (*self._row.arguments, *COMMON) if argument.option}
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
        """What gdb itself would complete the tail to."""
        given = sum(not argument.option for argument in self._row.arguments)
        tail = text.lstrip().split(None, given)[given:]
        return _completed_by_gdb("", tail[0] if tail else "", word)

    def _numbers(self, kind: str) -> List[str]:
        ranks = self._session.ranks()
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


_registered: List[object] = []


def register() -> None:
    """Add commands, settings and functions to gdb; the second time it does nothing."""
    if _registered:
        return
    settings.register()
    session = GdbSession()
    session.checks.show, session.checks.text_of = _print, _document
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


def _show(answer: object, args: Namespace) -> None:
    """To where the arguments say; text that goes into a file has no colour."""
    if answer is None:
        return
    _check_packages()
    if args.json_file is not None:
        write_private(args.json_file, dumps(answer) + "\n")
    if args.output is not None:
        text = dumps(answer) if args.json else "\n".join(render(answer, PLAIN))
        write_private(args.output, text + "\n", args.force)
    elif args.json:
        _write(dumps(answer))
    else:
        _print(answer)


def _print(answer: object) -> None:
    _check_packages()
    _write("\n".join(render(answer, style())))


def _check_packages() -> None:
    if WITHOUT_OUTPUT is not None:
        raise GdbextError(f"the answer cannot be printed ({WITHOUT_OUTPUT.reason})", f"install with: {INSTALL}")


def _write(text: str) -> None:
    gdb.write(text + "\n")
    gdb.flush()


def _bug(command: str, problem: BaseException) -> GdbextError:
    text = f"internal error in {command}: {type(problem).__name__}: {problem}"
    if settings.value("debug"):
        return GdbextError(text + "\n" + "".join(traceback.format_tb(problem.__traceback__)).rstrip())
    return GdbextError(text, "run `set llm debug on` and retry for a traceback")
