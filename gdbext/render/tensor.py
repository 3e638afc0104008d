"""Tensors for a person: one line that says what it is, values, statistics with a histogram, who agrees with whom."""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from gdbext.model.missing import Missing
from gdbext.model.tensor import (
    Element,
    HashGroup,
    Histogram,
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
from gdbext.render.arrays import array_lines
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text import clean, counted, rank_set, shorten_name, wrapped

BAR = 24  # columns of the longest bar of a histogram
LONGEST_LIST = 12  # dimensions that are written out
SHORT_REASONS = 90  # characters of what is wrong that still stand in the one line of a broken tensor

_EIGHTHS = " ▏▎▍▌▋▊▉"

_COLUMNS = (
    Column("tensor", least=12, keep=9, cut=shorten_name, accent="strong"),
    Column("dtype", keep=8),
    Column("shape", least=8, keep=8),
    Column("strides", least=8, keep=3),
    Column("where", least=6, keep=7),
    Column("address", keep=4),
    Column("size", right=True, keep=5),
    Column("note", least=10, keep=2),
)


def size_text(nbytes: int) -> str:
    """`17 B`, `32 KiB`, `1.5 GiB`."""
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" and size < 10 and size % 1 else f"{size:.0f} {unit}"


def dimensions(numbers: Union[Sequence[int], Missing, None]) -> str:
    """`[4, 4096]`, the middle left out when there are very many; "" for None, `[?]` when unknown."""
    if numbers is None:
        return ""
    if isinstance(numbers, Missing):
        return "[?]"
    if len(numbers) > LONGEST_LIST:
        half = LONGEST_LIST // 2
        shown = [*map(str, numbers[:half]), "...", *map(str, numbers[-half:])]
    else:
        shown = [*map(str, numbers)]
    return f"[{', '.join(shown)}]"


def _word(value: object, style: Style) -> str:
    return "?" if isinstance(value, Missing) else clean(str(value), style)


def _nothing(info: TensorInfo) -> str:
    """The one reason for which nothing is known of what should be a tensor: undefined, a null pointer, ..."""
    facts = (info.dtype, info.shape, info.address)
    reasons = {fact.reason if isinstance(fact, Missing) else "" for fact in facts}
    return reasons.pop() if len(reasons) == 1 else ""


def summary(info: TensorInfo, style: Style) -> str:
    """One line without name: `fp16 [4, 4096] strides [1, 4] on cpu at 0x7f.. (32 KiB), view of w`; or why not."""
    reason = _nothing(info)
    if reason:
        return clean(reason, style)
    strides = f" strides {dimensions(info.strides)}" if info.strides is not None else ""
    parts = [f"{_word(info.dtype, style)} {dimensions(info.shape)}{strides}"]
    if info.where == "file":
        parts.append("in a file")
    elif info.where:
        parts.append(f"on {_word(info.where, style)}")
    if isinstance(info.address, int) and info.where != "file":
        parts.append(f"at {info.address:#x}" if info.address else "at nullptr")
    if isinstance(info.nbytes, int):
        parts.append(f"({size_text(info.nbytes)})")
    line = " ".join(parts)
    return f"{line}, {clean(info.owner, style)}" if info.owner else line


def _headline(info: TensorInfo, style: Style, index: str = "") -> str:
    name = clean(info.name, style) + clean(index, style)
    return f"{style.paint(name, 'strong')}: {summary(info, style)}"


def _idle(info: TensorInfo, field: str) -> bool:
    """Whether nobody asks for a field: where memory lies that is not there, the memory of what has no elements."""
    if field == "where":
        return isinstance(info.address, Missing)
    empty = info.where == "meta" or (not isinstance(info.shape, Missing) and 0 in info.shape)
    return field == "address" and empty


def _problems(info: TensorInfo) -> List[str]:
    """What is wrong, and what is unknown and why."""
    said = _nothing(info)
    problems = [problem for problem in info.problems if problem != said]
    if info.unreadable:
        problems.append(info.unreadable)
    unknown: Dict[str, List[str]] = {}
    for field in ("dtype", "shape", "where", "address"):
        value = getattr(info, field)
        if isinstance(value, Missing) and value.reason != said and not _idle(info, field):
            unknown.setdefault(value.reason, []).append(field)
    return problems + [f"{' and '.join(fields)} unknown: {reason}" for reason, fields in unknown.items()]


def _remarks(info: TensorInfo, style: Style) -> List[str]:
    """Its problems, and what is worth knowing."""
    lines = [line for text in _problems(info) for line in _flagged(text, style)]
    for note in info.notes:
        lines += wrapped(clean(note, style), style, indent="  ")
    return lines


def _flagged(text: Optional[str], style: Style) -> List[str]:
    """A problem: lines that stand out; nothing for None."""
    if not text:
        return []
    return [style.paint(line, "doubt") for line in wrapped(clean(text, style), style, indent="    ", first="  ! ")]


def info_lines(info: TensorInfo, style: Style) -> List[str]:
    """Everything that is known of a tensor without its values."""
    lines = [_headline(info, style)]
    kind = info.kind if info.type_name in ("", info.kind) else f"{info.kind}, as {info.type_name}"
    short = clean(info.kind or info.type_name, style)
    problems = _problems(info)
    more = info.parts or info.notes or info.offset
    if problems and not more and sum(map(len, problems)) <= SHORT_REASONS:
        reason = style.paint("; ".join(clean(problem, style) for problem in problems), "doubt")
        return [f"{lines[0]}: {reason} ({short})" if short else f"{lines[0]}: {reason}"]
    if _nothing(info) and short:
        lines[0] += f" ({short})"
    elif short:
        lines += wrapped(clean(kind.lstrip(", "), style), style, indent="  ")
    if info.offset:
        lines.append(f"  starts {counted(info.offset, 'element')} into its storage")
    lines += _remarks(info, style)
    if info.parts:
        lines += ["  parts:", *("  " + line for line in _info_table(info.parts, style))]
    return lines


def _info_table(infos: Sequence[TensorInfo], style: Style) -> List[str]:
    return table(_COLUMNS, [_info_row(info, style) for info in infos], style)


def _info_row(info: TensorInfo, style: Style) -> Row:
    facts = [getattr(info, field) for field in ("dtype", "shape", "address") if not _idle(info, field)]
    unknown = [fact.reason for fact in facts if isinstance(fact, Missing)]
    remark = [*info.problems, *([info.unreadable] if info.unreadable else []), *unknown, *info.notes]
    cells = (
        clean(info.name, style),
        _word(info.dtype, style),
        dimensions(info.shape),
        dimensions(info.strides),
        _word(info.where, style),
        f"{info.address:#x}" if isinstance(info.address, int) else "",
        size_text(info.nbytes) if isinstance(info.nbytes, int) else "",
        clean(remark[0], style) if remark else "",
    )
    return Row(cells, "doubt" if info.problems or unknown else "")


def values_lines(values: TensorValues, style: Style) -> List[str]:
    """The summary line, then the elements as numpy prints them."""
    selection = f" -> {dimensions(values.shape)}" if values.index else ""
    lines = [_headline(values.info, style, values.index) + selection]
    lines += _remarks(values.info, style)
    lines += array_lines(values, max(20, style.width))
    return lines + _flagged(values.problem, style)


def map_lines(entries: TensorMapInfo, style: Style) -> List[str]:
    """One row per entry."""
    total = entries.total if isinstance(entries.total, int) else len(entries.entries)
    lines = [f"{style.paint(clean(entries.name, style), 'strong')}: {clean(entries.kind, style)}, "
             f"{counted(total, 'entry', 'entries')}"]  # fmt: skip
    lines += _info_table(entries.entries, style)
    if total > len(entries.entries):
        lines.append(f"  {total - len(entries.entries):,} more are not shown")
    return lines + [line for problem in entries.problems for line in _flagged(problem, style)]


def list_lines(found: TensorList, style: Style) -> List[str]:
    """Every tensor of a frame."""
    lines = [f"{counted(len(found.tensors), 'tensor')} in {clean(found.place, style)}"]
    lines += _info_table(found.tensors, style)
    return lines + [line for problem in found.problems for line in _flagged(problem, style)]


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


def _percent(count: int, total: int) -> str:
    if not count or not total:
        return ""
    share = 100 * count / total
    return " (all)" if count == total else f" ({share:.1f} %)" if share >= 0.05 else " (<0.1 %)"


def stats_lines(stats: TensorStats, style: Style) -> List[str]:
    """What a person asks first: is there NaN, what is the range, how is it distributed."""
    lines = [_headline(stats.info, style, stats.index), *_flagged(stats.problem, style)]
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
        style.paint(f"{name} {n:,}{_percent(n, stats.count)}", accent if n else "dim") for name, n, accent in counts
    ]
    lines.append("  " + "  ".join(words))
    if stats.first_nan is not None and stats.first_nan:
        lines.append(f"  first NaN at {dimensions(stats.first_nan)}")
    if stats.histogram is not None:
        lines += _histogram_lines(stats.histogram, style)
    return lines


