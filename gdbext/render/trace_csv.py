"""Rows of answers about profiles as CSV, for spreadsheets. Microseconds throughout."""

from __future__ import annotations

import csv
import io
from operator import attrgetter
from typing import Any, List, Sequence

from gdbext.model.trace import TraceDiagnosis, TraceDifference, TraceSummary

_DIFFERENCE = ["name", "change", "count_before", "count_after", "mean_before_us", "mean_after_us"]
_DIFFERENCE += ["total_before_us", "total_after_us"]
_SKEW = ["collective", "group", "number", "bytes", "at_us", "skew_us", "transfer_us", "baseline_us", "sort", "last"]
_SKEW_CELLS = attrgetter("kind", "group", "number", "size", "at", "skew", "transfer", "baseline", "sort", "last")


def csv_of(found: object) -> str:
    """The rows of an answer as CSV, a header first. Raises `TypeError` for one without rows."""
    if isinstance(found, TraceSummary):
        names = [one.name for one in found.files]
        head = ["name", found.by, "count", "total_us", "min_us", "mean_us", "max_us", "share", *names]
        rows = [
            [one.name, one.sort, one.count, one.total, one.least, one.mean, one.most, one.share]
            + [one.ranks.get(at, 0.0) for at in range(len(names))]
            for one in found.rows
        ]
    elif isinstance(found, TraceDifference):
        head = _DIFFERENCE
        rows = [[one.name, one.change, *one.count, *one.mean, *one.total] for one in found.rows]
    elif isinstance(found, TraceDiagnosis):
        names = [one.name for one in found.files]
        head = [*_SKEW, *names]
        rows = [[*_SKEW_CELLS(one), *(one.arrivals.get(at, "") for at in range(len(names)))] for one in found.skews]
    else:
        raise TypeError(f"{type(found).__name__} has no rows")
    return _csv([head, *rows])


def _csv(rows: Sequence[List[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_safe(cell) for cell in row] for row in rows)
    return text.getvalue().rstrip("\n")


def _safe(cell: Any) -> Any:
    """A name that a spreadsheet would take for a formula is none."""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@" else cell
