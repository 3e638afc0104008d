"""The words that a value of a command may be: what TAB offers, in gdb and in the shell."""

from __future__ import annotations

import os
from typing import List, Mapping, Tuple

from gdbext.commands.declaration import Argument, loaded

_LISTS: Mapping[str, str] = {
    "label": "gdbext.commands.explain:LABELS",
    "engine": "gdbext.knowledge.engines.all_profiles:NAMES",
    "built": "gdbext.knowledge.engines.all_build_ways:BUILT",
    "error": "gdbext.knowledge.errors:NAMES",
    "dtype": "gdbext.knowledge.dtypes:DTYPES",
    "demo": "gdbext.commands.demo_looks:NAMES",
}
"""What an argument completes to, and where the words stand: loaded when one is asked for."""
_MOST_FILES = 10_000  # entries of a folder that are looked at


def words_for(argument: Argument) -> Tuple[str, ...]:
    """The words that are the same on every machine; none where they depend on what runs."""
    if argument.choices:
        return argument.choices
    kind = argument.offers
    return tuple(loaded(_LISTS[kind])) if kind in _LISTS else tuple(kind.split("|")) if "|" in kind else ()


def files_at(typed: str) -> List[str]:
    """Files and folders whose path begins as typed; a folder ends with a slash."""
    folder, slash, start = typed.rpartition("/")
    place = os.path.expanduser(folder + slash) or "."
    found: List[str] = []
    try:
        with os.scandir(place) as entries:
            for _, entry in zip(range(_MOST_FILES), entries):
                if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
                    found.append(f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}")
    except (OSError, ValueError):  # also of a name that cannot be one
        return []
    return sorted(found)
