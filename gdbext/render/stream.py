"""CUDA streams and events."""

from __future__ import annotations

from typing import Any, Dict, List, Union

from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import StreamInfo
from gdbext.render.style import Style
from gdbext.render.text import clean, wrapped


def stream_lines(info: StreamInfo, style: Style) -> List[str]:
    """The handle, then what is known of it."""
    what = "event" if info.kind == "event" else f"{info.kind} stream"
    handle = f"handle unknown, {info.handle.reason}" if isinstance(info.handle, Missing) else f"{info.handle:#x}"
    lines = [style.paint(clean(f"{info.expression}: {what}, {handle} ({info.type_name})", style), "strong")]
    if info.pool_index is not None:
        lines.append(f"  torch's pool: index {info.pool_index}, priority {info.priority}")
    rows = (("device", info.device), ("state", info.state))
    lines += ["  " + clean(f"{title}: {_words(value)}", style) for title, value in rows]
    for note in info.notes:
        lines += wrapped(clean(note, style), style, indent="  ", first="  ")
    return lines


def _words(value: Union[Maybe[int], Maybe[str]]) -> str:
    return f"unknown, {value.reason}" if isinstance(value, Missing) else str(value)


def stream_document(info: StreamInfo) -> Dict[str, Any]:
    """The body of `--json`: unknown is null, with the reason under `missing`."""
    parts = {"handle": info.handle, "device": info.device, "state": info.state}
    return {
        "stream": {
            "expression": info.expression,
            "type": info.type_name,
            "kind": info.kind,
            **{name: None if isinstance(value, Missing) else value for name, value in parts.items()},
            "pool_index": info.pool_index,
            "priority": info.priority,
            "notes": list(info.notes),
            "missing": {name: value.reason for name, value in parts.items() if isinstance(value, Missing)},
        }
    }
