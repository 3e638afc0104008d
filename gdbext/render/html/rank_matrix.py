"""The matrix of ranks: a cell for each, by node, with a letter for what it waits in and a role in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.model.codes import ReadState
from gdbext.model.job import JobSnapshot, RankSnapshot
from gdbext.model.page import Page
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis, ProcessJudgement, Wait
from gdbext.render.html.page_words import PLAIN, function, place, rank_place, said
from gdbext.render.safe_text import located, milliseconds, rank_set
from gdbext.render.text.verdict.whom import who

ROLES: Mapping[str, Tuple[str, str]] = {
    "culprit": ("▲", "what the others wait for"),
    "absent": ("✕", "no process"),
    "waits": ("", "held up"),
    "apart": ("!", "stuck, not explained by the answer"),
    "idle": ("·", "waits for work: normal"),
    "other": ("", "not held up"),
    "unread": ("?", "could not be read"),
}
"""What a rank is in the answer: its mark, which says it without colour, and its words. The first come first."""

MOST_WAITS = 40
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LARGE, _MIDDLE = 16, 128
_MOST_ABSENT = 4096


@dataclass(frozen=True)
class Cell:
    """One rank. `position` is its place in parallel groups, `TP 1 · PP 0`."""

    place: str
    name: str
    role: str
    mark: str
    letter: str
    words: str
    position: str = ""
    index: Optional[int] = None


@dataclass(frozen=True)
class NodeOfRanks:
    """The ranks of one host."""

    name: str
    cells: Tuple[Cell, ...]


@dataclass(frozen=True)
class WaitRow:
    """Ranks that are in the same thing, in the same role."""

    letter: str
    role: str
    mark: str
    role_words: str
    kind: str
    collective: str
    ranks: str
    number: str
    thread: str
    where: str
    pause: str
    target: str = ""  # place of the first of them


@dataclass(frozen=True)
class Matrix:
    """`size` is how large a cell can be: large, middle or small."""

    nodes: Tuple[NodeOfRanks, ...]
    rows: Tuple[WaitRow, ...]
    size: str
    roles: Tuple[Tuple[str, str, str], ...]  # those that occur: role, mark, words
    more_waits: int = 0


def matrix(page: Page) -> Matrix:
    """By node, ranks in order; those without a number behind them."""
    snapshot, diagnosis = page.snapshot, page.diagnosis
    judged = {one.index: one for one in diagnosis.processes} if diagnosis else {}
    ordered = sorted(snapshot.processes, key=lambda one: (one.rank is None, one.rank or 0, one.index))
    groups: Dict[Tuple[str, str, str], List[RankSnapshot]] = {}
    for process in ordered:
        groups.setdefault(_group(process, judged.get(process.index), diagnosis), []).append(process)
    rank = list(ROLES)
    keys = sorted(groups, key=lambda key: (rank.index(key[0]), -len(groups[key])))
    kinds = list(dict.fromkeys(key[1:] for key in keys))
    letters = {kind: _LETTERS[number] if number < len(_LETTERS) else "*" for number, kind in enumerate(kinds)}
    nodes: Dict[str, List[Cell]] = {}
    for process in ordered:
        key = _group(process, judged.get(process.index), diagnosis)
        nodes.setdefault(said(process.host, 60), []).append(_cell(process, key, letters[key[1:]]))
    gone = [_absent(number) for number in snapshot.absent[:_MOST_ABSENT]]
    if gone:
        nodes.setdefault("no process", []).extend(gone)
    seen = {key[0] for key in keys} | ({"absent"} if gone else set())
    cells = len(ordered) + len(gone)
    return Matrix(
        nodes=tuple(NodeOfRanks(name, tuple(some)) for name, some in nodes.items()),
        rows=tuple(_row(key, groups[key], letters[key[1:]], judged, snapshot) for key in keys[:MOST_WAITS]),
        size="large" if cells <= _LARGE else "middle" if cells <= _MIDDLE else "small",
        roles=tuple((role, mark, words) for role, (mark, words) in ROLES.items() if role in seen),
        more_waits=max(len(keys) - MOST_WAITS, 0),
    )


def wait_words(wait: Optional[Wait]) -> str:
    """`nccl-group-launch, all_reduce`."""
    if wait is None:
        return "not there"
    return ", ".join(filter(None, (said(wait.kind, 60), said(wait.collective, 60))))


def _group(
    process: RankSnapshot, judged: Optional[ProcessJudgement], diagnosis: Optional[Diagnosis]
) -> Tuple[str, str, str]:
    """Its role, and what it waits in."""
    wait = judged.wait if judged else None
    kind, collective = (said(wait.kind, 60), said(wait.collective, 60)) if wait else ("", "")
    return _role(process, judged, diagnosis), kind or "not judged", collective


def _role(process: RankSnapshot, judged: Optional[ProcessJudgement], diagnosis: Optional[Diagnosis]) -> str:
    verdict = diagnosis.verdict if diagnosis else None
    if verdict is not None and process.index in verdict.culprits:
        return "culprit"
    if process.state == ReadState.LOST or process.outlined:
        return "unread"
    if verdict is not None and process.index in verdict.unexplained:
        return "apart"
    if verdict is not None and process.index in verdict.victims:
        return "waits"
    return "idle" if judged is not None and judged.idle else "other"


def _cell(process: RankSnapshot, key: Tuple[str, str, str], letter: str) -> Cell:
    role, kind, collective = key
    mark, role_words = ROLES[role]
    waits = ", ".join(filter(None, (kind, collective)))
    position = " · ".join(f"{said(name, 8).upper()} {value}" for name, value in list(process.labels.items())[:6])
    detail = ", ".join(filter(None, (position, said(process.host, 60), f"pid {process.pid}" if process.pid else "")))
    return Cell(
        place=rank_place(process.index),
        name=str(process.rank) if process.rank is not None else "?",
        role=role,
        mark=mark,
        letter=letter,
        words=f"{process.label}: {waits}; {role_words}" + (f" ({detail})" if detail else ""),
        position=position,
        index=process.index,
    )


def _absent(number: int) -> Cell:
    mark, words = ROLES["absent"]
    return Cell(
        place=f"absent{number}", name=str(number), role="absent", mark=mark, letter="", words=f"rank {number}: {words}"
    )


def _row(
    key: Tuple[str, str, str],
    group: Sequence[RankSnapshot],
    letter: str,
    judged: Mapping[int, ProcessJudgement],
    snapshot: JobSnapshot,
) -> WaitRow:
    role, kind, collective = key
    mark, words = ROLES[role]
    pauses = [one.pause_ms for one in group if one.pause_ms is not None and not one.unstopped]
    places, threads = _decisive(group, judged)
    ranks = [one.rank for one in group if one.rank is not None]
    return WaitRow(
        letter=letter,
        role=role,
        mark=mark,
        role_words=words,
        kind=kind,
        collective=collective,
        ranks=rank_set(ranks, PLAIN, 60) if len(ranks) == len(group) else who(group, [o.index for o in group], PLAIN),
        number=counted(len(group), "process", "processes"),
        thread=_common(threads),
        where=_common(places),
        pause=milliseconds(max(pauses)) if pauses else "",
        target=rank_place(group[0].index),
    )


def _decisive(group: Sequence[RankSnapshot], judged: Mapping[int, ProcessJudgement]) -> Tuple[List[str], List[str]]:
    """Of each the engine's frame, else the one that decides, and the name of its thread."""
    places, names = [], []
    for process in group:
        one = judged.get(process.index)
        if one is None:
            continue
        for thread, kind in zip(process.threads, one.threads):
            if thread.id != one.wait.thread:
                continue
            names.append(said(thread.name, 40))
            number = kind.engine_frame if kind.engine_frame is not None else one.wait.frame
            if number is not None and 0 <= number < len(thread.calls):
                frame = thread.calls[number]
                name = function(frame.function)
                places.append(located(name, place(frame.file, frame.line, frame.module)))
            break
    return places, names


def _common(texts: Sequence[str]) -> str:
    kinds = set(texts)
    return texts[0] if len(kinds) == 1 else f"{len(kinds):,} different" if kinds else ""
