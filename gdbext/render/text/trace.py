"""Profiles for a person: the verdict for slowness, what was merged, and tables of kernels."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Sequence

from gdbext.model.text.ranges import counted
from gdbext.model.trace import MergeReport, Shares, TraceDiagnosis, TraceDifference, TraceFile, TraceSummary
from gdbext.render.cause_and_confidence import cause_and_confidence
from gdbext.render.safe_text import clean, shorten_name, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table

_ACCENTS = {"not-late": "good", "unknown": "doubt"}
_MOST = 12  # rows of ranks, and of collectives
_PROBLEMS = 12


def diagnosis_lines(found: TraceDiagnosis, style: Style) -> List[str]:
    """The answer first, then the ranks, then what to do."""
    verdict = found.verdict
    accent = _ACCENTS.get(verdict.cause, "bad")
    lines = [style.paint(line, accent) for line in wrapped(clean(verdict.summary, style), style, most=6)]
    lines.append(style.paint("  cause    ", "dim") + cause_and_confidence(verdict.cause, verdict.confidence))
    for title, indexes in (("culprit", verdict.culprits), ("victims", verdict.victims)):
        if indexes:
            names = ", ".join(_name(found.files, at) for at in indexes[:8]) + (", ..." if len(indexes) > 8 else "")
            lines.append(style.paint(f"  {title:<8} ", "dim") + clean(names, style))
    lines += ["", *_ranks(found, style)]
    overall = ", ".join(
        f"{counted(number, 'collective')} {_SORTS.get(sort, sort)}" for sort, number in found.counts.items() if number
    )
    if overall:
        lines += ["", *wrapped(f"Of all: {overall}.", style)]
    for title, numbered, texts in (
        ("Evidence", False, [one.text for one in verdict.evidence]),
        ("What to do", True, [f"{one.action}: {one.reason}" if one.reason else one.action for one in verdict.remedies]),
        ("Not determined", False, list(verdict.missing)),
    ):
        if texts:
            lines += ["", style.paint(title, "strong")]
            for number, text in enumerate(texts[:6], 1):
                lead = f"  {number}. " if numbered else "  - "
                lines += wrapped(clean(text, style), style, indent="     ", first=lead, most=3)
    return lines + _closing(found.files, found.problems, style)


_SORTS = {
    "skew": "dominated by skew",
    "transfer": "by transfer",
    "mixed": "by both",
    "inconclusive": "inconclusive",
}


def _ranks(found: TraceDiagnosis, style: Style) -> List[str]:
    columns = (
        Column("rank", least=6),
        Column("last", right=True),
        Column("late by", right=True),
        Column("share", right=True),
        Column("waited", right=True),
        Column("compute", right=True, keep=5),
        Column("exposed comm", right=True, keep=6),
        Column("idle", right=True, keep=4),
        Column("before its late collectives", least=20, keep=3),
    )
    rows = []
    for one in found.lateness[:_MOST]:
        shares = found.shares.get(one.process, Shares(0, 0, 0, 0))
        known = one.process in found.shares
        culprit = one.process in found.verdict.culprits
        rows.append(
            Row(
                (
                    clean(_name(found.files, one.process), style),
                    f"{one.times}",
                    duration_text(one.delay_us),
                    percent(one.share),
                    duration_text(one.waited_us),
                    percent(shares.compute) if known else "",
                    percent(shares.exposed) if known else "",
                    percent(shares.idle) if known else "",
                    clean(one.doing, style),
                ),
                "bad" if culprit else "",
            )
        )
    lines = table(columns, rows, style)
    if len(found.lateness) > _MOST:
        lines.append(f"and {len(found.lateness) - _MOST} ranks with a smaller delay")
    return lines


def duration_text(value: float) -> str:
    """Microseconds."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.2f} s"
    return f"{value / 1e3:.1f} ms" if abs(value) >= 1e3 else f"{value:.1f} us" if value % 1 else f"{value:.0f} us"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _closing(files: Sequence[TraceFile], problems: Sequence[str], style: Style) -> List[str]:
    """Clocks, and what was wrong with the files."""
    lines: List[str] = []
    clocks = [one for one in files if one.clock is not None]
    fitted = [one for one in clocks if one.clock and one.clock.method == "collectives"]
    residuals = [one.clock.residual_us for one in fitted if one.clock and one.clock.residual_us is not None]
    worst = [one.clock.residual_p99_us for one in fitted if one.clock and one.clock.residual_p99_us is not None]
    if len(clocks) > 1:
        aligned = sum(bool(one.clock and one.clock.aligned) for one in clocks)
        text = f"Clocks: {aligned} of {len(clocks)} files are on one clock"
        if residuals:
            median, most = duration_text(max(residuals)), duration_text(max(worst))
            text += f"; ends of common collectives are {median} apart (median), {most} (99 %)"
        lines += ["", *wrapped(text + ".", style)]
        loose = [one.name for one in clocks if one.clock and not one.clock.aligned]
        if loose:
            names = ", ".join(loose[:6]) + (", ..." if len(loose) > 6 else "")
            lines += wrapped(f"Not aligned, times unchanged: {clean(names, style)}.", style)
    texts = [*problems, *_of_files(files)]
    if texts:
        lines += ["", style.paint("Problems", "strong")]
        for text in texts[:_PROBLEMS]:
            lines += wrapped(clean(text, style), style, indent="    ", first="  - ", most=3)
        if len(texts) > _PROBLEMS:
            lines.append(f"  and {len(texts) - _PROBLEMS} more (--json has all)")
    return lines


