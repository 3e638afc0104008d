"""Documents of profiles: what they say, and how they were taken. Microseconds throughout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, NamedTuple, Optional, Sequence

from gdbext.model.json_documents.document_row import Rows, computed, nested, rows
from gdbext.model.profiling import (
    ProfileAnswer,
    ProfilePart,
    ProfileReport,
    ProfileServer,
    ProfileStatus,
    ProfileStatuses,
    WrittenTrace,
)
from gdbext.model.trace import (
    ChangedRow,
    Clock,
    Lateness,
    MergeReport,
    Shares,
    Skew,
    SummaryRow,
    TraceDiagnosis,
    TraceDifference,
    TraceFile,
    TraceSummary,
)


class JudgedFile(NamedTuple):
    """A profile and how its rank spent its time."""

    file: TraceFile
    shares: Optional[Shares]
    late: Optional[Lateness]


class CountedRow(NamedTuple):
    """An operator or kernel. The key that `by` of the answer names has what it stands under."""

    row: SummaryRow
    sort: Mapping[str, str]
    ranks: Mapping[str, RankTotal]


@dataclass(frozen=True)
class RankTotal:
    """What one rank spent on it."""

    total: float
    count: Optional[int]


class BeforeAfter(NamedTuple):
    """A number of two runs."""

    before: float
    after: float


def _nothing(file: TraceFile) -> None:
    """A profile names no engine."""


def _judged(found: TraceDiagnosis) -> Sequence[JudgedFile]:
    late = {one.process: one for one in found.lateness}
    return [JudgedFile(one, found.shares.get(one.index), late.get(one.index)) for one in found.files]


def _counted(found: TraceSummary) -> Sequence[CountedRow]:
    return [
        CountedRow(
            row,
            {found.by: row.sort},
            {str(at): RankTotal(total, row.counts.get(at)) for at, total in row.ranks.items()},
        )
        for row in found.rows
    ]


def _counts(row: ChangedRow) -> BeforeAfter:
    return BeforeAfter(*row.count)


def _means(row: ChangedRow) -> BeforeAfter:
    return BeforeAfter(*row.mean)


def _totals(row: ChangedRow) -> BeforeAfter:
    return BeforeAfter(*row.total)


def _folder(status: ProfileStatus) -> Optional[str]:
    return status.server.folder if status.server else None


ROWS: Mapping[type, Rows] = {
    TraceFile: rows(
        "index rank pid host",
        computed("engine", _nothing),
        "title=name state problems file=path labels world_size",
        "events clock",
    ),
    Clock: rows("method aligned with=part offset_us drift pairs residual_us residual_p99_us"),
    Skew: rows("collective=kind group? number bytes=size at arrivals skew transfer baseline sort last"),
    TraceDiagnosis: rows(
        computed("processes", _judged),
        nested(
            "verdict",
            "cause=verdict.cause confidence=verdict.confidence summary=verdict.summary late",
            "culprits=verdict.culprits victims=verdict.victims",
            nested("evidence", "text", of="verdict.evidence"),
            "remedies=verdict.remedies missing=verdict.missing",
        ),
        "window=window_us delay=delay_us excess=excess_us",
        nested("collectives", "**counts worst=skews"),
        "problems",
    ),
    JudgedFile: rows("**file shares late"),
    Lateness: rows("delay=delay_us share times waited=waited_us before? doing?"),
    MergeReport: rows(
        "output processes=files",
        nested("events", "in=events_in out=events_out left_out invalid added moved"),
        "lanes bytes=size problems",
    ),
    TraceSummary: rows("processes=files by window=total", computed("rows", _counted), "left_out problems"),
    CountedRow: rows(
        "name=row.name **sort count=row.count total=row.total min=row.least mean=row.mean max=row.most",
        "share=row.share ranks",
    ),
    TraceDifference: rows("before=before.files after=after.files rows"),
    ChangedRow: rows("name change", computed("count", _counts), computed("mean", _means), computed("total", _totals)),
    ProfileServer: rows("engine url pid recognised"),
    ProfileStatuses: rows("jobs"),
    ProfileStatus: rows("job engine ranks server", computed("folder", _folder), "ready problem? next=next_step"),
    WrittenTrace: rows("path of=key is_rank stage? bytes state"),
    ProfileAnswer: rows(
        "action server ranks? sent seconds requests failed_requests folder complete files notes next=next_step?"
    ),
    ProfileReport: rows("**answer profiles=parts"),
    ProfilePart: rows("stage? merged problem? **diagnosis"),
}