def _histogram_lines(histogram: Histogram, style: Style) -> List[str]:
    step = (histogram.high - histogram.low) / len(histogram.counts)
    sides = [f"{histogram.low + number * step:.4g}" for number in range(len(histogram.counts) + 1)]
    room, count_room = max(map(len, sides)), max(len(f"{count:,}") for count in histogram.counts)
    most = max(histogram.counts) or 1
    lines = []
    for low, high, count in zip(sides, sides[1:], histogram.counts):
        line = f"  {low:>{room}} .. {high:>{room}}  {count:>{count_room},}  {_bar(count, most, style)}"
        lines.append(line.rstrip())
    return lines


def _bar(count: int, most: int, style: Style) -> str:
    """Something is always seen of what is not zero."""
    if not style.unicode:
        return "#" * max(round(BAR * count / most), 1 if count else 0)
    eighths = max(round(8 * BAR * count / most), 1 if count else 0)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def hash_lines(found: TensorHash, style: Style) -> List[str]:
    """The digest, and what it is of."""
    lines = [_headline(found.info, style, found.index)]
    if found.digest:
        lines.append(f"  {found.digest}  over {counted(found.count, 'value')}")
    return lines + _flagged(found.problem, style)


def diff_lines(diff: TensorDiff, style: Style) -> List[str]:
    """Whether two tensors are the same, else where they part and by how much."""
    lines = [_headline(diff.left, style, diff.index), _headline(diff.right, style, diff.index)]
    lines += ["  " + line for line in _difference(diff, style)]
    return lines + _flagged(diff.problem, style)


