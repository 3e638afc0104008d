"""Model objects to JSON and back. One file format for `--save`, `--samples` and bundles."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import json
from collections.abc import Mapping as AbstractMapping
from collections.abc import Sequence
from typing import Any, Iterator, Optional, Tuple, Union

from gdbext import __version__
from gdbext.model.codes import Code, Word
from gdbext.model.errors import GdbextError
from gdbext.model.job import SAVED, JobSnapshot
from gdbext.model.missing import Missing
from gdbext.model.snapshot_files import limits
from gdbext.model.snapshot_files.data_errors import Unfit
from gdbext.model.snapshot_files.document_reader import SnapshotReader
from gdbext.model.snapshot_files.fields_from_json import LONE_SURROGATE, reader
from gdbext.model.snapshot_files.stack_table import StackTable
from gdbext.model.stack import ThreadStack

TOOL = f"gdbext {__version__}"
_ADVICE = "give a file that --save wrote"


def encode(value: Any, table: Optional[StackTable] = None) -> Any:
    """Plain JSON data of a model object; fields at their default are left out to keep snapshots small. With a `table`
    the frames of threads go there."""
    if isinstance(value, str):
        return str(value) if isinstance(value, Word) else _bounded(value)
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Missing):
        code = {} if value.code is Code.OTHER else {"code": str(value.code)}
        return {"missing": _bounded(value.reason), **code}
    if dataclasses.is_dataclass(value):
        placed = table.place(value.frames) if table is not None and isinstance(value, ThreadStack) else {}
        kind: type = type(value)
        fields = _defaults(kind)
        own = ((name, getattr(value, name), default) for name, default in fields if not (placed and name == "frames"))
        return {**{name: encode(got, table) for name, got, default in own if got != default}, **placed}
    if isinstance(value, AbstractMapping):
        return {encode(str(key)): encode(item, table) for key, item in value.items()}
    return [encode(item, table) for item in value] if isinstance(value, Sequence) else value


@functools.lru_cache(maxsize=None)
def _defaults(kind: type) -> Tuple[Tuple[str, Any], ...]:
    """Fields of a model class with their defaults; `MISSING` where they have none."""
    found = []
    for field in dataclasses.fields(kind):
        made = field.default_factory
        found.append((field.name, field.default if made is dataclasses.MISSING else made()))
    return tuple(found)


def _bounded(text: str) -> str:
    """A text as it can be read again: not endless, and without halves of characters, of which a target may have any."""
    if len(text) > limits.LONGEST_TEXT:
        text = text[: limits.LONGEST_TEXT - 1] + "…"
    return text if text.isascii() else LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def decode(kind: Any, data: Any) -> Any:
    """The inverse of `encode` for the type `kind`. Raises `ValueError` that names the field which does not fit."""
    return reader(kind)(data)


def dump_snapshot(snapshot: JobSnapshot) -> str:
    """The text of a snapshot file. It is ASCII: no character of a name in it does anything to a terminal."""
    table = StackTable()
    encoded = encode(snapshot, table)
    stacks = {"calls": encode(table.calls), **table.rows()}
    return json.dumps({"schema": SAVED, "tool": TOOL, "snapshot": {"stacks": stacks, **encoded}})


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
    return _ADVICE if tool in ("", TOOL) else f"{tool} wrote it, and this is {TOOL}"
