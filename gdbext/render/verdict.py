"""A diagnosis for a person who was woken up: the answer first, then what proves it, all on one screen."""

from __future__ import annotations

from typing import Dict, List, Sequence

from gdbext.model.job import RankSnapshot
from gdbext.model.verdict import Diagnosis, Evidence, Verdict
from gdbext.render.stacks import compact_tree
from gdbext.render.style import Style
from gdbext.render.text import clean, counted, milliseconds, rank_set, shorten, wrapped
from gdbext.render.waits import wait_table

SCREEN = 50
"""Lines that a finding takes at most, about."""
LEAST_TREE = 8
MOST_ROWS = 10
MOST_EVIDENCE = 5
MOST_REMEDIES = 3
MOST_UNREAD = 4

_ACCENT_OF_CAUSE = {"not-a-hang": "good", "unknown": "doubt", "other": "doubt"}


def diagnosis_lines(diagnosis: Diagnosis, style: Style) -> List[str]:
    """The whole answer. A finding fits one screen for 8 ranks and for 1,024; a healthy job takes a few lines."""
    verdict = diagnosis.verdict
    sections = [_answer(diagnosis, style)]
    if verdict.finding:
        sections += [
            wait_table(diagnosis, style, MOST_ROWS),
            _evidence(diagnosis, style),
            _remedies(verdict, style),
        ]
    else:
        sections.append(wait_table(diagnosis, style, 4, one_row_each=0))
    closing = [_unread(diagnosis, style), _pause(diagnosis.snapshot.processes, style)]
    if verdict.finding:
        used = sum(len(section) + 1 for section in sections + closing if section)
        sections.insert(3, _stacks(diagnosis, SCREEN - used, style))
    return _joined(sections + closing)


def _joined(sections: Sequence[List[str]]) -> List[str]:
    """Sections with one empty line between them."""
    lines: List[str] = []
    for section in filter(None, sections):
        lines += [""] * bool(lines) + section
    return lines


