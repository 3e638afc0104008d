"""A diagnosis for a person who was woken up: the answer first, then what proves it, all on one screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Sequence

from gdbext.model.codes import Given
from gdbext.model.job import RankSnapshot
from gdbext.model.verdict import Diagnosis, Verdict
from gdbext.render.safe_text import clean, counted, milliseconds, rank_set, shorten, wrapped
from gdbext.render.style import Style
from gdbext.render.text.verdict.chain import chain_text
from gdbext.render.text.verdict.considered import considered_lines
from gdbext.render.text.verdict.rank_table import wait_table
from gdbext.render.text.verdict.stacks import compact_tree
from gdbext.render.text.verdict.whom import noun, statement, who
from gdbext.render.text.verdict.witnesses import witness_lines

SCREEN = 50
"""Lines that a finding takes at most, about."""
LEAST_TREE = 9
_LONGEST_CHAIN = 4  # lines
MOST_ROWS = 10


@dataclass(frozen=True)
class _Share:
    """How many items each section shows, and over how many lines one of them may run."""

    evidence: int
    remedies: int
    unread: int
    lines: int


_AMPLE = _Share(evidence=6, remedies=4, unread=4, lines=3)
_FAIR = _Share(evidence=5, remedies=3, unread=3, lines=2)
_TIGHT = _Share(evidence=3, remedies=2, unread=2, lines=2)
_CALM = _Share(evidence=3, remedies=2, unread=3, lines=3)
_SCANT = _Share(evidence=3, remedies=2, unread=2, lines=1)

_ACCENT_OF_CAUSE = {"not-a-hang": "good", "unknown": "doubt", "other": "doubt"}


def diagnosis_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """The whole answer. A finding fits one screen for 8 ranks and for 1,024; a healthy job takes a few lines."""
    if not (diagnosis.verdict.finding or diagnosis.verdict.decided_by):
        waits = wait_table(diagnosis, style, most_rows=4, one_row_each=0)
        evidence = _evidence(diagnosis, _CALM, style)
        return _joined([_answer(diagnosis, style), waits, evidence, *_closing(diagnosis, _CALM, style)])
    waits = wait_table(diagnosis, style, MOST_ROWS)
    has_tree = diagnosis.tree is not None and bool(diagnosis.tree.roots)
    for share in (_AMPLE, _FAIR, _TIGHT, _SCANT):
        before = [_answer(diagnosis, style, 4 if share is _SCANT else 6), waits, _evidence(diagnosis, share, style)]
        after = [_remedies(diagnosis.verdict, share, style), *_closing(diagnosis, share, style)]
        left = SCREEN - len(_joined(before + after)) - 1
        if left >= (LEAST_TREE if has_tree else 0):
            break
    return _joined([*before, _stacks(diagnosis, left, style), *after])


def _closing(diagnosis: Diagnosis, share: _Share, style: Style) -> List[List[str]]:
    last = witness_lines(diagnosis.snapshot.witnesses, style) + _pause(diagnosis.snapshot.processes, style)
    return [_unread(diagnosis, share, style), last + _read_from_text(diagnosis.snapshot.processes, style)]


def _read_from_text(processes: Sequence[RankSnapshot], style: Style) -> List[str]:
    """How much was found in pasted text: whoever pasted it sees whether something is missing."""
    texts = [one for one in processes if one.given is Given.TEXT]
    if not texts:
        return []
    threads = [thread for one in texts for thread in one.threads]
    counts = (
        counted(len(texts), "process", "processes"),
        counted(len(threads), "thread"),
        counted(sum(len(thread.frames) for thread in threads), "frame"),
    )
    return [style.paint(f"Read from the text: {', '.join(counts)}.", "dim")]


def _joined(sections: Sequence[List[str]]) -> List[str]:
    """Sections with one empty line between them."""
    lines: List[str] = []
    for section in filter(None, sections):
        lines += [""] * bool(lines) + section
    return lines


def _answer(diagnosis: Diagnosis, style: Style, most: int = 6) -> List[str]:
    """The verdict in two sentences, over at most `most` lines, then who and how sure."""
    verdict = diagnosis.verdict
    accent = _ACCENT_OF_CAUSE.get(verdict.cause, "bad")
    lines = [style.paint(line, accent) for line in wrapped(clean(verdict.summary, style), style, most=most)]
    facts = [("cause", f"{clean(verdict.cause, style)} ({clean(verdict.confidence, style)} confidence)")]
    if verdict.culprits:
        title = "culprit" if len(verdict.culprits) == 1 else "culprits"
        facts.append((title, who(diagnosis.snapshot.processes, verdict.culprits, style, details=True)))
    if verdict.absent:
        ranks = rank_set(verdict.absent, style, style.width // 2)
        facts.append(("absent", f"{noun(verdict.absent)} {ranks}: no process found"))
    if verdict.victims:
        facts.append(("victims", who(diagnosis.snapshot.processes, verdict.victims, style)))
    if verdict.unexplained:
        facts.append(
            ("left", f"{who(diagnosis.snapshot.processes, verdict.unexplained, style)}: not explained by this")
        )
    second = next((one for one in verdict.alternatives if one.confidence == verdict.confidence), None)
    if second is not None and (second.cause, second.culprits) != (verdict.cause, verdict.culprits):
        whom = who(diagnosis.snapshot.processes, second.culprits, style)
        facts.append(("or", f"{second.cause}{f', {whom}' if whom else ''} ({second.confidence} confidence)"))
    for title, text in facts:
        lead = f"  {title:<8} "
        body = shorten(text, style.width - len(lead), style)
        lines.append(style.paint(lead, "dim") + style.paint(body, accent if title.startswith("culprit") else ""))
    return [*lines, *_chain(verdict, style)]


def _chain(verdict: Verdict, style: Style) -> List[str]:
    """Who waits for what, from the ranks to where it ends."""
    text = chain_text(verdict.chain, style)
    if not text:
        return []
    lead = f"  {'chain':<8} "
    return wrapped(text, style, indent=" " * len(lead), first=lead, most=_LONGEST_CHAIN)


def _heading(text: str, style: Style) -> str:
    return style.paint(text, "strong")


def _evidence(diagnosis: Diagnosis, share: _Share, style: Style) -> List[str]:
    items = diagnosis.verdict.evidence
    if not items:
        return []
    lines = [_heading("Evidence", style)]
    for item in items[: share.evidence]:
        text = statement(diagnosis.snapshot.processes, item, style)
        lines += wrapped(text, style, indent="    ", first="  ", most=share.lines)
    return lines + _more(len(items) - share.evidence, style)


def _stacks(diagnosis: Diagnosis, budget: int, style: Style) -> List[str]:
    """The merged stacks, in what is left of the screen."""
    tree = diagnosis.tree
    if tree is None or not tree.roots:
        return []
    culprits = frozenset(diagnosis.verdict.culprits)
    if tree.counts == "rank":
        culprits = frozenset(
            one.rank for one in diagnosis.snapshot.processes if one.index in culprits and one.rank is not None
        )
    return [_heading("Stacks", style), *compact_tree(tree, style, max(budget - 1, LEAST_TREE - 1), culprits)]


def _remedies(verdict: Verdict, share: _Share, style: Style) -> List[str]:
    if not verdict.remedies:
        return []
    lines = [_heading("What to do", style)]
    for number, remedy in enumerate(verdict.remedies[: share.remedies], 1):
        lead = f"  {number}. "
        lines += wrapped(clean(remedy.action, style), style, indent=" " * len(lead), first=lead, most=share.lines)
        lines += wrapped(clean(remedy.reason, style), style, indent=" " * len(lead), most=share.lines)
    return lines + _more(len(verdict.remedies) - share.remedies, style)


def _unread(diagnosis: Diagnosis, share: _Share, style: Style) -> List[str]:
    """What to mind: the job's problems, each process' problems (equal ones together), missing facts."""
    processes = diagnosis.snapshot.processes
    where: Dict[str, List[int]] = {}
    for process in processes:
        for problem in process.problems:
            where.setdefault(problem, []).append(process.index)
    texts = list(diagnosis.snapshot.problems)
    for problem, indexes in list(where.items())[: share.unread]:
        texts.append(f"{who(processes, indexes, style)}: {problem}")
    texts += diagnosis.verdict.missing
    hidden = max(len(where) - share.unread, 0) + max(len(texts) - share.unread, 0)
    if not texts:
        return []
    lines = [_heading("Limits of this answer", style)]
    for text in texts[: share.unread]:
        lines += wrapped(clean(text, style), style, indent="    ", first="  ", most=share.lines)
    return lines + _more(hidden, style)


def _more(number: int, style: Style) -> List[str]:
    return [style.paint(f"  {style.ellipsis} {number:,} more, all in --json", "dim")] if number > 0 else []


def _pause(processes: Sequence[RankSnapshot], style: Style) -> List[str]:
    """What the look itself cost the job."""
    pauses = [one.pause_ms for one in processes if one.pause_ms is not None]
    if not pauses:
        return []
    if any(one.given is Given.HELD for one in processes):
        text = f"This gdb has held the ranks for up to {milliseconds(max(pauses))}; llm-detach-all lets them go on."
        return [style.paint(line, "dim") for line in wrapped(text, style)]
    if not any(pauses) and all(one.unstopped for one in processes if one.pause_ms is not None):
        return [style.paint("Nothing was stopped by this look.", "dim")]
    whom = "The process was stopped for" if len(processes) == 1 else "Each process was stopped for at most"
    text = f"{whom} {milliseconds(max(pauses))} by this look{_afterwards(processes, style)}."
    return [style.paint(line, "dim") for line in wrapped(text, style)]


_SIGNS = {
    "runs": ("runs on", "run on"),
    "waits": ("waits as before", "wait as before"),
    "moved": ("waits in other calls than before", "wait in other calls than before"),
    "stopped": ("is stopped", "are stopped"),
    "traced": ("is traced", "are traced"),
    "gone": ("is gone", "are gone"),
}


def _afterwards(processes: Sequence[RankSnapshot], style: Style) -> str:
    """`; rank 2 is stopped, 7 run on`: signs of life, those that are none by name."""
    found: Dict[str, List[int]] = {}
    for one in processes:
        if one.after in _SIGNS:
            found.setdefault(one.after, []).append(one.index)
    pieces = []
    for sign in ("stopped", "traced", "gone", "runs", "waits", "moved"):
        some = found.get(sign, [])
        if some:
            well = sign in ("runs", "waits", "moved")
            everyone = "it" if len(processes) == 1 else "all" if len(some) == len(processes) else str(len(some))
            whom = everyone if well else who(processes, some, style)
            pieces.append(f"{whom} {_SIGNS[sign][len(some) > 1]}")
    return "; " + ", ".join(pieces) if pieces else ""


def _with_reasons(diagnosis: Diagnosis, style: Style) -> List[str]:
    """The answer; below it how it came about, where that was asked for."""
    lines = diagnosis_lines(diagnosis, style)
    return _joined([lines, considered_lines(diagnosis, style)]) if diagnosis.explains else lines


RENDERERS: Mapping[type, Callable[..., List[str]]] = {Diagnosis: _with_reasons}
