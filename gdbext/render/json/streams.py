"""CUDA streams and events for `--json`: unknown is null, with the reason under `missing`."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from gdbext.model.missing import Maybe, Missing
from gdbext.model.stream import Asked, DeviceKernel, KnownStream, RankStreams, StreamInfo, StreamTable, StreamWait


def stream_document(info: StreamInfo) -> Dict[str, Any]:
    """The body of `--json`: unknown is null, with the reason under `missing`."""
    parts = {"handle": info.handle, "device": info.device, "state": info.state}
    return {
        "stream": {
            "expression": info.expression,
            "type": info.type_name,
            "kind": info.kind,
            **_known(parts),
            "pool_index": info.pool_index,
            "priority": info.priority,
            "driver": None if info.asked is None else _asked_document(info.asked),
            "notes": list(info.notes),
            "missing": _missing(parts),
        }
    }


def stream_table_document(answer: StreamTable) -> Dict[str, Any]:
    """The body of `--json` of the whole table."""
    return {"ranks": [_rank_document(rank) for rank in answer.ranks], "notes": list(answer.notes)}


def _rank_document(rank: RankStreams) -> Dict[str, Any]:
    kernels = None if isinstance(rank.kernels, Missing) else [_kernel_document(one) for one in rank.kernels]
    return {
        "pid": rank.pid,
        "rank": rank.rank,
        "streams": [_known_document(one) for one in rank.streams],
        "events": [_known_document(one) for one in rank.events],
        "waits": [_wait_document(one) for one in rank.waits],
        "kernels": kernels,
        "missing": {"kernels": rank.kernels.reason} if isinstance(rank.kernels, Missing) else {},
        "problems": list(rank.problems),
    }


def _known_document(one: KnownStream) -> Dict[str, Any]:
    parts = {"handle": one.handle, "device": one.device}
    driver = None if isinstance(one.asked, Missing) else _asked_document(one.asked)
    missing = _missing({**parts, "driver": one.asked} if isinstance(one.asked, Missing) else parts)
    return {
        "kind": one.kind,
        **_known(parts),
        "pool_index": one.pool_index,
        "priority": one.priority,
        "driver": driver,
        "uses": [vars(use) for use in one.uses],
        "more_uses": one.more_uses,
        "kernels": list(one.kernels),
        "notes": list(one.notes),
        "missing": missing,
    }


def _wait_document(one: StreamWait) -> Dict[str, Any]:
    parts: Dict[str, Maybe[int]] = {"handle": one.handle}
    return {**vars(one), **_known(parts), "missing": _missing(parts)}


def _kernel_document(one: DeviceKernel) -> Dict[str, Any]:
    return dict(vars(one))


def _asked_document(asked: Asked) -> Dict[str, Any]:
    parts = {name: getattr(asked, name) for name in ("state", "blocking", "priority", "id", "device")}
    error = None if asked.error is None else {"number": asked.error.number, "name": asked.error.name}
    return {**_known(parts), "error": error, "missing": _missing(parts)}


def _known(parts: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: None if isinstance(value, Missing) else value for name, value in parts.items()}


def _missing(parts: Mapping[str, Any]) -> Dict[str, str]:
    return {name: value.reason for name, value in parts.items() if isinstance(value, Missing)}


STREAM_DOCUMENTS: Mapping[type, Callable[[Any], Dict[str, Any]]] = {
    StreamInfo: stream_document,
    StreamTable: stream_table_document,
}