def _difference(diff: TensorDiff, style: Style) -> List[str]:
    """The finding alone."""
    tolerance = f" within rtol {diff.rtol:g}, atol {diff.atol:g}" if diff.rtol or diff.atol else ""
    if not diff.differing:
        if not diff.compared and diff.problem:
            return []
        verdict = f"same{tolerance}: {counted(diff.compared, 'value')}"
        lines = [style.paint(verdict, "" if diff.problem else "good")]
    else:
        share = _percent(diff.differing, diff.compared)
        verb = "differs" if diff.compared == 1 else "differ"
        verdict = f"{diff.differing:,} of {counted(diff.compared, 'value')}{share} {verb}"
        lines = [style.paint(verdict, "bad") + (f", not{tolerance}" if tolerance else "")]
        if diff.first is not None:
            pair = " and ".join(_told_apart(*diff.first_values)) if diff.first_values else ""
            lines.append(f"first at {dimensions(diff.first)}" + (f": {pair}" if pair else ""))
    if diff.max_absolute is not None and (diff.differing or diff.max_absolute):
        line = f"largest difference {number_text(diff.max_absolute)} at {dimensions(diff.max_absolute_at)}"
        if diff.max_relative is not None:
            line += f", relative {number_text(diff.max_relative)} at {dimensions(diff.max_relative_at)}"
        lines.append(line)
    if diff.nan_mismatches:
        lines.append(f"{counted(diff.nan_mismatches, 'value')} NaN on one side only")
    return lines


