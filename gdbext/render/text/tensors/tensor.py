"""Tensors for a person: one line that says what it is, tables of many, values."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Union

from gdbext.model.missing import Missing
from gdbext.model.tensor import TensorHash, TensorInfo, TensorList, TensorMapInfo, TensorSaved, TensorValues
from gdbext.model.text.ranges import counted
from gdbext.render.safe_text import clean, shorten_name, wrapped
from gdbext.render.style import Style
from gdbext.render.table import Column, Row, table
from gdbext.render.text.tensors.arrays import array_lines

LONGEST_LIST = 12  # dimensions that are written out
_PLACE = re.compile(r"(?:on \w+(?: \d+)? )?at 0x[0-9a-f]+: ")  # before a reason, of ours: the row has it
SHORT_REASONS = 90  # characters of what is wrong that still stand in the one line of a broken tensor

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


def headline(info: TensorInfo, style: Style, index: str = "") -> str:
    """The name with its index, and the summary."""
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
    lines = [line for text in _problems(info) for line in problem_lines(text, style)]
    for note in info.notes:
        lines += wrapped(clean(note, style), style, indent="  ")
    return lines


def problem_lines(text: Optional[str], style: Style) -> List[str]:
    """A problem: lines that stand out; nothing for None."""
    if not text:
        return []
    return [style.paint(line, "doubt") for line in wrapped(clean(text, style), style, indent="    ", first="  ! ")]


def info_lines(info: TensorInfo, style: Style) -> List[str]:
    """Everything that is known of a tensor without its values."""
    lines = [headline(info, style)]
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
        lines += ["  parts:", *("  " + line for line in info_table(info.parts, style))]
    return lines


def info_table(infos: Sequence[TensorInfo], style: Style) -> List[str]:
    """A row each; below them why values cannot be read: a cell would cut the command that helps."""
    lines = table(_COLUMNS, [_info_row(info, style) for info in infos], style)
    reasons: Dict[str, List[str]] = {}
    for info in infos:
        if info.unreadable:
            reasons.setdefault(_PLACE.sub("", info.unreadable), []).append(info.name)
    for reason, (first, *others) in reasons.items():
        whose = f"{first} and {len(others):,} more" if others else first
        lines += problem_lines(f"{whose}: {reason}", style)
    return lines


def _info_row(info: TensorInfo, style: Style) -> Row:
    facts = [getattr(info, field) for field in ("dtype", "shape", "address") if not _idle(info, field)]
    unknown = [fact.reason for fact in facts if isinstance(fact, Missing)]
    remark = [*info.problems, *(["values: see below"] if info.unreadable else []), *unknown, *info.notes]
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
    lines = [headline(values.info, style, values.index) + selection]
    lines += _remarks(values.info, style)
    lines += array_lines(values, max(20, style.width))
    return lines + problem_lines(values.problem, style)


def map_lines(entries: TensorMapInfo, style: Style) -> List[str]:
    """One row per entry."""
    total = entries.total if isinstance(entries.total, int) else len(entries.entries)
    lines = [f"{style.paint(clean(entries.name, style), 'strong')}: {clean(entries.kind, style)}, "
             f"{counted(total, 'entry', 'entries')}"]  # fmt: skip
    lines += info_table(entries.entries, style)
    if total > len(entries.entries):
        lines.append(f"  {total - len(entries.entries):,} more are not shown")
    return lines + [line for problem in entries.problems for line in problem_lines(problem, style)]


def list_lines(found: TensorList, style: Style) -> List[str]:
    """Every tensor of a frame."""
    lines = [f"{counted(len(found.tensors), 'tensor')} in {clean(found.place, style)}"]
    lines += info_table(found.tensors, style)
    return lines + [line for problem in found.problems for line in problem_lines(problem, style)]


def hash_lines(found: TensorHash, style: Style) -> List[str]:
    """The digest, and what it is of."""
    lines = [headline(found.info, style, found.index)]
    if found.digest:
        lines.append(f"  {found.digest}  over {counted(found.count, 'value')}")
    return lines + problem_lines(found.problem, style)


def saved_lines(saved: TensorSaved, style: Style) -> List[str]:
    """What was written where."""
    lines = [
        f"{headline(saved.info, style, saved.index)}",
        f"  written to {clean(saved.path, style)}, {size_text(saved.nbytes)}",
    ]
    return lines + [line for note in saved.notes for line in wrapped(clean(note, style), style, indent="  ")]
