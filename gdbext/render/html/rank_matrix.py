"""The ranks: a cell for each, by node, with the letter of its wait; and the matrix of nodes and waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from gdbext.model.job import RankSnapshot
from gdbext.model.page import Page
from gdbext.model.verdict import Wait
from gdbext.model.waits import shown_kind
from gdbext.render.html.page_words import one_line, rank_place
from gdbext.render.html.rank_waits import ROLES, InWait, MatrixRow, WaitColumn, columns_of, in_wait, position, rows_of

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
class Matrix:
    """`size` is how large a cell can be: large, middle or small. `columns` are waits, `rows` nodes or sets of nodes."""

    nodes: Tuple[NodeOfRanks, ...]
    columns: Tuple[WaitColumn, ...]
    rows: Tuple[MatrixRow, ...]
    size: str
    roles: Tuple[Tuple[str, str, str], ...]  # those that occur: role, mark, words


def matrix(page: Page) -> Matrix:
    """By node, ranks in order; those without a number behind them."""
    snapshot, diagnosis = page.snapshot, page.diagnosis
    judged = {one.index: one for one in diagnosis.processes} if diagnosis else {}
    ordered = sorted(snapshot.processes, key=lambda one: (one.rank is None, one.rank or 0, one.index))
    seen = [in_wait(one, judged.get(one.index), diagnosis) for one in ordered]
    columns = columns_of(seen)
    letters = {wait: column.letter for column in columns for wait in column.waits}
    nodes: Dict[str, List[Cell]] = {}
    for one in seen:
        nodes.setdefault(one_line(one.process.host, 60), []).append(_cell(one.process, one, letters[one.wait]))
    gone = [_absent(number) for number in snapshot.absent[:_MOST_ABSENT]]
    if gone:
        nodes.setdefault("no process", []).extend(gone)
    roles = {one.role for one in seen} | ({"absent"} if gone else set())
    return Matrix(
        nodes=tuple(NodeOfRanks(name, tuple(some)) for name, some in nodes.items()),
        columns=columns,
        rows=rows_of(seen, columns),
        size=size_of(len(ordered) + len(gone)),
        roles=tuple((role, mark, words) for role, (mark, words) in ROLES.items() if role in roles),
    )


def size_of(cells: int) -> str:
    """How large a cell can be where there are so many."""
    return "large" if cells <= _LARGE else "middle" if cells <= _MIDDLE else "small"


def wait_words(wait: Optional[Wait]) -> str:
    """`nccl-group-launch, all_reduce`."""
    if wait is None:
        return "not there"
    return ", ".join(filter(None, (one_line(shown_kind(wait.kind), 60), one_line(wait.collective, 60))))


def _cell(process: RankSnapshot, one: InWait, letter: str) -> Cell:
    mark, role_words = ROLES[one.role]
    where = position(process)
    detail = ", ".join(filter(None, (where, one_line(process.host, 60), f"pid {process.pid}" if process.pid else "")))
    return Cell(
        place=rank_place(process.index),
        name=str(process.rank) if process.rank is not None else "?",
        role=one.role,
        mark=mark,
        letter=letter,
        words=f"{process.label}: {one.wait.words}; {role_words}" + (f" ({detail})" if detail else ""),
        position=where,
        index=process.index,
    )


def _absent(number: int) -> Cell:
    mark, words = ROLES["absent"]
    return Cell(
        place=f"absent{number}", name=str(number), role="absent", mark=mark, letter="", words=f"rank {number}: {words}"
    )
