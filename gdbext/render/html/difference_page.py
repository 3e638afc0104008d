"""Two looks compared, as one HTML file: who moved, which stacks came and went, which counters advanced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from gdbext.model.difference import JobDifference, RankDifference, StackDifference
from gdbext.model.look_origin import Origin
from gdbext.model.text.ranges import counted
from gdbext.model.waits import shown_kind
from gdbext.render.html.page_file import page_file
from gdbext.render.html.page_words import PLAIN, SENTENCE, function, one_line
from gdbext.render.html.rank_matrix import size_of
from gdbext.render.safe_text import rank_set
from gdbext.render.text.difference import WORDS, origin_words, sums

_LOOKS: Mapping[str, Tuple[str, str]] = {
    "moved": ("→", "idle"),
    "same": ("=", "waits"),
    "unknown": ("?", "unread"),
    "new": ("+", "apart"),
    "gone": ("✕", "absent"),
}
"""What a rank did: its mark, and the role whose colours it has."""
_PARTS = {"moves": "Ranks", "changes": "Stacks", "counters": "Launched collectives", "notes": "Limits"}
MOST_CELLS, MOST_ROWS, MOST_STACKS, MOST_CALLS, MOST_COUNTS = 4096, 200, 100, 128, 400
_FEW = 6
"""Calls of a stack that are shown at once, the innermost."""


@dataclass(frozen=True)
class _Cell:
    name: str
    role: str
    mark: str
    words: str


@dataclass(frozen=True)
class _Row:
    """Ranks that did the same."""

    role: str
    mark: str
    state: str
    ranks: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class _Stack:
    """Callers first; `outer` are folded away."""

    before: str
    after: str
    outer: Tuple[str, ...]
    inner: Tuple[str, ...]
    more: str


def page_text(found: JobDifference) -> str:
    """The whole file. `found` is without secrets."""
    counts = [
        (
            one_line(one.name, 60),
            one_line(count.kind, 60),
            f"{count.communicator:#x}",
            f"{count.before:,}",
            f"{count.after:,}",
        )
        for one in found.ranks
        for count in one.counts
    ]
    rows = _rows(found.ranks)
    parts = {
        "moves": found.ranks,
        "changes": found.stacks,
        "counters": counts,
        "notes": found.notes,
    }
    states = {one.state for one in found.ranks}
    context: Dict[str, Any] = {
        "titles": _PARTS,
        "parts": [name for name in _PARTS if parts[name]],
        "headline": sums(found),
        "looks": [(name, one_line(origin_words(one), 600)) for name, one in _looks(found)],
        "cells": list(map(_cell, found.ranks[:MOST_CELLS])),
        "size": size_of(len(found.ranks)),
        "key": [(_LOOKS[state], WORDS[state]) for state in _LOOKS if state in states],
        "rows": rows[:MOST_ROWS],
        "more_rows": max(len(rows) - MOST_ROWS, 0),
        "stacks": [_stack(one, found.counts) for one in found.stacks[:MOST_STACKS]],
        "more_stacks": max(len(found.stacks) - MOST_STACKS, 0),
        "counts": counts[:MOST_COUNTS],
        "more_counts": max(len(counts) - MOST_COUNTS, 0),
        "notes": [one_line(note, SENTENCE) for note in found.notes[:24]],
    }
    return page_file("difference.html", ("theme.js",), context)


def _looks(found: JobDifference) -> Sequence[Tuple[str, Origin]]:
    return (("Before", found.before), ("After", found.after))


def _look(state: str) -> Tuple[str, str, str]:
    """Mark, role and words of what a rank did."""
    return (*_LOOKS.get(state, _LOOKS["unknown"]), WORDS.get(state) or one_line(state, 40))


def _cell(one: RankDifference) -> _Cell:
    mark, role, state = _look(one.state)
    waits = " → ".join(
        dict.fromkeys(one_line(shown_kind(kind), 60) for kind in (one.wait_before, one.wait_after) if kind)
    )
    name = str(one.rank) if one.rank is not None else "?"
    return _Cell(name, role, mark, f"{one_line(one.name, 60)}: {state}" + (f" ({waits})" if waits else ""))


def _rows(ranks: Sequence[RankDifference]) -> List[_Row]:
    """Ranks that did the same in one row, in the order of `_LOOKS`."""
    groups: Dict[Tuple[str, Optional[str], Optional[str], Optional[str]], List[RankDifference]] = {}
    for one in ranks:
        groups.setdefault((one.state, one.wait_before, one.wait_after, one.why), []).append(one)
    order = list(_LOOKS)
    keys = sorted(groups, key=lambda key: (order.index(key[0]) if key[0] in order else len(order), -len(groups[key])))
    return [
        _Row(
            role=_look(state)[1],
            mark=_look(state)[0],
            state=_look(state)[2],
            ranks=_names(groups[state, before, after, why]),
            before=one_line(before, 60),
            after=one_line(after, 60),
            why=one_line(why, 200),
        )
        for state, before, after, why in keys
    ]


def _names(some: Sequence[RankDifference]) -> str:
    numbers = [one.rank for one in some if one.rank is not None]
    if len(numbers) == len(some):
        return rank_set(numbers, PLAIN, 60)
    shown = ", ".join(one_line(one.name, 40) for one in some[:4])
    return shown if len(some) <= 4 else f"{shown} and {len(some) - 4:,} more"


def _stack(one: StackDifference, counts: str) -> _Stack:
    calls = tuple(function(name) for name in one.calls[-MOST_CALLS:])
    few = calls if len(calls) <= _FEW + 2 else calls[-_FEW:]
    outer = calls[: len(calls) - len(few)]
    return _Stack(
        before=_counts_with_ranks(one.before, counts),
        after=_counts_with_ranks(one.after, counts),
        outer=outer,
        inner=few,
        more=counted(len(one.calls) - len(few), "call") if outer else "",
    )


def _counts_with_ranks(numbers: Sequence[int], counts: str) -> str:
    if not numbers:
        return "nobody"
    nouns = ("process", "processes") if counts == "process" else ("rank", "ranks")
    return f"{nouns[len(numbers) != 1]} {rank_set(numbers, PLAIN, 60)}"
