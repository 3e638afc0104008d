"""Numbers and options in the arguments of a process."""

from __future__ import annotations

import re
from typing import Dict, Iterable, Optional, Sequence, Tuple

from gdbext.discovery.ranks.rank_variables import number
from gdbext.knowledge.launch.launchers import RANK_ARGUMENTS
from gdbext.model.text.patterns import regex

_RANK_ARGUMENTS = tuple(regex(rule.pattern, re.IGNORECASE) for rule in RANK_ARGUMENTS)


def option(arguments: Sequence[str], names: Iterable[str]) -> Optional[str]:
    """The value of the first of these options that is given (`--tp 4`, `--tp=4`); "" for one without a value."""
    wanted = tuple(names)
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name not in wanted:
            continue
        if equals:
            return value
        following = arguments[index + 1] if index + 1 < len(arguments) else "-"
        return "" if following.startswith("-") else following
    return None


def option_value(commands: Iterable[Sequence[str]], names: Iterable[str]) -> Optional[int]:
    """The number that one of these options has in the first command that gives it."""
    wanted = tuple(names)
    for arguments in commands:
        value = number(option(arguments, wanted))
        if value:
            return value
    return None


def rank_arguments(title: str) -> Dict[str, Tuple[int, str]]:
    """Numbers in the command line of a rank by group (rank, local_rank, tp, ...), each with the option it stands in."""
    numbers: Dict[str, Tuple[int, str]] = {}
    for pattern in _RANK_ARGUMENTS:
        found = pattern.search(title)
        if found:
            text = found.group(0).strip().replace("=", " ").split()[0]
            for name, value in groups_of(found).items():
                numbers.setdefault(name, (value, text))
    return numbers


def groups_of(found: re.Match[str]) -> Dict[str, int]:
    """The named groups of a title rule that took part in the match, as numbers."""
    numbers = {name: number(text) for name, text in found.groupdict().items()}
    return {name: value for name, value in numbers.items() if value is not None}
