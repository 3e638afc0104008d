"""A folder with the logs of one job, a file for each rank or host: `gdbext diagnose FOLDER`."""

from __future__ import annotations

import os
from typing import Dict, List, Sequence, Tuple

from gdbext.knowledge.log_lines.file_names import ATTEMPT
from gdbext.model.errors import GdbextError
from gdbext.model.text.patterns import regex
from gdbext.model.text.ranges import counted

MOST_FILES = 4096
DEEPEST = 6
_ATTEMPT = regex(ATTEMPT)
_OTHERS = (
    ".json",
    ".yaml",
    ".yml",
    ".py",
    ".sh",
    ".toml",
    ".cfg",
    ".ini",
    ".md",
    ".csv",
    ".pt",
    ".bin",
    ".safetensors",
)


def files_in(folder: str) -> Tuple[List[str], List[str]]:
    """Paths of the logs, sorted; and what was left out, a line each. Raises GdbextError where there are none."""
    found: List[str] = []
    notes: List[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if place[len(folder) :].count(os.sep) >= DEEPEST:
            folders[:] = []
        paths = (os.path.join(place, name) for name in sorted(names))
        found += [path for path in paths if _is_log(path)]
        if len(found) > MOST_FILES:
            notes.append(f"{folder}: more than {MOST_FILES} files; only the first {MOST_FILES} were read")
            break
    kept, left = _last_attempt(folder, found[:MOST_FILES])
    if not kept:
        problem = f"{folder} is a folder without logs and without snapshot.json"
        raise GdbextError(problem, "give files, or a folder that --bundle wrote")
    return kept, notes + left


def _is_log(path: str) -> bool:
    name = os.path.basename(path)
    if name.startswith(".") or name.lower().endswith(_OTHERS):
        return False
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _last_attempt(folder: str, paths: Sequence[str]) -> Tuple[List[str], List[str]]:
    """Of several attempts the last one: the ranks of the others are gone."""
    numbers: Dict[str, int] = {}
    for path in paths:
        match = _ATTEMPT.search(path[len(folder) :])
        if match:
            numbers[path] = int(match.group("number"))
    last = max(numbers.values(), default=0)
    kept = [path for path in paths if numbers.get(path, last) == last]
    left = len(paths) - len(kept)
    note = f"{folder}: {counted(left, 'file')} of earlier attempts left out, attempt {last} is the last"
    return kept, [note] if left else []