def _told_apart(left: Element, right: Element) -> Tuple[str, str]:
    """Two values in as many digits as they need to look different."""
    pair = number_text(left), number_text(right)
    return pair if pair[0] != pair[1] else (str(left), str(right))


def agreement_lines(found: TensorAgreement, style: Style) -> List[str]:
    """Which ranks hold the same, which do not, and from where on."""
    name = style.paint(clean(found.name, style) + clean(found.index, style), "strong")
    groups = found.groups
    if len(groups) == 1 and not found.unread:
        verdict = style.paint(f"all {counted(len(groups[0].ranks), 'rank')} agree", "good")
    elif len(groups) <= 1:
        verdict = "the ranks that could be read agree" if groups else "no rank could be read"
    else:
        verdict = style.paint(f"{len(groups)} different values", "bad")
    lines = [f"{name}: {verdict}"]
    for group in groups:
        lines += _group_lines(group, style)
    for one in found.unread:
        lines += _flagged(f"rank {one.rank}: {one.reason}", style)
    return lines


def _group_lines(group: HashGroup, style: Style) -> List[str]:
    several = len(group.ranks) > 1
    ranks = f"{'ranks' if several else 'rank'} {rank_set(group.ranks, style)}"
    verb = "" if group.differs is None else (" differ" if several else " differs")
    verb = verb or (" agree" if several else "")
    lines = [f"  {style.paint(ranks + verb, 'bad' if group.differs else 'strong')}: {summary(group.info, style)}"]
    lines.append(f"    digest {group.digest}")
    if group.differs is not None:
        lines += ["    " + line for line in _difference(group.differs, style)]
        lines += _flagged(group.differs.problem, style)
    return lines


def saved_lines(saved: TensorSaved, style: Style) -> List[str]:
    """What was written where."""
    lines = [
        f"{_headline(saved.info, style, saved.index)}",
        f"  written to {clean(saved.path, style)}, {size_text(saved.nbytes)}",
    ]
    return lines + [line for note in saved.notes for line in wrapped(clean(note, style), style, indent="  ")]


def ranks_lines(answers: RankTensors, style: Style) -> List[str]:
    """The answers of several ranks, one after the other."""
    lines: List[str] = []
    for one in answers.answers:
        head = style.paint(f"rank {one.rank}", "strong")
        if isinstance(one.answer, Missing):
            lines += [head, *_flagged(one.answer.reason, style)]
            continue
        lines_of = TENSOR_RENDERERS[type(one.answer)]
        first, *rest = lines_of(one.answer, style)
        lines += [f"{head}  {first}", *rest]
    return lines


def infos_lines(infos: Sequence[TensorInfo], style: Style) -> List[str]:
    """A table of tensors."""
    return _info_table(infos, style)


TENSOR_RENDERERS: Mapping[type, Callable[..., List[str]]] = {
    TensorInfo: info_lines,
    TensorValues: values_lines,
    TensorMapInfo: map_lines,
    TensorList: list_lines,
    TensorStats: stats_lines,
    TensorHash: hash_lines,
    TensorDiff: diff_lines,
    TensorAgreement: agreement_lines,
    TensorSaved: saved_lines,
    RankTensors: ranks_lines,
}
"""How each object of model/tensor.py becomes lines."""