def merge_lines(report: MergeReport, style: Style) -> List[str]:
    """What was written."""
    head = (
        f"{clean(report.output, style)}: {counted(report.events_out, 'event')} of {counted(len(report.files), 'file')}"
    )
    lines = [style.paint(head, "strong") + f", {report.size / 1e6:.1f} MB"]
    rest = [f"{report.events_in:,} in, {report.events_out:,} out"]
    if report.left_out:
        rest.append(f"{report.left_out:,} left out as asked")
    if report.invalid:
        rest.append(f"{report.invalid:,} without a time")
    rest.append(f"{report.added:,} names added")
    if report.moved:
        rest.append(f"{report.moved:,} overlapping slices in {counted(report.lanes, 'lane')} of their own")
    lines += wrapped("; ".join(rest) + ".", style, indent="  ", first="  ")
    for one in report.files[:16]:
        clock = one.clock
        if clock is not None and clock.method == "collectives":
            how = f"shifted by {duration_text(round(clock.offset_us))}"
            how += f", drift {1e6 * clock.drift:.1f} us a second" if clock.drift else ""
            how += f", {counted(clock.pairs, 'common end')}"
            how += f", {duration_text(clock.residual_us)} apart" if clock.residual_us is not None else ""
        else:
            how = {
                "shared": "on the clock of the first",
                "base time": "not aligned: by the start its profiler wrote",
            }.get(clock.method if clock else "", "not aligned, times unchanged")
        lines.append(f"  {clean(one.name, style):<12} {one.events:>10,} events, {how}")
    return lines + _closing((), [*report.problems, *_of_files(report.files)], style)


def _of_files(files: Sequence[TraceFile]) -> List[str]:
    return [f"{one.path.rpartition('/')[2]}: {text}" for one in files for text in one.problems]


def summary_lines(summary: TraceSummary, style: Style) -> List[str]:
    """One row a kernel or operator."""
    columns = (
        Column("name", least=20, cut=shorten_name),
        Column(summary.by, keep=5),
        Column("count", right=True),
        Column("total", right=True),
        Column("min", right=True, keep=3),
        Column("mean", right=True),
        Column("max", right=True, keep=4),
        Column("share", right=True),
        Column("most, least on a rank", right=True, keep=2),
    )
    rows = [
        Row(
            (
                clean(row.name, style),
                clean(row.sort, style),
                f"{row.count:,}",
                duration_text(row.total),
                duration_text(row.least),
                duration_text(row.mean),
                duration_text(row.most),
                percent(row.share),
                _spread(row.ranks, summary.files),
            ),
            "doubt" if _uneven(row.ranks, summary.files) else "",
        )
        for row in summary.rows
    ]
    lines = table(columns, rows, style)
    if summary.left_out:
        lines.append(f"and {summary.left_out:,} more rows (--most {len(summary.rows) + summary.left_out})")
    return lines + _closing(summary.files, summary.problems, style)


def _name(files: Sequence[TraceFile], at: int) -> str:
    """A rank, as its file is called."""
    return files[at].name if at < len(files) else f"file {at}"


def _uneven(ranks: Mapping[int, float], files: Sequence[TraceFile]) -> bool:
    return len(files) > 1 and (len(ranks) < len(files) or max(ranks.values()) > 1.2 * min(ranks.values()))


def _spread(ranks: Mapping[int, float], files: Sequence[TraceFile]) -> str:
    """What differs between ranks."""
    if len(files) < 2 or not ranks:
        return ""
    most = max(ranks, key=lambda at: ranks[at])
    if len(ranks) < len(files):
        return f"{duration_text(ranks[most])} ({_name(files, most)}), none on {len(files) - len(ranks)}"
    least = min(ranks, key=lambda at: ranks[at])
    return f"{duration_text(ranks[most])} ({_name(files, most)}), {duration_text(ranks[least])} ({_name(files, least)})"


def difference_lines(found: TraceDifference, style: Style) -> List[str]:
    """New, gone, slower, faster: what changed most first."""
    if not found.rows:
        return ["No kernel or operator is new, gone, or a tenth slower or faster."]
    columns = (
        Column("name", least=20, cut=shorten_name),
        Column("change"),
        Column("count before", right=True, keep=4),
        Column("after", right=True, keep=4),
        Column("mean before", right=True),
        Column("after", right=True),
        Column("total a rank before", right=True),
        Column("after", right=True),
    )
    rows = [
        Row(
            (
                clean(row.name, style),
                row.change,
                f"{row.count[0]:,}",
                f"{row.count[1]:,}",
                duration_text(row.mean[0]),
                duration_text(row.mean[1]),
                duration_text(row.total[0]),
                duration_text(row.total[1]),
            ),
            {"slower": "bad", "new": "doubt", "faster": "good"}.get(row.change, ""),
        )
        for row in found.rows
    ]
    return table(columns, rows, style) + _closing((), _of_files([*found.before.files, *found.after.files]), style)


RENDERERS: Mapping[type, Callable[[Any, Style], List[str]]] = {
    TraceDiagnosis: diagnosis_lines,
    MergeReport: merge_lines,
    TraceSummary: summary_lines,
    TraceDifference: difference_lines,
}
