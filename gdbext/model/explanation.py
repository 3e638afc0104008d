"""What a label of the answer means: for a person who reads it for the first time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.model.verdict import Remedy


@dataclass(frozen=True)
class Sign:
    """One way to recognise a label. `source` is where it was reported or what it was checked against."""

    text: str
    source: str
    reason: str = ""  # why it comes about


@dataclass(frozen=True)
class Explanation:
    """A wait, a cause or the state of an end: `sort` says which. Remedies come with their condition."""

    label: str
    sort: str  # "wait", "cause" or "state"
    meaning: str
    signs: Tuple[Sign, ...] = ()
    remedies: Tuple[Remedy, ...] = ()
    related: Tuple[str, ...] = ()  # causes that show this wait, waits that this cause shows
    sources: Tuple[str, ...] = ()
    calls: Tuple[str, ...] = ()  # of a wait: calls by which it is known best, where `signs` are patterns of all


@dataclass(frozen=True)
class Glossary:
    """All labels of one vocabulary with their meaning."""

    waits: Tuple[Explanation, ...]
    causes: Tuple[Explanation, ...]
    states: Tuple[Explanation, ...]  # of what a wait chain ends at
