"""What the ranks wait in, as a matrix: a column for each wait and its place, a row for each node, in it ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.model.codes import ReadState
from gdbext.model.job import RankSnapshot
from gdbext.model.text.ranges import counted
from gdbext.model.verdict import Diagnosis, ProcessJudgement
from gdbext.render.html.page_words import PLAIN, function, one_line, place
from gdbext.render.safe_text import name_with_place, rank_set
from gdbext.render.text.verdict.process_names import names_of_processes
from gdbext.render.text.verdict.rank_table import kind_text

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
_ORDER = list(ROLES)

MOST_COLUMNS, MOST_ROWS, MOST_NODES = 12, 24, 16
"""Waits of their own, rows, and nodes with a row of their own: above it nodes of one picture are one row."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_LABELS, _MOST_HOSTS = 6, 3


@dataclass(frozen=True)
class PlacedWait:
    """What a rank waits in, and the engine's call that led there."""

    kind: str
    collective: str
    where: str

    @property
    def words(self) -> str:
        return ", ".join(filter(None, (self.kind, self.collective)))


@dataclass(frozen=True)
class InWait:
    """A rank in its wait. `thread`: the name of the one that decides."""

    process: RankSnapshot
    role: str
    wait: PlacedWait
    thread: str


@dataclass(frozen=True)
class WaitColumn:
    """The head of a column. `waits`: the one, or all that have no column of their own."""

    letter: str
    role: str
    mark: str
    kind: str
    collective: str
    where: str
    ranks: str
    number: str
    thread: str
    positions: str
    waits: Tuple[PlacedWait, ...]


@dataclass(frozen=True)
class RankSet:
    """Ranks of a node in one wait and one role."""

    role: str
    mark: str
    ranks: str
    number: int
    positions: str
    index: int  # of the first
    words: str


@dataclass(frozen=True)
class MatrixRow:
    """A node, or several of one picture."""

    name: str
    about: str
    cells: Tuple[Tuple[RankSet, ...], ...]  # by column


def in_wait(process: RankSnapshot, judged: Optional[ProcessJudgement], diagnosis: Optional[Diagnosis]) -> InWait:
    """Of one rank."""
    wait = judged.wait if judged else None
    where, thread = _decisive(process, judged) if judged else ("", "")
    kind, collective = (one_line(kind_text(process, wait), 60), one_line(wait.collective, 60)) if wait else ("", "")
    return InWait(
        process, _role(process, judged, diagnosis), PlacedWait(kind or "not judged", collective, where), thread
    )


def columns_of(seen: Sequence[InWait]) -> Tuple[WaitColumn, ...]:
    """Those of suspects first, then those of many ranks; the last may be what has no column of its own."""
    groups: Dict[PlacedWait, List[InWait]] = {}
    for one in seen:
        groups.setdefault(one.wait, []).append(one)
    keys = sorted(groups, key=lambda key: (_first_role(groups[key]), -len(groups[key])))
    alone = len(keys) if len(keys) <= MOST_COLUMNS else MOST_COLUMNS - 1
    found = [_column(_LETTERS[at], (key,), groups[key]) for at, key in enumerate(keys[:alone])]
    rest = tuple(keys[alone:])
    if rest:
        found.append(_column("*", rest, [one for key in rest for one in groups[key]]))
    return tuple(found)


def rows_of(seen: Sequence[InWait], columns: Sequence[WaitColumn]) -> Tuple[MatrixRow, ...]:
    """Rows with suspects first. Many nodes of one picture are one row."""
    at = {wait: number for number, column in enumerate(columns) for wait in column.waits}
    nodes: Dict[str, List[InWait]] = {}
    for one in seen:
        nodes.setdefault(one_line(one.process.host, 60), []).append(one)
    groups: Dict[object, List[str]] = {}
    for name, some in nodes.items():
        picture = tuple(sorted({(at[one.wait], one.role) for one in some}))
        groups.setdefault(picture if len(nodes) > MOST_NODES else name, []).append(name)
    members = list(groups.values())
    members.sort(key=lambda names: min(_first_role(nodes[name]) for name in names))
    if len(members) > MOST_ROWS:
        members[MOST_ROWS - 1 :] = [[name for names in members[MOST_ROWS - 1 :] for name in names]]
    return tuple(_row(names, [one for name in names for one in nodes[name]], at, len(columns)) for names in members)


