"""Statistics of a tensor for a person, with a histogram; numbers and shares in words."""

from __future__ import annotations

from typing import List, Sequence, Tuple, Union

from gdbext.model.missing import Missing
from gdbext.model.tensor import Element, Histogram, TensorStats
from gdbext.model.text.ranges import counted
from gdbext.render.style import Style
from gdbext.render.text.tensors.tensor import dimensions, headline, problem_lines

BAR = 24  # columns of the longest bar of a histogram
_EIGHTHS = " ▏▎▍▌▋▊▉"


def number_text(value: Union[complex, Element, None]) -> str:
    """A number in at most six digits, integers in full; `-` for none."""
    if value is None:
        return "-"
    if isinstance(value, Missing):
        return "?"
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 1_000_000 else str(value)
    if isinstance(value, complex):
        return f"{value.real:.6g}{value.imag:+.6g}j"
    return f"{value:.6g}"


def percent(count: int, total: int) -> str:
    """` (12.5 %)`; nothing for none."""
    if not count or not total:
        return ""
    share = 100 * count / total
    return " (all)" if count == total else f" ({share:.1f} %)" if share >= 0.05 else " (<0.1 %)"


def stats_lines(stats: TensorStats, style: Style) -> List[str]:
    """What a person asks first: is there NaN, what is the range, how is it distributed."""
    lines = [headline(stats.info, style, stats.index), *problem_lines(stats.problem, style)]
    lines.append(
        f"  {counted(stats.count, 'value')}: min {number_text(stats.minimum)}  max {number_text(stats.maximum)}"
        f"  mean {number_text(stats.mean)}  std {number_text(stats.std)}"
    )
    if stats.absolute_maximum_at:
        place = dimensions(stats.absolute_maximum_at)
        lines.append(f"  largest magnitude {number_text(stats.absolute_maximum)} at {place}")
    counts: List[Tuple[str, int, str]] = [
        ("NaN", stats.nan, "bad"),
        ("+Inf", stats.positive_infinity, "bad"),
        ("-Inf", stats.negative_infinity, "bad"),
        ("zeros", stats.zeros, ""),
        ("subnormals", stats.subnormals, ""),
    ]
    words = [
        style.paint(f"{name} {n:,}{percent(n, stats.count)}", accent if n else "dim") for name, n, accent in counts
    ]
    lines.append("  " + "  ".join(words))
    if stats.first_nan is not None and stats.first_nan:
        lines.append(f"  first NaN at {dimensions(stats.first_nan)}")
    if stats.histogram is not None:
        lines += _histogram_lines(stats.histogram, style)
    return lines


def _histogram_lines(histogram: Histogram, style: Style) -> List[str]:
    step = (histogram.high - histogram.low) / len(histogram.counts)
    sides = _sides([histogram.low + number * step for number in range(len(histogram.counts) + 1)])
    if not sides:
        return ["  no histogram: the values are closer together than double precision tells apart"]
    room, count_room = max(map(len, sides)), max(len(f"{count:,}") for count in histogram.counts)
    most = max(histogram.counts) or 1
    lines = []
    for low, high, count in zip(sides, sides[1:], histogram.counts):
        line = f"  {low:>{room}} .. {high:>{room}}  {count:>{count_room},}  {_bar(count, most, style)}"
        lines.append(line.rstrip())
    return lines


def _sides(borders: Sequence[float]) -> List[str]:
    """The borders in at least four digits, and in as many as tell them apart; nothing when none do."""
    for digits in range(4, 18):
        sides = [f"{border:.{digits}g}" for border in borders]
        if len(set(sides)) == len(borders):
            whole = digits > 4 and all(border == int(border) for border in borders)
            return [f"{border:.0f}" for border in borders] if whole else sides
    return []


def _bar(count: int, most: int, style: Style) -> str:
    """Something is always seen of what is not zero."""
    if not style.unicode:
        return "#" * max(round(BAR * count / most), 1 if count else 0)
    eighths = max(round(8 * BAR * count / most), 1 if count else 0)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
