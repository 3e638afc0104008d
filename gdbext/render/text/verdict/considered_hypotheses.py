"""How a verdict came about: each hypothesis, with what speaks for and against it."""

from __future__ import annotations

from typing import List, Sequence

from gdbext.model.considered_hypotheses import LIMITS, REGRADES
from gdbext.model.job import RankSnapshot
from gdbext.model.text.ranges import counted, ranks
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.model.waits import STRENGTHS, Hypothesis, shown_kind
from gdbext.render.safe_text import clean, wrapped
from gdbext.render.style import Style
from gdbext.render.text.verdict.chain import chain_text
from gdbext.render.text.verdict.details import more_lines
from gdbext.render.text.verdict.process_names import names_of_processes, seen_at

MOST = 12
"""Hypotheses that are printed."""
_NO_HYPOTHESIS = (
    "The wait graph has no cycle, and no end that explains why ranks wait. No rank made progress, and no log, "
    "counter or other source names a cause."
)
_SEVERAL = 3  # contradictions that are printed
_LINES = 3  # of one fact


def considered_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """The hypotheses, the best first; what changed the confidence then."""
    considered = diagnosis.verdict.considered
    lines = [style.paint("Hypotheses, the best first", "strong")]
    if not considered.hypotheses:
        lines += wrapped(_NO_HYPOTHESIS, style, indent="  ")
    for number, one in enumerate(considered.hypotheses[:MOST]):
        lines += _hypothesis(diagnosis, number, one, style)
    lines += more_lines(len(considered.hypotheses) - MOST, style)
    for change in considered.regrades:
        reason = REGRADES.get(change.by, change.by)
        text = f"The confidence of the answer became {change.after}, from {change.before}: {reason}."
        lines += wrapped(text, style, indent="  ")
    return lines


def _hypothesis(diagnosis: Diagnosis, number: int, one: Hypothesis, style: Style) -> List[str]:
    processes = diagnosis.snapshot.processes
    rests = "rule" if one.source == "graph" else one.source
    head = f"{one.cause} ({rests} {one.row}), {one.confidence} confidence{_role(diagnosis.verdict, number, one)}"
    lead = f"  {number + 1}. "
    lines = wrapped(clean(head, style), style, indent=" " * len(lead), first=lead, most=2)
    facts = [
        ("blames", _blamed(processes, one, style)),
        ("explains", _explained(diagnosis, one, style)),
        ("against", _contradictions(one, style)),
        ("weakest", _weakest(processes, one, style)),
        ("caveat", "; ".join(LIMITS.get(name, name) for name in one.limits)),
        ("chain", chain_text(one.chain, style)),
    ]
    for title, text in facts:
        if text:
            lead = f"     {title:<9} "
            lines += wrapped(text, style, indent=" " * len(lead), first=lead, most=_LINES)
    return lines


def _role(verdict: Verdict, number: int, one: Hypothesis) -> str:
    if number != verdict.considered.answer:
        return ""
    return ": the answer" if one.cause == verdict.cause else ": same culprit as the answer"


def _blamed(processes: Sequence[RankSnapshot], one: Hypothesis, style: Style) -> str:
    absent = f"{ranks(one.absent)} (no process)" if one.absent else ""
    return (
        ", ".join(filter(None, [names_of_processes(processes, one.culprits, style), absent])) or "no rank that was read"
    )


def _explained(diagnosis: Diagnosis, one: Hypothesis, style: Style) -> str:
    """`2 of 3 stuck ranks: ranks 0-1; not rank 2`."""
    processes, stuck = diagnosis.snapshot.processes, diagnosis.verdict.considered.stuck
    if not stuck:
        explained_ranks = names_of_processes(processes, one.explained, style)
        return f"{explained_ranks + '; ' if explained_ranks else ''}no rank is in a collective, a lock or a set-up"
    reached = [index for index in stuck if index not in set(one.unexplained)]
    text = f"{len(reached):,} of {counted(len(stuck), 'stuck rank')}"
    if reached:
        text += f": {names_of_processes(processes, reached, style)}"
    return (
        f"{text}; not {names_of_processes(processes, one.unexplained, style)}" if reached and one.unexplained else text
    )


def _contradictions(one: Hypothesis, style: Style) -> str:
    texts = [clean(text, style) for text in one.contradictions[:_SEVERAL]]
    if len(one.contradictions) > _SEVERAL:
        texts.append(f"{len(one.contradictions) - _SEVERAL:,} more")
    return "; ".join(texts) or "nothing"


def _weakest(processes: Sequence[RankSnapshot], one: Hypothesis, style: Style) -> str:
    """`all_reduce -> rank 1 (member, assumed): ...`, with its fact; without one what its strength means."""
    edge = one.weakest_edge
    if edge is None:
        return "the chain has no edges"
    step = f"{chain_text((edge,), style)} ({shown_kind(edge.kind)}, {edge.strength})"
    if not edge.facts:
        return f"{step}: {STRENGTHS.get(edge.strength, edge.strength)}"
    fact = edge.facts[0]  # its place comes first: a long text is cut
    return f"{' '.join(filter(None, [step, seen_at(processes, fact, style)]))}: {clean(fact.text, style)}"