def position(process: RankSnapshot) -> str:
    """Its place in parallel groups: `TP 1 · PP 0`."""
    labels = list(process.labels.items())[:_MOST_LABELS]
    return " · ".join(f"{one_line(name, 8).upper()} {value}" for name, value in labels)


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


def _decisive(process: RankSnapshot, judged: ProcessJudgement) -> Tuple[str, str]:
    """The engine's frame, else the one that decides; and the name of its thread."""
    for thread, kind in zip(process.threads, judged.threads):
        if thread.id == judged.wait.thread:
            number = kind.shown if kind.shown is not None else judged.wait.frame
            if number is None or not 0 <= number < len(thread.calls):
                return "", one_line(thread.name, 40)
            frame = thread.calls[number]
            return name_with_place(function(frame.function), place(frame.file, frame.line, frame.module)), one_line(
                thread.name, 40
            )
    return "", ""


def _first_role(some: Sequence[InWait]) -> int:
    return min(_ORDER.index(one.role) for one in some)


def _column(letter: str, waits: Tuple[PlacedWait, ...], some: Sequence[InWait]) -> WaitColumn:
    threads = {one.thread for one in some}
    role = _ORDER[_first_role(some)]
    first = waits[0] if len(waits) == 1 else PlacedWait(f"{len(waits):,} other waits", "", "")
    return WaitColumn(
        letter=letter,
        role=role,
        mark=ROLES[role][0],
        kind=first.kind,
        collective=first.collective,
        where=first.where,
        ranks=_ranks(some, 60),
        number=counted(len(some), "process", "processes"),
        thread=next(iter(threads)) if len(threads) == 1 else f"{len(threads):,} threads",
        positions=_positions(some),
        waits=waits,
    )


def _row(names: Sequence[str], some: Sequence[InWait], at: Mapping[PlacedWait, int], columns: int) -> MatrixRow:
    cells: List[Dict[str, List[InWait]]] = [{} for _ in range(columns)]
    for one in some:
        cells[at[one.wait]].setdefault(one.role, []).append(one)
    shown = ", ".join(filter(None, names[:_MOST_HOSTS])) + ("" if len(names) <= _MOST_HOSTS else ", …")
    return MatrixRow(
        name=shown if len(names) == 1 else f"{len(names):,} nodes",
        about="" if len(names) == 1 else shown,
        cells=tuple(tuple(_set(role, roles[role]) for role in sorted(roles, key=_ORDER.index)) for roles in cells),
    )


def _set(role: str, some: Sequence[InWait]) -> RankSet:
    mark, words = ROLES[role]
    ranks = _ranks(some, 32)
    return RankSet(
        role=role,
        mark=mark,
        ranks=ranks,
        number=len(some),
        positions=_positions(some),
        index=some[0].process.index,
        words=f"{ranks}: {some[0].wait.words}; {words}",
    )


def _ranks(some: Sequence[InWait], limit: int) -> str:
    """`0-2,5`, of processes without numbers their names."""
    numbers = [one.process.rank for one in some if one.process.rank is not None]
    if len(numbers) == len(some):
        return rank_set(numbers, PLAIN, limit)
    processes = [one.process for one in some]
    return one_line(names_of_processes(processes, [one.index for one in processes], PLAIN), 2 * limit)


def _positions(some: Sequence[InWait]) -> str:
    """Places in parallel groups that they have: `TP 0-3 · PP 1`. What stands out here is where to look."""
    values: Dict[str, List[int]] = {}
    for one in some:
        for name, value in list(one.process.labels.items())[:_MOST_LABELS]:
            values.setdefault(name, []).append(value)
    every = [(name, found) for name, found in list(values.items())[:_MOST_LABELS] if len(found) == len(some)]
    return " · ".join(f"{one_line(name, 8).upper()} {rank_set(found, PLAIN, 16)}" for name, found in every)
