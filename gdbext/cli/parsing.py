"""From the words of a command line to the options of its command."""

from __future__ import annotations

import argparse
from typing import Sequence

from gdbext.cli.selection import chosen
from gdbext.cli.terminal import Progress
from gdbext.commands.output import check_files, keep, without_file
from gdbext.model.text.digits import is_whole

_FOREIGN = ("run", "launch")
"""Commands whose arguments are another program's command line."""

_TAKES = {
    **dict.fromkeys(("diagnose", "stacks", "locks", "comms"), "files"),
    **dict.fromkeys(("ranks", "doctor", "pdb"), "pids"),
    **dict.fromkeys(("explain", "error"), "text"),
}
"""What the commands with `--output` take besides options, by the words of `commands.output.without_file`."""


def is_for_us(words: Sequence[str]) -> bool:
    """Whether the options on a command line are those of gdbext."""
    return _command_of(words) not in _FOREIGN


def _command_of(words: Sequence[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def parse(top: argparse.ArgumentParser, words: Sequence[str], options: argparse.Namespace) -> None:
    """Parse into `options`, and see that the files it is to write can be written. Raises `UsageError`."""
    takes = _TAKES.get(_command_of(words))
    typed, file = (list(words), None) if takes is None else without_file(words, takes)
    _, further = top.parse_known_args(typed, options)
    _take_further(top, options, further)
    if takes is None:
        return
    warning = keep(options, file) or _leave_dash_out(options, words)
    if warning:
        Progress().say(warning)
    check_files(options)


def _take_further(top: argparse.ArgumentParser, options: argparse.Namespace, words: Sequence[str]) -> None:
    """Pids and files behind an option that stands among them: argparse takes those in front of it alone."""
    wrong = [word for word in words if word.startswith("-") and word != "-"]
    if wrong or (words and not isinstance(getattr(options, "inputs", None), list)):
        top.error(f"unrecognized arguments: {' '.join(wrong or words)}")
    for word in words:
        files = _TAKES.get(options.command) == "files"
        if not files and not is_whole(word):
            top.error(f"argument PID: invalid int value: {word!r}")
        options.inputs.append(word if files else int(word))


def _leave_dash_out(options: argparse.Namespace, words: Sequence[str]) -> str:
    """An old `--json -` beside other inputs, among which standard input cannot stand."""
    inputs = getattr(options, "inputs", [])
    if "-" not in inputs or (len(inputs) == 1 and not chosen(options)):
        return ""
    if not any(pair == ("--json", "-") for pair in zip(words, words[1:])):
        return ""
    inputs.remove("-")
    return keep(options, "-")
