"""Model objects to JSON and back. One file format for `--save`, `--samples` and bundles."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping as AbstractMapping
from typing import Any, Dict, TypeVar, Union, get_type_hints

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


@functools.lru_cache(maxsize=None)
def _hints(cls: type) -> Dict[str, Any]:
    return get_type_hints(cls)


def decode(kind: Any, data: Any) -> Any:
    """The inverse of `encode` for the type `kind`. Raises `ValueError` on data of another shape."""
    if isinstance(data, dict) and set(data) == {"missing"}:
        return Missing(str(data["missing"]))
    if dataclasses.is_dataclass(kind):
        if not isinstance(data, dict):
            raise ValueError(f"{getattr(kind, '__name__', kind)}: expected an object")
        hints = _hints(kind)  # type: ignore[arg-type]
        known = {name: decode(hints[name], item) for name, item in data.items() if name in hints}
        try:
            return kind(**known)  # type: ignore[operator]
        except TypeError as error:
            raise ValueError(str(error)) from None
    origin = getattr(kind, "__origin__", None)
    arguments: Any = getattr(kind, "__args__", ())
    if origin is Union:
        return _decode_union(arguments, data)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError("expected a list")
        return tuple(decode(arguments[0], item) for item in data)
    if origin is not None and isinstance(origin, type) and issubclass(origin, AbstractMapping):
        if not isinstance(data, dict):
            raise ValueError("expected an object")
        return {key: decode(arguments[1], item) for key, item in data.items()}
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type) and not isinstance(data, kind):
        raise ValueError(f"expected {kind.__name__}, got {type(data).__name__}")
    return data


def _decode_union(choices: Any, data: Any) -> Any:
    if data is None:
        return None
    for choice in choices:
        if choice is type(None) or choice is Missing:
            continue
        try:
            return decode(choice, data)
        except ValueError:
            continue
    raise ValueError(f"unexpected {type(data).__name__}")


def dump_snapshot(snapshot: JobSnapshot) -> str:
    """The text of a snapshot file."""
    document = {"schema": SCHEMA, "tool": f"gdbext {__version__}", "snapshot": encode(snapshot)}
    return json.dumps(document, ensure_ascii=False)


def load_snapshot(text: str) -> JobSnapshot:
    """Read what `dump_snapshot` wrote. Raises `GdbextError` when it is something else."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise GdbextError(f"snapshot has schema {document['schema']}, this gdbext reads {SCHEMA}")
        snapshot: JobSnapshot = decode(JobSnapshot, document["snapshot"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise GdbextError(f"not a gdbext snapshot ({error})") from None
    return snapshot
