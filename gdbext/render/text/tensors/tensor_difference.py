"""Two tensors for a person, or one over ranks: the same or not, where they part and by how much."""

from __future__ import annotations

from typing import List, Tuple

from gdbext.model.tensor import Element, HashGroup, TensorAgreement, TensorDiff
from gdbext.model.text.ranges import counted
from gdbext.render.safe_text import clean, rank_set
from gdbext.render.style import Style
from gdbext.render.text.tensors.tensor import dimensions, headline, problem_lines, summary
from gdbext.render.text.tensors.tensor_statistics import number_text, percent


def diff_lines(diff: TensorDiff, style: Style) -> List[str]:
    """Whether two tensors are the same, else where they part and by how much."""
    lines = [headline(diff.left, style, diff.index), headline(diff.right, style, diff.index)]
    lines += ["  " + line for line in _difference(diff, style)]
    return lines + problem_lines(diff.problem, style)


def _difference(diff: TensorDiff, style: Style) -> List[str]:
    """The finding alone."""
    tolerance = f" within rtol {diff.rtol:g}, atol {diff.atol:g}" if diff.rtol or diff.atol else ""
    if not diff.differing:
        if not diff.compared and diff.problem:
            return []
        verdict = f"same{tolerance}: {counted(diff.compared, 'value')}"
        lines = [style.paint(verdict, "" if diff.problem else "good")]
    else:
        share = percent(diff.differing, diff.compared)
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
    lines = [f"{name}: {_agreement_verdict(found, style)}"]
    for group in groups:
        lines += _group_lines(group, style)
    for one in found.unread:
        lines += problem_lines(f"rank {one.rank}: {one.reason}", style)
    return lines


def _agreement_verdict(found: TensorAgreement, style: Style) -> str:
    """One readable rank agrees with nothing; ranks that could not be read are counted."""
    read = sum(len(group.ranks) for group in found.groups)
    of_all = f" of {read + len(found.unread)}" if found.unread else ""
    if read == 0:
        return "no rank could be read: nothing was compared"
    if read == 1:
        only = f"{of_all} ranks could be read" if found.unread else " rank"
        return f"only one{only}: nothing was compared"
    if len(found.groups) > 1:
        return style.paint(f"{len(found.groups)} different values", "bad")
    if found.unread:
        return f"{read}{of_all} ranks agree, {counted(len(found.unread), 'rank')} could not be read"
    return style.paint(f"all {read} ranks agree", "good")


def _group_lines(group: HashGroup, style: Style) -> List[str]:
    several = len(group.ranks) > 1
    ranks = f"{'ranks' if several else 'rank'} {rank_set(group.ranks, style)}"
    verb = "" if group.differs is None else (" differ" if several else " differs")
    verb = verb or (" agree" if several else "")
    lines = [f"  {style.paint(ranks + verb, 'bad' if group.differs else 'strong')}: {summary(group.info, style)}"]
    lines.append(f"    digest {group.digest}")
    if group.differs is not None:
        lines += ["    " + line for line in _difference(group.differs, style)]
        lines += problem_lines(group.differs.problem, style)
    return lines