def _answer(diagnosis: Diagnosis, style: Style) -> List[str]:
    """The verdict in two sentences, then who and how sure."""
    verdict = diagnosis.verdict
    accent = _ACCENT_OF_CAUSE.get(verdict.cause, "bad")
    lines = [style.paint(line, accent) for line in wrapped(clean(verdict.summary, style), style, most=6)]
    facts = [("cause", f"{clean(verdict.cause, style)} ({clean(verdict.confidence, style)} confidence)")]
    if verdict.culprits:
        facts.append(("culprit", who(diagnosis.snapshot.processes, verdict.culprits, style, details=True)))
    if verdict.absent:
        ranks = rank_set(verdict.absent, style, style.width // 2)
        facts.append(("absent", f"{_noun(verdict.absent)} {ranks}: no process found"))
    if verdict.victims:
        facts.append(("victims", who(diagnosis.snapshot.processes, verdict.victims, style)))
    for title, text in facts:
        lead = f"  {title:<8} "
        body = shorten(text, style.width - len(lead), style)
        lines.append(style.paint(lead, "dim") + style.paint(body, accent if title == "culprit" else ""))
    return lines


def who(processes: Sequence[RankSnapshot], indexes: Sequence[int], style: Style, details: bool = False) -> str:
    """`ranks 0-2,5`; with `details` and few of them `rank 3 (pid 4714, node17)`; pids where ranks are unknown."""
    meant = [one for one in processes if one.index in set(indexes)]
    if details and 0 < len(meant) <= 3:
        return ", ".join(_in_full(one, style) for one in meant)
    ranks = sorted(one.rank for one in meant if one.rank is not None)
    others = [one.label for one in meant if one.rank is None]
    pieces = [f"{_noun(ranks)} {rank_set(ranks, style, style.width // 2)}"] if ranks else []
    if len(others) > 3:
        others = [*others[:3], f"{counted(len(others) - 3, 'more process', 'more processes')}"]
    return ", ".join(pieces + others)


def _in_full(process: RankSnapshot, style: Style) -> str:
    pid = f"pid {process.pid}" if process.rank is not None and process.pid is not None else ""
    details = ", ".join(filter(None, [pid, clean(process.host, style)]))
    return f"{process.label} ({details})" if details else process.label


def _noun(ranks: Sequence[int]) -> str:
    return "rank" if len(ranks) == 1 else "ranks"


def _heading(text: str, style: Style) -> str:
    return style.paint(text, "strong")


def _evidence(diagnosis: Diagnosis, style: Style) -> List[str]:
    items = diagnosis.verdict.evidence
    if not items:
        return []
    lines = [_heading("Evidence", style)]
    for item in items[:MOST_EVIDENCE]:
        lines += _evidence_item(diagnosis.snapshot.processes, item, style)
    return lines + _more(len(items) - MOST_EVIDENCE, style)


def _evidence_item(processes: Sequence[RankSnapshot], item: Evidence, style: Style) -> List[str]:
    """`rank 3, thread 12, frame 4: waits for the device in cudaMallocHost`."""
    process = next((one for one in processes if one.index == item.process), None)
    place = [process.label] if process else []
    if item.thread is not None:
        place.append(f"thread {clean(item.thread, style)}")
    if item.frame is not None:
        place.append(f"frame {item.frame}")
    lead = ", ".join(place)
    text = f"{lead}: {clean(item.text, style)}" if lead else clean(item.text, style)
    return wrapped(text, style, indent="    ", first="  ", most=2)


def _stacks(diagnosis: Diagnosis, budget: int, style: Style) -> List[str]:
    """The merged stacks, in what is left of the screen."""
    if diagnosis.tree is None or not diagnosis.tree.roots:
        return []
    return [_heading("Stacks", style), *compact_tree(diagnosis.tree, style, max(budget - 2, LEAST_TREE))]


def _remedies(verdict: Verdict, style: Style) -> List[str]:
    if not verdict.remedies:
        return []
    lines = [_heading("What to do", style)]
    for number, remedy in enumerate(verdict.remedies[:MOST_REMEDIES], 1):
        action = wrapped(clean(remedy.action, style), style, indent="     ", first=f"  {number}. ", most=2)
        lines += action + wrapped(clean(remedy.reason, style), style, indent="     ", most=2)
    return lines + _more(len(verdict.remedies) - MOST_REMEDIES, style)


def _unread(diagnosis: Diagnosis, style: Style) -> List[str]:
    """What could not be read: the job's problems, each process' problems (equal ones together), missing facts."""
    where: Dict[str, List[int]] = {}
    processes = diagnosis.snapshot.processes
    for process in processes:
        for problem in process.problems:
            where.setdefault(clean(problem, style), []).append(process.index)
    texts = [clean(problem, style) for problem in diagnosis.snapshot.problems]
    texts += [f"{who(processes, indexes, style)}: {problem}" for problem, indexes in where.items()]
    texts += [clean(text, style) for text in diagnosis.verdict.missing]
    if not texts:
        return []
    lines = [_heading("Could not be read", style)]
    for text in texts[:MOST_UNREAD]:
        lines += wrapped(text, style, indent="    ", first="  ", most=2)
    return lines + _more(len(texts) - MOST_UNREAD, style)


def _more(number: int, style: Style) -> List[str]:
    return [style.paint(f"  {style.ellipsis} {number:,} more, all in --json", "dim")] if number > 0 else []


def _pause(processes: Sequence[RankSnapshot], style: Style) -> List[str]:
    """What the look itself cost the job."""
    pauses = [one.pause_ms for one in processes if one.pause_ms is not None]
    if not pauses:
        return []
    each = "The process was stopped for" if len(processes) == 1 else "Each rank was stopped for at most"
    return [style.paint(f"{each} {milliseconds(max(pauses))} to look at it; all run on.", "dim")]
