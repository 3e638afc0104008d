"""What a service is told to do: the options of its command line, and over them a file of TOML or JSON.

Each key is a row. A key that is not known, or has a value of another kind, is an error: a service that quietly ignores
half of its file is found out on the night of the hang.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import shlex
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from gdbext.cli.chosen_processes import selector_of
from gdbext.discovery.ranks.selectors import Selector
from gdbext.knowledge.spinning import SPINNING_AFTER
from gdbext.model.errors import GdbextError, UsageError, refused_as
from gdbext.model.text.nearest import unknown_word_error

_LARGEST = 1 << 20  # bytes of a file
_MOST_JOBS = 64
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+):)?(?P<port>\d{1,5})")
ALERTS = ("hang", "undecided", "moves", "gone")


@dataclass(frozen=True)
class JobRule:
    """Which jobs are followed, and how. Every job that the selector means is one of them."""

    name: str = ""  # what they are called; "": by their engine
    selector: Selector = field(default_factory=Selector)
    still: float = 60.0
    spinning_after: float = SPINNING_AFTER
    max_pause: float = 2.0
    exec: Tuple[str, ...] = ()  # command and arguments
    webhook: str = ""
    alert_on: Tuple[str, ...] = ("hang",)
    cooldown: float = 600.0  # seconds in which the same of a job is not told again


@dataclass(frozen=True)
class Settings:
    """All of it."""

    rules: Tuple[JobRule, ...]
    every: float = 10.0
    into: str = "gdbext-watch"
    keep: int = 5  # bundles of a job
    quota: int = 2048  # MiB of all bundles
    deadline: float = 120.0  # seconds of a look
    alert_timeout: float = 30.0
    metrics: str = ""  # [HOST:]PORT
    textfile: str = ""
    lock: str = ""  # file of all services of this host
    gdb: Optional[str] = None


class _Key(NamedTuple):
    """A key of the file: the field that it sets, and how a value becomes the field's; it raises `ValueError`."""

    name: str
    read: Callable[[Any], Any]
    wants: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e7:
        raise ValueError
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 40:
        raise ValueError
    return value


def _command(value: Any) -> Tuple[str, ...]:
    words = shlex.split(value) if isinstance(value, str) else value
    if not isinstance(words, list) or not words:
        raise ValueError
    return tuple(_text(word) for word in words)


def _url(value: Any) -> str:
    if not re.fullmatch(r"https?://[^\s\0]{1,2000}", _text(value)):
        raise ValueError
    return str(value)


def _kinds(value: Any) -> Tuple[str, ...]:
    if not isinstance(value, list) or not all(kind in ALERTS for kind in value):
        raise ValueError
    return tuple(value)


def _name(value: Any) -> str:
    if not _NAME.fullmatch(_text(value)):
        raise ValueError
    return str(value)


