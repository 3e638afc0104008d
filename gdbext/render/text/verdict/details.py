"""What `-v` shows besides the answer: evidence, other explanations, stacks, everything to do, limits, witnesses."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, Sequence

from gdbext.model.job import JobSnapshot
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.render.lines import left_out
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.text.verdict.chain import chain_text
from gdbext.render.text.verdict.process_names import names_of_processes, statement
from gdbext.render.text.verdict.stacks import compact_tree
from gdbext.render.text.verdict.witnesses import witness_lines

MOST = 12
"""Items of one section."""
_LINES = 3  # of one item
_TREE = 40  # lines


def detail_sections(diagnosis: Diagnosis, style: Style) -> List[List[str]]:
    """Each with its heading; those that have nothing to say are empty."""
    return [
        _verdict(diagnosis.verdict, style),
        _chain(diagnosis.verdict, style),
        _evidence(diagnosis, style),
        _alternatives(diagnosis, style),
        _stacks(diagnosis, style),
        _remedies(diagnosis.verdict, style),
        listed("Limits of this answer", limits(diagnosis, style), style),
        witness_lines(diagnosis.snapshot.witnesses, style),
    ]


def limits(diagnosis: Diagnosis, style: Style) -> List[str]:
    """What to mind: the job's problems, each process' problems (equal ones together), missing facts."""
    return [*problems_of(diagnosis.snapshot, style), *diagnosis.verdict.missing]


def problems_of(snapshot: JobSnapshot, style: Style) -> List[str]:
    """Those of the job, and of each process, equal ones together."""
    where: Dict[str, List[int]] = {}
    for process in snapshot.processes:
        for problem in process.problems:
            where.setdefault(problem, []).append(process.index)
    told = (
        f"{names_of_processes(snapshot.processes, indexes, style)}: {problem}" for problem, indexes in where.items()
    )
    return [*snapshot.problems, *told]


def _heading(text: str, style: Style) -> str:
    return style.paint(text, "strong")


def _verdict(verdict: Verdict, style: Style) -> List[str]:
    """All of it, with whole names: the answer may be cut."""
    return [_heading("Verdict", style), *wrapped(clean(verdict.summary, style), style, indent="    ", first="  ")]


def _chain(verdict: Verdict, style: Style) -> List[str]:
    """All of it: the answer may leave out its middle."""
    text = chain_text(verdict.chain, style)
    return [_heading("Wait chain", style), *wrapped(text, style, indent="    ", first="  ")] if text else []


def _evidence(diagnosis: Diagnosis, style: Style) -> List[str]:
    items = [statement(diagnosis.snapshot.processes, one, style) for one in diagnosis.verdict.evidence]
    return listed("Evidence", items, style)


def _alternatives(diagnosis: Diagnosis, style: Style) -> List[str]:
    """What else explains as many ranks."""
    texts = []
    for one in diagnosis.verdict.alternatives:
        names = names_of_processes(diagnosis.snapshot.processes, one.culprits, style)
        chain = chain_text(one.chain, style)
        texts.append(
            f"{one.cause}{f', {names}' if names else ''} ({one.confidence} confidence){f': {chain}' if chain else ''}"
        )
    return listed("Other possible causes", texts, style)


def _stacks(diagnosis: Diagnosis, style: Style) -> List[str]:
    """The merged stacks, the culprits' first."""
    tree = diagnosis.tree
    if tree is None or not tree.roots:
        return []
    return [_heading("Stacks", style), *compact_tree(tree, style, _TREE, culprit_numbers(diagnosis))]


def culprit_numbers(diagnosis: Diagnosis) -> FrozenSet[int]:
    """Those to blame as the tree numbers them."""
    culprits = frozenset(diagnosis.verdict.culprits)
    if diagnosis.tree is None or diagnosis.tree.counts != "rank":
        return culprits
    return frozenset(one.rank for one in diagnosis.snapshot.processes if one.index in culprits and one.rank is not None)


def _remedies(verdict: Verdict, style: Style) -> List[str]:
    if not verdict.remedies:
        return []
    lines = [_heading("What to do", style)]
    for number, remedy in enumerate(verdict.remedies[:MOST], 1):
        lead = f"  {number}. "
        lines += wrapped(clean(remedy.action, style), style, indent=" " * len(lead), first=lead, most=_LINES)
        lines += wrapped(clean(f"Why: {remedy.reason}", style), style, indent=" " * len(lead), most=_LINES)
    return lines + more_lines(len(verdict.remedies) - MOST, style)


def listed(title: str, texts: Sequence[str], style: Style, most: int = MOST, each: int = _LINES) -> List[str]:
    """A heading and the first texts, at most `each` lines of one; nothing where there are none."""
    if not texts:
        return []
    lines = [_heading(title, style)]
    for text in texts[:most]:
        lines += wrapped(clean(text, style), style, indent="    ", first="  ", most=each)
    return lines + more_lines(len(texts) - most, style)


def more_lines(number: int, style: Style) -> List[str]:
    """How many items of a section are not shown."""
    return [style.paint(line, "dim") for line in left_out(number, style, indent="  ")]
