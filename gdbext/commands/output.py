"""`--json`, `--output FILE`, `--force` and `--html FILE`: the form of an answer, and where it goes."""

from __future__ import annotations

import importlib.util
import os
import re
from argparse import Namespace
from typing import List, Optional, Sequence, Tuple

from gdbext.commands.user_files import check_writable
from gdbext.model.errors import GdbextError, UsageError
from gdbext.model.formatted import BINARY

STDOUT = "-"


def check_files(args: Namespace) -> None:
    """Before the work: whether the files it names can be written. Raises as `check_writable` does."""
    if getattr(args, "format", None) is not None and (args.json or args.json_file is not None):
        raise UsageError(
            "--json and --format cannot be combined", "give one of them; --save keeps the snapshot for both"
        )
    if getattr(args, "format", None) in BINARY:
        _check_binary(args)
    for name in (args.output, args.json_file, getattr(args, "save", None)):
        if name is not None:
            check_writable(name, args.force)
    _check_page(args)


def _check_binary(args: Namespace) -> None:
    """Raises UsageError without a file, or GdbextError where the format cannot be written."""
    if args.output is None:
        raise UsageError(f"{args.format} is a binary format and needs a file", f"--format {args.format} --output FILE")
    if importlib.util.find_spec("perfetto") is None:
        raise GdbextError(f"the format {args.format} needs the package perfetto", "python3 -m pip install perfetto")


def can_make_pages() -> bool:
    """Whether what they are made with is installed (the extra `report`)."""
    return importlib.util.find_spec("jinja2") is not None


def _check_page(args: Namespace) -> None:
    """Raises UsageError, or GdbextError where no page can be made."""
    name = getattr(args, "html", None)
    if name is None:
        if getattr(args, "open", False):
            raise UsageError("--open shows the page that --html writes", "--html FILE --open")
        return
    if not can_make_pages():
        raise GdbextError("the HTML page needs the package jinja2", "python3 -m pip install jinja2")
    if name != STDOUT:
        check_writable(name, args.force)
    elif getattr(args, "open", False):
        raise UsageError("--open needs a file", "--html FILE --open")
    elif args.json and args.output is None:
        raise UsageError("--html - and --json both write to standard output", "--html FILE, or --output FILE")


def wants_json(words: Sequence[str]) -> bool:
    """Whether a command line that may be wrong asks for JSON: its error is a document then."""
    own = words[: words.index("--")] if "--" in words else words
    return "--json" in own


# --- `--json FILE`, as it was: for one more release ---

_FILE_NAME = re.compile(r"\S*/\S*|\S+\.[A-Za-z]\w{0,7}")
_JSON_NAME = re.compile(r"\S+\.json")
_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


def without_file(words: Sequence[str], arguments: str) -> Tuple[List[str], Optional[str]]:
    """The words of a command line with a bare `--json`, and the FILE that an old `--json FILE` names.

    A word behind `--json` is such a FILE only if it can be nothing else: `arguments` says what the command takes,
    "pids", "files" (one that exists is to be read) or "text" (only NAME.json is no text).
    Raises UsageError where FILE exists.
    """
    found: List[str] = []
    file: Optional[str] = None
    rest = list(words)
    while rest and rest[0] != "--":
        word, equals, value = rest.pop(0).partition("=")
        if word != "--json":
            found.append(word + equals + value)
            continue
        found.append(word)
        if equals or (rest and _is_file(rest[0], arguments)):
            file = _old_file(value if equals else rest.pop(0))
    return found + rest, file


def _is_file(word: str, arguments: str) -> bool:
    if word == "-":
        return arguments == "pids"
    form = _JSON_NAME if arguments == "text" else _FILE_NAME
    if word.startswith("-") or not form.fullmatch(word):
        return False
    device = word.startswith("/dev/") and not word.startswith(_PIPES)
    return arguments != "files" or device or not os.path.lexists(word)


def _old_file(name: str) -> str:
    if not name or name.isdigit():
        raise UsageError(f"--json takes no value, not {name or 'an empty one'}", "--json --output FILE writes a file")
    if os.path.isfile(name):
        raise UsageError(f"{name} exists, and --json takes no value any more", f"--json --output {name} --force")
    return name


def keep_old_json_file(args: Namespace, file: Optional[str]) -> str:
    """Put the FILE of an old `--json FILE` into the arguments; returns what is to be said of it."""
    args.json_file = None if file == "-" else file
    if file is None:
        return ""
    if file == "-":
        return "--json takes no value any more: leave the - out"
    args.json = False  # as it was: the document into the file, the text to stdout
    return f"--json takes no value any more: use --json --output {file} (this release still writes {file})"