def _address(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not _ADDRESS.fullmatch(str(value)):
        raise ValueError
    address_of(str(value))
    return str(value)


def address_of(text: str) -> Tuple[str, int]:
    """Host and port; on this host alone unless a host is named. Raises ValueError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise ValueError
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])


_SECONDS, _FILE = "a number of seconds", "the name of a file"
_OF_A_JOB = (
    _Key("still", _seconds, _SECONDS),
    _Key("spinning_after", _seconds, _SECONDS),
    _Key("max_pause", _seconds, _SECONDS),
    _Key("exec", _command, "a command"),
    _Key("webhook", _url, "an http(s) URL"),
    _Key("alert_on", _kinds, f"a list of {', '.join(ALERTS)}"),
    _Key("cooldown", _seconds, _SECONDS),
)
_OF_ALL = (
    _Key("every", _seconds, _SECONDS),
    _Key("into", _text, "a folder"),
    _Key("keep", _count, "a number of bundles"),
    _Key("quota", _count, "a number of MiB"),
    _Key("deadline", _seconds, _SECONDS),
    _Key("alert_timeout", _seconds, _SECONDS),
    _Key("metrics", _address, "[HOST:]PORT"),
    _Key("textfile", _text, _FILE),
    _Key("lock", _text, _FILE),
    _Key("gdb", _text, _FILE),
)
_SELECTING = (
    _Key("engine", _text, "the name of an engine"),
    _Key("title", _text, "a regular expression"),
    _Key("pgid", _count, "a process group"),
    _Key("parent", _count, "a pid"),
)
_JOB_NAME = _Key("name", _name, "letters, digits and . _ -, at most 64")


def of(options: argparse.Namespace) -> Settings:
    """The settings that a command line asks for; its file is read again each time. Raises `GdbextError`."""
    document = _file(options.config) if options.config else {}
    jobs = document.pop("job", [])
    if not isinstance(jobs, list) or len(jobs) > _MOST_JOBS or not all(isinstance(one, dict) for one in jobs):
        raise UsageError(f"{options.config}: job must be a list of tables, at most {_MOST_JOBS}", "[[job]] in TOML")
    line = {key.name: getattr(options, key.name, None) for key in (*_OF_ALL, *_OF_A_JOB)}
    given = {name: value for name, value in line.items() if value is not None}
    where = options.config or "the command line"
    common = {**_read(given, (*_OF_ALL, *_OF_A_JOB), "the command line", options_of_line=True)}
    common = {**_read(document, (*_OF_ALL, *_OF_A_JOB), where), **common}
    of_all = {key.name: common.pop(key.name) for key in _OF_ALL if key.name in common}
    selector = selector_of(options, options.inputs)
    if jobs and not selector.empty:
        raise UsageError("processes are chosen on the command line and in the file", "choose them in one place")
    rules = [_rule(one, number, common, where) for number, one in enumerate(jobs, 1)]
    names = [rule.name for rule in rules if rule.name]
    if len(names) != len(set(names)):
        raise UsageError(f"{where}: two jobs have one name", "give each a name of its own")
    return Settings(rules=tuple(rules) or (JobRule(selector=selector, **common),), **of_all)


def _rule(given: Mapping[str, Any], number: int, common: Mapping[str, Any], where: str) -> JobRule:
    values = {**common, **_read(given, (_JOB_NAME, *_SELECTING, *_OF_A_JOB), f"{where}, job {number}")}
    chosen = {key.name: values.pop(key.name) for key in _SELECTING if key.name in values}
    selector = Selector(
        name=chosen.get("title"), pgid=chosen.get("pgid"), parent=chosen.get("parent"), engine=chosen.get("engine")
    )
    return JobRule(selector=selector, **values)


def _read(
    given: Mapping[str, Any], keys: Tuple[_Key, ...], where: str, options_of_line: bool = False
) -> Dict[str, Any]:
    rows = {key.name: key for key in keys}
    found: Dict[str, Any] = {}
    for name, value in given.items():
        if name not in rows:
            raise unknown_word_error("key", str(name)[:60], rows, f"one of {', '.join(rows)}", f"{where}: ")
        try:
            found[name] = rows[name].read(value)
        except ValueError:
            shown = f"--{name.replace('_', '-')}" if options_of_line else name
            raise UsageError(f"{where}: {shown} must be {rows[name].wants}, not {str(value)[:60]!r}") from None
    return found


def _file(name: str) -> Dict[str, Any]:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with refused_as(f"cannot read {name}"), open(os.open(name, flags), "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise UsageError(f"{name} has more than {_LARGEST >> 20} MiB", "--config takes a file of settings")
    try:
        text = data.decode("utf-8")
        found = json.loads(text) if name.endswith(".json") else _toml().loads(text)
    except (ValueError, RecursionError) as error:  # both decoders' errors are ValueErrors
        raise UsageError(f"{name}: {' '.join(str(error).split())[:200]}", "TOML, or JSON in a file NAME.json") from None
    if not isinstance(found, dict):
        raise UsageError(f"{name} is not an object", "{...}")
    return found


def _toml() -> ModuleType:
    """Of Python 3.11 and newer, or the package that it comes from."""
    names: List[str] = [name for name in ("tomllib", "tomli") if importlib.util.find_spec(name) is not None]
    if not names:
        raise GdbextError("this Python reads no TOML", "python3 -m pip install tomli, or write the file as NAME.json")
    return importlib.import_module(names[0])
