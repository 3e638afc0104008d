"""One event of a trace, and the way between its JSON text and the object.

With msgspec an event is decoded in C and its arguments stay text until somebody asks; without it, and for text that
msgspec refuses (NaN, bytes that are no UTF-8, keys nobody knows), the standard library does the same, some five times
slower.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, List, Mapping, Optional, Sequence, cast

try:
    import msgspec
except ImportError:  # the extra `trace` is not installed
    msgspec = None  # type: ignore[assignment]

UNSET: Any = object() if msgspec is None else msgspec.UNSET
"""Of a key that an event does not have."""

NAMES = (
    "ph",
    "cat",
    "name",
    "pid",
    "tid",
    "ts",
    "dur",
    "id",
    "args",
    "bp",
    "s",
    "tts",
    "tdur",
    "cname",
    "id2",
    "scope",
)


class Event:
    """The keys of one event as attributes, `UNSET` where it has none. `rest`: keys that are none of `NAMES`."""

    __slots__ = (*NAMES, "rest")
    ph: str
    cat: Any
    name: Any
    pid: Any
    tid: Any
    ts: Any
    dur: Any
    id: Any
    args: Any
    bp: Any

    def __init__(self, fields: Mapping[str, Any]) -> None:
        for name in NAMES:
            setattr(self, name, fields.get(name, UNSET))
        if not isinstance(self.ph, str):
            self.ph = ""
        self.rest: Dict[str, Any] = {name: value for name, value in fields.items() if name not in NAMES}

    def fields(self) -> Dict[str, Any]:
        own = {name: getattr(self, name) for name in NAMES if getattr(self, name) is not UNSET}
        return {**own, **self.rest}


if msgspec is not None:
    _struct = msgspec.defstruct(
        "Event",
        [("ph", str, ""), *((name, Any if name != "args" else msgspec.Raw, UNSET) for name in NAMES[1:])],
        forbid_unknown_fields=True,
        omit_defaults=True,
        gc=False,
    )
    _decoder = msgspec.json.Decoder(List[_struct])  # type: ignore[valid-type]
    _encoder = msgspec.json.Encoder()


def decode(text: bytes) -> List[Event]:
    """The events of text that is a JSON array. Raises ValueError for any other."""
    if msgspec is not None:
        try:
            return cast(List[Event], _decoder.decode(text))
        except msgspec.MsgspecError:
            pass
    found = json.loads(text.decode("utf-8", "replace"), strict=False)
    if not isinstance(found, list):
        raise ValueError("no array")
    return [Event(one) for one in found if isinstance(one, dict)]


def encode(events: Sequence[Event]) -> bytes:
    """Their JSON text with commas between them. They come from one call of `decode`, or are all of ours."""
    if msgspec is not None and events and not isinstance(events[0], Event):
        return bytes(_encoder.encode(events)[1:-1])
    return b",".join(map(_text, events))


def _text(event: Event) -> bytes:
    return dumped(event.fields())


def dumped(value: Any) -> bytes:
    """JSON text that any reader takes: numbers that JSON does not have become null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(_finite_json_value(value), separators=(",", ":")).encode()


def _finite_json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite_json_value(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite_json_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def make_event(**fields: Any) -> Event:
    """An event of ours."""
    return Event(fields)


def arguments(event: Event) -> Dict[str, Any]:
    """The arguments of an event, {} where it has none or they are no object."""
    found = event.args
    if found is UNSET:
        return {}
    if isinstance(found, dict):
        return found
    try:
        found = json.loads(bytes(found).decode("utf-8", "replace"), strict=False)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def set_arguments(event: Event, found: Mapping[str, Any]) -> None:
    """Give an event other arguments."""
    event.args = dict(found) if type(event) is Event else msgspec.Raw(dumped(found))


def number(value: Any) -> Optional[float]:
    """A time as a number; None for what is none (NaN, a word, nothing). Some writers put numbers into quotes."""
    kind = type(value)
    if kind is float or kind is int:
        return cast(float, value) if -1e18 < value < 1e18 else None
    if kind is str:
        try:
            found = float(value)
        except ValueError:
            return None
        return found if -1e18 < found < 1e18 else None
    return None
