"""Profiles as documents of `--json` and as CSV. Microseconds throughout."""

from __future__ import annotations

import csv
import io
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from gdbext.model.trace import Clock, MergeReport, Skew, TraceDiagnosis, TraceDifference, TraceFile, TraceSummary

Document = Dict[str, Any]


def _file(one: TraceFile) -> Document:
    """An entry of `processes`."""
    return {
        "index": one.index,
        "rank": one.rank,
        "pid": one.pid,
        "host": one.host,
        "engine": None,
        "title": one.name,
        "state": one.state,
        "problems": list(one.problems),
        "file": one.path,
        "labels": dict(one.labels),
        "world_size": one.world_size,
        "events": one.events,
        "clock": _clock(one.clock),
    }


def _clock(clock: Optional[Clock]) -> Optional[Document]:
    if clock is None:
        return None
    return {
        "method": clock.method,
        "aligned": clock.aligned,
        "with": clock.part,
        "offset_us": clock.offset_us,
        "drift": clock.drift,
        "pairs": clock.pairs,
        "residual_us": clock.residual_us,
        "residual_p99_us": clock.residual_p99_us,
    }


def _skew(one: Skew) -> Document:
    return {
        "collective": one.kind,
        "group": one.group or None,
        "number": one.number,
        "bytes": one.size,
        "at": one.at,
        "arrivals": {str(at): value for at, value in one.arrivals.items()},
        "skew": one.skew,
        "transfer": one.transfer,
        "baseline": one.baseline,
        "sort": one.sort,
        "last": one.last,
    }


def _diagnosis(found: TraceDiagnosis) -> Document:
    verdict = found.verdict
    rows = {one.process: one for one in found.lateness}
    return {
        "processes": [
            {
                **_file(one),
                "shares": None if one.index not in found.shares else vars(found.shares[one.index]),
                "late": None
                if one.index not in rows
                else {
                    "delay": rows[one.index].delay_us,
                    "share": rows[one.index].share,
                    "times": rows[one.index].times,
                    "waited": rows[one.index].waited_us,
                    "before": rows[one.index].before or None,
                    "doing": rows[one.index].doing or None,
                },
            }
            for one in found.files
        ],
        "verdict": {
            "cause": verdict.cause,
            "confidence": verdict.confidence,
            "summary": verdict.summary,
            "late": found.late,
            "culprits": list(verdict.culprits),
            "victims": list(verdict.victims),
            "evidence": [{"text": one.text} for one in verdict.evidence],
            "remedies": [{"action": one.action, "reason": one.reason} for one in verdict.remedies],
            "missing": list(verdict.missing),
        },
        "window": found.window_us,
        "delay": found.delay_us,
        "excess": found.excess_us,
        "collectives": {**found.counts, "worst": [_skew(one) for one in found.skews]},
        "problems": list(found.problems),
    }


def _merge(report: MergeReport) -> Document:
    return {
        "output": report.output,
        "processes": [_file(one) for one in report.files],
        "events": {
            "in": report.events_in,
            "out": report.events_out,
            "left_out": report.left_out,
            "invalid": report.invalid,
            "added": report.added,
            "moved": report.moved,
        },
        "lanes": report.lanes,
        "bytes": report.size,
        "problems": list(report.problems),
    }


def _summary(found: TraceSummary) -> Document:
    return {
        "processes": [_file(one) for one in found.files],
        "by": found.by,
        "window": found.total,
        "rows": [
            {
                "name": row.name,
                found.by: row.sort,
                "count": row.count,
                "total": row.total,
                "min": row.least,
                "mean": row.mean,
                "max": row.most,
                "share": row.share,
                "ranks": {str(at): {"total": row.ranks[at], "count": row.counts.get(at)} for at in row.ranks},
            }
            for row in found.rows
        ],
        "left_out": found.left_out,
        "problems": list(found.problems),
    }


def _difference(found: TraceDifference) -> Document:
    return {
        "before": [_file(one) for one in found.before.files],
        "after": [_file(one) for one in found.after.files],
        "rows": [
            {
                "name": row.name,
                "change": row.change,
                **{key: {"before": pair[0], "after": pair[1]} for key, pair in _pairs(row).items()},
            }
            for row in found.rows
        ],
    }


def _pairs(row: Any) -> Dict[str, Any]:
    return {"count": row.count, "mean": row.mean, "total": row.total}


TRACE_DOCUMENTS: Mapping[type, Callable[[Any], Document]] = {
    TraceDiagnosis: _diagnosis,
    MergeReport: _merge,
    TraceSummary: _summary,
    TraceDifference: _difference,
}


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
        head = [
            "name",
            "change",
            "count_before",
            "count_after",
            "mean_before_us",
            "mean_after_us",
            "total_before_us",
            "total_after_us",
        ]
        rows = [[one.name, one.change, *one.count, *one.mean, *one.total] for one in found.rows]
    elif isinstance(found, TraceDiagnosis):
        names = [one.name for one in found.files]
        head = [
            "collective",
            "group",
            "number",
            "bytes",
            "at_us",
            "skew_us",
            "transfer_us",
            "baseline_us",
            "sort",
            "last",
            *names,
        ]
        rows = [
            [
                one.kind,
                one.group,
                one.number,
                one.size,
                one.at,
                one.skew,
                one.transfer,
                one.baseline,
                one.sort,
                one.last,
            ]
            + [one.arrivals.get(at, "") for at in range(len(names))]
            for one in found.skews
        ]
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
