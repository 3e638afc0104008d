"""Model objects to JSON and back. One file format for `--save`, `--samples` and bundles."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import json
import sys
from collections.abc import Mapping as AbstractMapping
from typing import Any, Callable, Dict, Iterator, TypeVar, Union, get_type_hints

from gdbext import __version__
from gdbext.model.errors import GdbextError
from gdbext.model.job import SCHEMA, JobSnapshot
from gdbext.model.missing import Missing

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Plain JSON data of a model object; fields at their default are left out to keep snapshots small."""
    if isinstance(value, Missing):
        return {"missing": value.reason}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: encode(got) for name, got, default in _fields_of(value) if got != default}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, AbstractMapping):
        return {str(key): encode(item) for key, item in value.items()}
    return value


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
    """The inverse of `encode` for the type `kind`. Raises `ValueError` on data of another shape."""
    return _decoder(kind)(data)


_Decoder = Callable[[Any], Any]


@functools.lru_cache(maxsize=None)
def _decoder(kind: Any) -> _Decoder:
    """How values of one type are read. Made once a type: a job of a thousand ranks has a million frames."""
    plain = _plain_decoder(kind)

    def read(data: Any) -> Any:
        if type(data) is dict and len(data) == 1 and "missing" in data:
            return Missing(str(data["missing"]))
        return plain(data)

    return read


def _plain_decoder(kind: Any) -> _Decoder:
    if dataclasses.is_dataclass(kind):
        return _object_decoder(kind)
    origin = getattr(kind, "__origin__", None)
    arguments: Any = getattr(kind, "__args__", ())
    if origin is Union:
        return _union_decoder(arguments)
    if origin is tuple:
        return _tuple_decoder(arguments[0])
    if origin is not None and isinstance(origin, type) and issubclass(origin, AbstractMapping):
        return _mapping_decoder(arguments[1])
    return _scalar_decoder(kind)


def _object_decoder(kind: Any) -> _Decoder:
    fields: Dict[str, _Decoder] = {}

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError(f"{getattr(kind, '__name__', kind)}: expected an object")
        if not fields:  # only now: a type may hold itself
            fields.update((name, _decoder(hint)) for name, hint in get_type_hints(kind).items())
        try:
            return kind(**{name: fields[name](item) for name, item in data.items() if name in fields})
        except TypeError as error:
            raise ValueError(str(error)) from None

    return read


def _tuple_decoder(item: Any) -> _Decoder:
    one = _decoder(item)

    def read(data: Any) -> Any:
        if not isinstance(data, list):
            raise ValueError("expected a list")
        return tuple(map(one, data))

    return read


def _mapping_decoder(item: Any) -> _Decoder:
    one = _decoder(item)

    def read(data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError("expected an object")
        return {key: one(value) for key, value in data.items()}

    return read


def _scalar_decoder(kind: Any) -> _Decoder:
    def read(data: Any) -> Any:
        if kind is str and type(data) is str:
            return sys.intern(data)  # the names of functions and libraries come again and again
        if kind is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if isinstance(kind, type) and not isinstance(data, kind):
            raise ValueError(f"expected {kind.__name__}, got {type(data).__name__}")
        return data

    return read


def _union_decoder(choices: Any) -> _Decoder:
    ways = [_decoder(choice) for choice in choices if choice is not type(None) and choice is not Missing]

    def read(data: Any) -> Any:
        if data is None:
            return None
        for way in ways:
            try:
                return way(data)
            except ValueError:
                continue
        raise ValueError(f"unexpected {type(data).__name__}")

    return read


def dump_snapshot(snapshot: JobSnapshot) -> str:
    """The text of a snapshot file."""
    document = {"schema": SCHEMA, "tool": f"gdbext {__version__}", "snapshot": encode(snapshot)}
    return json.dumps(document, ensure_ascii=False)


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


def load_snapshot(text: str) -> JobSnapshot:
    """Read what `dump_snapshot` wrote. Raises `GdbextError` when it is something else."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise GdbextError(f"snapshot has schema {document['schema']}, this gdbext reads {SCHEMA}")
        with _without_collector():
            snapshot: JobSnapshot = decode(JobSnapshot, document["snapshot"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise GdbextError(f"not a gdbext snapshot ({error})", "give a file that --save wrote") from None
    return snapshot
