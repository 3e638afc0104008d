"""Model objects to JSON and back. One file format for `--save`, `--samples` and bundles."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
from collections.abc import Mapping as AbstractMapping
from typing import Any, Iterator, Union

from gdbext import __version__
from gdbext.model import limits
from gdbext.model.decoding import LONE_SURROGATE, reader
from gdbext.model.errors import GdbextError
from gdbext.model.job import SCHEMA, JobSnapshot
from gdbext.model.missing import Missing
from gdbext.model.saved_snapshot import SnapshotReader
from gdbext.model.unfit import Unfit

TOOL = f"gdbext {__version__}"
_ADVICE = "give a file that --save wrote"


def encode(value: Any) -> Any:
    """Plain JSON data of a model object; fields at their default are left out to keep snapshots small."""
    if isinstance(value, Missing):
        return {"missing": _bounded(value.reason)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: encode(got) for name, got, default in _fields_of(value) if got != default}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, AbstractMapping):
        return {encode(str(key)): encode(item) for key, item in value.items()}
    return _bounded(value) if isinstance(value, str) else value


def _bounded(text: str) -> str:
    """A text as it can be read again: not endless, and without halves of characters, of which a target may have any."""
    if len(text) > limits.LONGEST_TEXT:
        text = text[: limits.LONGEST_TEXT - 1] + "…"
    return text if text.isascii() else LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _fields_of(value: Any) -> Any:
    for field in dataclasses.fields(value):
        if field.default is not dataclasses.MISSING:
            default = field.default
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            default = dataclasses.MISSING
        yield field.name, getattr(value, field.name), default


def decode(kind: Any, data: Any) -> Any:
    """The inverse of `encode` for the type `kind`. Raises `ValueError` that names the field which does not fit."""
    return reader(kind)(data)


def dump_snapshot(snapshot: JobSnapshot) -> str:
    """The text of a snapshot file. It is ASCII: no character of a name in it does anything to a terminal."""
    return json.dumps({"schema": SCHEMA, "tool": TOOL, "snapshot": encode(snapshot)})


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Snapshots have no cycles; without this Python looks for some in a million frames again and again (40 % of the
    time, measured)."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def load_snapshot(data: Union[bytes, str]) -> JobSnapshot:
    """Read what `dump_snapshot` wrote. Raises `GdbextError` when it is something else."""
    document = SnapshotReader(data.encode("utf-8", "replace") if isinstance(data, str) else data)
    try:
        with _without_collector():
            return document.snapshot()
    except Unfit as problem:
        raise GdbextError(f"not a gdbext snapshot: {problem}", _who_wrote_it(document.tool)) from None
    except RecursionError:
        raise GdbextError("not a gdbext snapshot: it is nested too deeply", _ADVICE) from None


def _who_wrote_it(tool: str) -> str:
    if tool in ("", TOOL):
        return _ADVICE
    return f"{tool} wrote it, and this is {TOOL}"
