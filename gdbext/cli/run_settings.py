"""The settings that `gdbext run --check|--profile|--dump|--sanitizer` gives to a program that it starts."""

from __future__ import annotations

import json
import os
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from gdbext.cli.mindspore_dump import configuration
from gdbext.commands.user_files import write_private
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.launch.start_settings import NOTES, SETTINGS, STEPS, TENSORS, StartSetting
from gdbext.model.errors import UsageError, refused_as

_STEP_RANGE = re.compile(r"(?P<first>\d{1,9})-(?P<last>\d{1,9})")


class Start(NamedTuple):
    """What the program is started with, and a line for each thing to know."""

    words: List[str]
    environment: Dict[str, str]
    said: Tuple[str, ...]


def engine_of(words: Sequence[str]) -> Optional[str]:
    """The engine whose own command this is, behind launchers and their options too."""
    for at in range(len(words)):
        title = " ".join([os.path.basename(words[at]), *words[at + 1 : at + 6]])
        for profile in PROFILES:
            if any(rule.role != "launcher" and re.search(rule.pattern, title) for rule in profile.titles):
                return profile.name
    return None


def settings_for(
    purpose: str,
    engine: Optional[str],
    words: Sequence[str],
    environment: Dict[str, str],
    folder: str,
    steps: Optional[str] = None,
    options: Sequence[str] = (),
    make: bool = True,
) -> Start:
    """The same words and environment with the settings of this engine (of every engine, where it is not known).

    With `make` it makes the folder and its files. A variable that is set already is left as it is.
    Raises `UsageError`, `GdbextError`.
    """
    own = engine_of(words)
    engine = engine or own
    rows = [row for row in SETTINGS if row.purpose == purpose and (row.engine == "" or engine in (None, row.engine))]
    notes = [note for note in NOTES if note.purpose == purpose and engine in (None, note.engine)]
    if not any(row.engine in ("", engine) for row in rows) and engine is not None and not notes:
        known = ", ".join(dict.fromkeys(row.engine for row in SETTINGS if row.purpose == purpose and row.engine))
        raise UsageError(f"no such setting is known for {engine}", f"one of {known}")
    if options and not any(row.file for row in rows):
        raise UsageError("--set is for MindSpore's dump of tensors", "gdbext run --dump tensors --engine mindspore")
    folder = os.path.abspath(folder)
    fill = {"dir": folder, "file": os.path.join(folder, "data_dump.json"), **_steps(steps)}
    made, given, said = list(words), dict(environment), []
    document = configuration(os.path.join(folder, "mindspore"), options) if purpose == TENSORS else {}
    for row in rows:
        value = row.value.format(**fill)
        if row.argument:
            if own == row.engine and row.name not in made:
                made += [row.name, value] if value else [row.name]
                said.append(f"{row.name} {value}".rstrip())
        else:
            said += set_variable(given, row.name, value)
    said += [f"files: {place}" for place in dict.fromkeys(_places(rows, own, fill))]
    said += [f"note: {note.text.format(**fill)}" for note in notes]
    if make:
        _make(folder)
    if make and any(row.file for row in rows) and given.get("MINDSPORE_DUMP_CONFIG") == fill["file"]:
        write_private(fill["file"], json.dumps(document, indent=4) + "\n", force=True, mode=0o644)
    return Start(made, given, tuple(said))


def set_variable(environment: Dict[str, str], name: str, value: str) -> List[str]:
    """Set it unless it is set already; what is to be said of it."""
    if name not in environment:
        environment[name] = value
        return [f"{name}={value}"]
    if environment[name] == value:
        return []
    return [f"{name}={environment[name]} is already set; gdbext would set it to {value}"]


def _places(rows: Sequence[StartSetting], own: Optional[str], fill: Dict[str, str]) -> List[str]:
    return [row.writes.format(**fill) for row in rows if row.writes and (not row.argument or own == row.engine)]


def _steps(text: Optional[str]) -> Dict[str, str]:
    """Raises `UsageError`."""
    if text is None:
        return {"first": str(STEPS[0]), "last": str(STEPS[1])}
    found = _STEP_RANGE.fullmatch(text)
    if found is None or int(found["first"]) >= int(found["last"]):
        raise UsageError(f"--steps {text[:40]} is not a range of steps", "--steps 100-150")
    return found.groupdict()


def _make(folder: str) -> None:
    with refused_as(f"cannot make the folder {folder}", "choose another with --dir"):
        os.makedirs(folder, mode=0o755, exist_ok=True)
