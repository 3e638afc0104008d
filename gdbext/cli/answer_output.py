"""The answer of a command: text or, with `--json`, a document; to stdout or, with `--output FILE`, into a file."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import Callable, Sequence, Union

from gdbext.cli.terminal import Progress, style_for, write_lines
from gdbext.collect.ctrl_c_while_loading import interrupts_wait
from gdbext.commands.command_for_more import in_shell
from gdbext.commands.output import STDOUT
from gdbext.commands.user_files import new_file, write_private
from gdbext.discovery.proc import programs
from gdbext.model.difference import JobDifference
from gdbext.model.formatted import BINARY, Formatted
from gdbext.model.page import Page
from gdbext.render import PLAIN, Style, binary_document, dumps, page_text, render


def show(found: object, options: argparse.Namespace) -> None:
    """Give a result of `model` as the options ask for it. A page on stdout takes the place of the answer there."""
    if getattr(options, "html", None) == STDOUT and options.output is None:
        return
    if isinstance(found, Formatted) and found.format in BINARY:
        with interrupts_wait(), new_file(options.output, options.force) as file:
            file.write(binary_document(found))
        _noted(options)
        return
    print_document(lambda: dumps(found), lambda style: render(found, style), options)


def print_document(
    document: Callable[[], str], lines: Callable[[Style], Sequence[str]], options: argparse.Namespace
) -> None:
    """The same for what is no result of `model`. Notes in `options.answered` that stdout has its one document."""
    with interrupts_wait():  # they load modules
        if options.json_file is not None:
            write_private(options.json_file, document() + "\n")
        style = PLAIN if options.output else style_for(sys.stdout, os.environ)
        style = replace(style, typed=in_shell(options))
        text = [document()] if options.json else lines(style)
    if options.output:
        write_private(options.output, "\n".join(text) + "\n", options.force)
        _noted(options)
    else:
        options.answered = True
        write_lines(text)


def _noted(options: argparse.Namespace) -> None:
    Progress(getattr(options, "quiet", False)).note(f"answer written to {options.output}")


def show_page(page: Union[Page, JobDifference], options: argparse.Namespace) -> None:
    """Write the page to where `--html` says; with `--open` show it. After the answer: a full disk must not cost it."""
    progress = Progress(getattr(options, "quiet", False))
    with interrupts_wait():
        text = page_text(page)
    if options.html == STDOUT:
        options.answered = True
        write_lines([text.rstrip("\n")])
        return
    write_private(options.html, text, options.force)
    progress.note(f"page written to {options.html}")
    if options.open:
        _open(os.path.abspath(os.path.expanduser(options.html)), progress)


_BROWSERS = ("xdg-open", "sensible-browser", "firefox", "chromium", "google-chrome")


def _open(path: str, progress: Progress) -> None:
    """In the first browser that is there; it outlives us."""
    wanted = [os.environ["BROWSER"]] if os.environ.get("BROWSER") else list(_BROWSERS)
    found = next(filter(None, (programs.find(name).path for name in wanted)), None)
    if found is None:
        progress.warn(f"no browser was found (of {', '.join(wanted)}); the page is {path}")
        return
    nowhere = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
    silent = (nowhere, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2))
    try:
        os.posix_spawn(found, [found, path], os.environ, file_actions=silent, setsid=True)
    except OSError as error:
        progress.warn(f"{found} does not start ({error.strerror}); the page is {path}")
