"""Runs a command as it was typed: arguments, body, answer, one line for every error. Loaded with the first one."""

from __future__ import annotations

import os
import traceback
from argparse import Namespace
from dataclasses import replace
from typing import Optional

import gdb

from gdbext import INSTALL
from gdbext.commands.all_commands import IN_GDB
from gdbext.commands.argument_parser import HelpWanted
from gdbext.commands.command_for_more import in_gdb
from gdbext.commands.declaration import Command, loaded
from gdbext.commands.gdb_arguments import parse, typed_options
from gdbext.commands.output import STDOUT, check_files, wants_json
from gdbext.commands.user_files import new_file, write_private
from gdbext.inside_gdb.base import compat, settings
from gdbext.inside_gdb.session.one_session import session
from gdbext.inside_gdb.typed_commands.rank_functions import TENSOR_NUMBER
from gdbext.model.command_typed import Typed
from gdbext.model.errors import GdbextError
from gdbext.model.formatted import BINARY, Formatted
from gdbext.model.missing import Missing
from gdbext.model.page import WithPage
from gdbext.render import PLAIN, Style, binary_document, dumps, load, page_text, render
from gdbext.render.safe_text import clean_text

try:
    load()  # now, and not while ranks stand still
    WITHOUT_OUTPUT: Optional[Missing] = None
except (ImportError, SyntaxError) as error:  # a package is not there, or too new for gdb's Python
    WITHOUT_OUTPUT = Missing(str(error))

_UNLIMITED_WIDTH = 120
_NOTED = ("llm-tensor", "llm-stream")
"""Commands whose answers a page shows."""


def load_for(row: Command) -> None:
    """What the command needs; before ranks stand still, also what all others need then."""
    checks = session().checks
    checks.show, checks.text_of = _print, _document
    for reference in (*(one.body for one in IN_GDB), TENSOR_NUMBER) if row.holds else (row.body,):
        if reference:
            loaded(reference)


def run(row: Command, line: str, from_tty: bool) -> None:
    """Raises gdb.GdbError."""
    args: Optional[Namespace] = None
    try:
        session().from_terminal = from_tty
        args = parse(row, line)
        check_files(args)
        answer = loaded(row.body)(session(), args)
        if args.warning:
            session().say(args.warning)
        if row.gdb.startswith(_NOTED) and answer is not None and WITHOUT_OUTPUT is None:
            session().note(f"{row.gdb} {line}".rstrip(), render(answer, PLAIN))
        _show(answer, args, in_gdb(row.gdb, args))
    except HelpWanted as wanted:
        _write(str(wanted))
    except GdbextError as problem:
        raise _said(row, problem, args, line) from None
    except gdb.error as problem:
        raise _said(row, GdbextError(f"{row.gdb}: {problem}"), args, line) from None
    except Exception as problem:  # noqa: BLE001 - a bug of ours must not print a traceback at a user
        raise _said(row, _bug(row.gdb, problem), args, line) from None


def _said(row: Command, problem: GdbextError, args: Optional[Namespace], line: str) -> gdb.GdbError:
    """An error as gdb prints it, and before it as a document where JSON is wanted. Names of a target may stand in
    it."""
    if wants_json(typed_options(row, line)) if args is None else args.json:
        _write(dumps(problem))
    return gdb.GdbError(clean_text(str(problem), style()))


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


def _show(answer: object, args: Namespace, typed: Typed) -> None:
    """To where the arguments say; text that goes into a file has no colour."""
    if answer is None:
        return
    _check_packages()
    if not isinstance(answer, WithPage):
        _show_answer(answer, args, typed)
        return
    if args.html != STDOUT or args.output is not None:
        _show_answer(answer.answer, args, typed)
    if args.html == STDOUT:
        _write(page_text(answer.page))
    else:
        write_private(args.html, page_text(answer.page), args.force)
        session().say(f"page written to {args.html}")


def _show_answer(answer: object, args: Namespace, typed: Typed) -> None:
    if args.json_file is not None:
        write_private(args.json_file, dumps(answer) + "\n")
    if isinstance(answer, Formatted) and answer.format in BINARY:
        with new_file(args.output, args.force) as file:
            file.write(binary_document(answer))
    elif args.output is not None:
        text = dumps(answer) if args.json else "\n".join(render(answer, replace(PLAIN, typed=typed)))
        write_private(args.output, text + "\n", args.force)
    elif args.json:
        _write(dumps(answer))
    else:
        _print(answer, typed)


def _print(answer: object, typed: Optional[Typed] = None) -> None:
    _check_packages()
    _write("\n".join(render(answer, replace(style(), typed=typed or Typed()))))


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
