"""Command lines of gdb to arguments."""

from __future__ import annotations

import argparse
import io
import re
import shlex
from typing import Dict, List, Optional, Sequence, Tuple

from gdbext.commands.all_commands import IN_GDB
from gdbext.commands.argument_parser import Parser, in_gdb, parser_of, takes
from gdbext.commands.declaration import Command
from gdbext.commands.output import keep_old_json_file, without_file
from gdbext.commands.split_command_line import first_word, unquoted, words_of
from gdbext.model.errors import UsageError
from gdbext.model.text.nearest import unknown_word_error

_LOOKS_LIKE_OPTION = re.compile(r"--[a-z][a-z-]+(?:=|\Z)")
_OPTION = re.compile(r"(-*\w[\w-]*)(?:=|\s|$|(?=\())")


def parse(command: Command, line: str) -> argparse.Namespace:
    """Arguments of a command line; `warning` is what is to be said of it. Raises UsageError, HelpWanted."""
    parser = parser_of(command)
    if not command.body and not line.lstrip().startswith("-"):
        raise _subcommand_error(command, line)
    try:
        if command.tail is None:
            words, file = without_file(_words(command, line), takes(in_gdb(command)))
            words = _with_values(parser, words)
            wrong = [word for word in words if _LOOKS_LIKE_OPTION.match(word) and word.partition("=")[0] not in parser]
            if wrong:
                parser.error(f"unrecognized arguments: {wrong[0]}")
            args = parser.parse_intermixed_args(words)  # they may stand on both sides of an option
        else:
            words, tail, file = (_sorted if command.options_behind else _split)(parser, command, line)
            # "--" keeps argparse from reading the tail's dashes as ours.
            args = parser.parse_args(words + (["--", tail] if tail else []))
    except ValueError as error:
        raise UsageError(f"{command.gdb}: {error} in: {line}") from None
    if not command.body:
        raise _subcommand_error(command, line)
    args.warning = keep_old_json_file(args, file)
    return args


def _subcommand_error(command: Command, line: str) -> UsageError:
    """gdb hands what is none of its subcommands to the command itself."""
    word = first_word(line)[0]
    names = [one.gdb.split()[-1] for one in IN_GDB if one.gdb.startswith(f"{command.gdb} ")]
    hint = f"one of {', '.join(names)}; see `help {command.gdb}`"
    if not word or word.startswith("-"):
        return UsageError(f"{command.gdb}: missing subcommand", hint)
    return unknown_word_error("subcommand", word, names, hint, f"{command.gdb}: ")


def typed_options(command: Command, line: str) -> List[str]:
    """The words of a line that may be wrong, up to the tail."""
    if command.tail is None or command.options_behind:
        return words_of(line)
    try:
        return _split(parser_of(command), command, line)[0]
    except (UsageError, ValueError):
        return line.split()


def _with_values(parser: Parser, words: Sequence[str]) -> List[str]:
    """The words, an option and its value as one: else argparse takes a value that begins with a dash for an option."""
    found: List[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        found.append(f"{word}={rest.pop(0)}" if parser.needs_value(word) and rest and rest[0] not in parser else word)
    return found


def _split(parser: Parser, command: Command, line: str) -> Tuple[List[str], str, Optional[str]]:
    """Options and other arguments as a shell splits them, the tail as it was typed, and an old FILE of `--json`."""
    positional = sum(not argument.option for argument in command.arguments)
    words: List[str] = []
    rest = line.strip()
    while rest and (positional or rest.startswith("--") or rest.split()[0] in parser):
        word, rest = first_word(rest)
        value = ""
        if parser.needs_value(word):
            value, rest = first_word(rest)
        words += shlex.split(f"{word}={value}" if value else word)
        positional -= not word.startswith("-")
    words, file = without_file(words, "text")
    return words, rest, file


def _sorted(parser: Parser, command: Command, line: str) -> Tuple[List[str], str, Optional[str]]:
    """The same where options may stand anywhere: the expressions between them are as they were typed."""
    options: List[str] = []
    others: List[str] = []
    words, file = without_file(words_of(line), "text")
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name not in parser and not _LOOKS_LIKE_OPTION.match(word):
            others.append(word)
        elif equals:
            options.append(f"{name}={unquoted(value)}")
        elif parser.needs_value(name) and words and words[0] not in parser:
            options.append(f"{name}={unquoted(words.pop(0))}")
        else:
            options.append(word)
    return options, " ".join(others), file


def _taking_the_rest(command: Command) -> Dict[str, str]:
    """The options that do, by how they may be written."""
    return {name: one.name for one in command.arguments if one.rest for name in (one.name, one.name.lstrip("-"))}


def rest_of(command: Command, line: str) -> Optional[str]:
    """What has been typed of the value of an option that takes the rest; None as long as the line has none."""
    for name in _taking_the_rest(command):
        found = re.search(rf"(?:^|\s){name}[=\s]\s*(?P<rest>.*)", line)
        if found:
            return found["rest"]
    return None


def _words(command: Command, line: str) -> List[str]:
    """Words as a shell would split them, up to an option that takes the rest."""
    options = _taking_the_rest(command)
    text = io.StringIO(line)
    reader = shlex.shlex(text, posix=True)
    reader.whitespace_split, reader.commenters = True, ""
    words: List[str] = []
    while True:
        left = line[text.tell() :].lstrip()
        found = _OPTION.match(left)
        if found and found[1] in options and (words or found[1].startswith("-")):
            return [*words, f"{options[found[1]]}={left[found.end() :].strip()}"]
        word = reader.get_token()
        if word is None:
            return words
        words.append(word)
