"""From the words of a command line to the options of its command."""

from __future__ import annotations

import argparse
from typing import List, Optional, Sequence, Tuple

from gdbext.cli.chosen_processes import chosen
from gdbext.cli.terminal import Progress
from gdbext.commands.all_commands import IN_SHELL
from gdbext.commands.argument_parser import in_shell, takes
from gdbext.commands.declaration import ALL_THE_REST, Command
from gdbext.commands.output import check_files, keep_old_json_file, without_file
from gdbext.model.text.digits import is_whole


def is_for_us(words: Sequence[str]) -> bool:
    """Whether the options on a command line are those of gdbext."""
    command = _command_of(words)
    return command is None or all(one.nargs != ALL_THE_REST for one in command.arguments)


def split_at_dashes(words: Sequence[str]) -> Tuple[List[str], List[str]]:
    """Our words, and those behind a lone `--` where they are another program's."""
    command = _command_of(words)
    at = list(words).index("--") if command is not None and command.program and "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def _command_of(words: Sequence[str]) -> Optional[Command]:
    return IN_SHELL.get(next((word for word in words if not word.startswith("-")), ""))


def parse(top: argparse.ArgumentParser, words: Sequence[str], options: argparse.Namespace) -> None:
    """Parse into `options`, and see that the files it is to write can be written. Raises `UsageError`."""
    command = _command_of(words)
    words, program = split_at_dashes(words)
    if command is not None and command.program:
        setattr(options, command.program, program)
    answers = command is not None and command.answers
    typed, file = without_file(words, takes(in_shell(command))) if command and answers else (list(words), None)
    _, further = top.parse_known_args(typed, options)
    _take_further(top, options, further)
    if not answers:
        return
    warning = keep_old_json_file(options, file) or _leave_dash_out(options, words)
    if warning:
        Progress().say(warning)
    check_files(options)


def _take_further(top: argparse.ArgumentParser, options: argparse.Namespace, words: Sequence[str]) -> None:
    """Pids and files behind an option that stands among them: argparse takes those in front of it alone."""
    wrong = [word for word in words if word.startswith("-") and word != "-"]
    if wrong or (words and not isinstance(getattr(options, "inputs", None), list)):
        _subparser(top, options.command).error(f"unrecognized arguments: {' '.join(wrong or words)}")
    for word in words:
        files = takes(in_shell(IN_SHELL[options.command])) == "files"
        if not files and not is_whole(word):
            top.error(f"argument PID: not a process id: {word}")
        options.inputs.append(word if files else int(word))


def _subparser(top: argparse.ArgumentParser, command: Optional[str]) -> argparse.ArgumentParser:
    """The parser of a command: it knows the command's options. Without one, the whole command line's."""
    for one in top._actions:
        if isinstance(one, argparse._SubParsersAction) and command in one.choices:
            found: argparse.ArgumentParser = one.choices[command]
            return found
    return top


def _leave_dash_out(options: argparse.Namespace, words: Sequence[str]) -> str:
    """An old `--json -` beside other inputs, among which standard input cannot stand."""
    inputs = getattr(options, "inputs", [])
    if "-" not in inputs or (len(inputs) == 1 and not chosen(options)):
        return ""
    if not any(pair == ("--json", "-") for pair in zip(words, words[1:])):
        return ""
    inputs.remove("-")
    return keep_old_json_file(options, "-")
