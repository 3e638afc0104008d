"""Tensors as JSON: unknown is null (the reason stands in `missing`), NaN and infinities are words, never bare."""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Optional

from gdbext.model.missing import Missing, known
from gdbext.model.tensor import (
    RankTensors,
    TensorAgreement,
    TensorDiff,
    TensorHash,
    TensorInfo,
    TensorList,
    TensorMapInfo,
    TensorSaved,
    TensorStats,
    TensorValues,
)

Document = Dict[str, Any]


def number(value: Any) -> Any:
    """A number, bool or text as JSON has it; complex as {"re", "im"}; NaN, Infinity and -Infinity as text."""
    if value is None or isinstance(value, (Missing, bool)):
        return None if not isinstance(value, bool) else value
    if isinstance(value, complex):
        return {"re": number(value.real), "im": number(value.imag)}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain(value: Any) -> Any:
    found = known(value)
    return list(found) if isinstance(found, tuple) else found


def _place(value: Any) -> Optional[List[int]]:
    return None if value is None else list(value)


def _info(info: TensorInfo) -> Document:
    fields = ("dtype", "shape", "where", "address", "nbytes")
    missing = {field: getattr(info, field) for field in fields}
    return {
        "name": info.name,
        "kind": info.kind,
        "type": info.type_name,
        "dtype": _plain(info.dtype),
        "shape": _plain(info.shape),
        "strides": _plain(info.strides),
        "where": _plain(info.where),
        "address": f"{info.address:#x}" if isinstance(info.address, int) else None,
        "offset": info.offset,
        "owner": info.owner,
        "nbytes": _plain(info.nbytes),
        "unreadable": info.unreadable,
        "problems": list(info.problems),
        "notes": list(info.notes),
        "missing": {field: value.reason for field, value in missing.items() if isinstance(value, Missing)},
        "parts": [_info(part) for part in info.parts],
    }


def _values(values: TensorValues) -> Document:
    """`elements` is flat, in row-major order of `grid`: with `edge_items` above 0 only the ends of long dimensions."""
    return {
        "tensor": _info(values.info),
        "index": values.index,
        "shape": list(values.shape),
        "edge_items": values.edge_items,
        "grid": list(values.grid),
        "elements": [number(element) for element in values.elements],
        "read": values.read,
        "problem": values.problem,
    }


def _map(entries: TensorMapInfo) -> Document:
    return {
        "name": entries.name,
        "kind": entries.kind,
        "total": _plain(entries.total),
        "entries": [_info(entry) for entry in entries.entries],
        "problems": list(entries.problems),
    }


def _list(found: TensorList) -> Document:
    return {
        "place": found.place,
        "tensors": [_info(info) for info in found.tensors],
        "problems": list(found.problems),
    }


def _stats(stats: TensorStats) -> Document:
    histogram = stats.histogram
    return {
        "tensor": _info(stats.info),
        "index": stats.index,
        "count": stats.count,
        "total": stats.total,
        "nan": stats.nan,
        "positive_infinity": stats.positive_infinity,
        "negative_infinity": stats.negative_infinity,
        "zeros": stats.zeros,
        "subnormals": stats.subnormals,
        "minimum": number(stats.minimum),
        "maximum": number(stats.maximum),
        "mean": number(stats.mean),
        "std": number(stats.std),
        "absolute_maximum": number(stats.absolute_maximum),
        "absolute_maximum_at": _place(stats.absolute_maximum_at),
        "first_nan": _place(stats.first_nan),
        "histogram": None
        if histogram is None
        else {"low": number(histogram.low), "high": number(histogram.high), "counts": list(histogram.counts)},
        "seconds": stats.seconds,
        "computed_by": stats.computed_by,
        "problem": stats.problem,
    }


def _hash(found: TensorHash) -> Document:
    return {
        "tensor": _info(found.info),
        "index": found.index,
        "digest": found.digest,
        "count": found.count,
        "problem": found.problem,
    }


def _diff(diff: TensorDiff) -> Document:
    return {
        "left": _info(diff.left),
        "right": _info(diff.right),
        "index": diff.index,
        "same": diff.same,
        "total": diff.total,
        "compared": diff.compared,
        "differing": diff.differing,
        "first": _place(diff.first),
        "first_values": None if diff.first_values is None else [number(value) for value in diff.first_values],
        "max_absolute": number(diff.max_absolute),
        "max_absolute_at": _place(diff.max_absolute_at),
        "max_relative": number(diff.max_relative),
        "max_relative_at": _place(diff.max_relative_at),
        "nan_mismatches": diff.nan_mismatches,
        "rtol": diff.rtol,
        "atol": number(diff.atol),
        "problem": diff.problem,
    }


def _agreement(found: TensorAgreement) -> Document:
    compared = sum(len(group.ranks) for group in found.groups)
    same = None if compared < 2 or found.unread else True  # unknown: nothing was compared, or not with all
    return {
        "name": found.name,
        "index": found.index,
        "agree": False if len(found.groups) > 1 else same,
        "compared": compared if compared > 1 else 0,
        "groups": [
            {
                "ranks": list(group.ranks),
                "digest": group.digest,
                "tensor": _info(group.info),
                "differs": None if group.differs is None else _diff(group.differs),
            }
            for group in found.groups
        ],
        "unread": [{"rank": one.rank, "reason": one.reason} for one in found.unread],
    }


def _saved(saved: TensorSaved) -> Document:
    return {
        "tensor": _info(saved.info),
        "index": saved.index,
        "path": saved.path,
        "nbytes": saved.nbytes,
        "format": saved.format,
        "notes": list(saved.notes),
    }


def _ranks(answers: RankTensors) -> Document:
    return {
        "name": answers.name,
        "ranks": [
            {
                "rank": one.rank,
                "answer": None if isinstance(one.answer, Missing) else TENSOR_DOCUMENTS[type(one.answer)](one.answer),
                "problem": one.answer.reason if isinstance(one.answer, Missing) else None,
            }
            for one in answers.answers
        ],
    }


TENSOR_DOCUMENTS: Mapping[type, Callable[..., Document]] = {
    TensorInfo: _info,
    TensorValues: _values,
    TensorMapInfo: _map,
    TensorList: _list,
    TensorStats: _stats,
    TensorHash: _hash,
    TensorDiff: _diff,
    TensorAgreement: _agreement,
    TensorSaved: _saved,
    RankTensors: _ranks,
}
"""How each object of model/tensor.py becomes plain data."""
