"""Totals of one file by row: what tables over ranks are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Optional, Tuple


@dataclass
class Totals:
    """Count, total, least, most of one row of one file."""

    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = 0.0

    def add(self, length: float) -> None:
        self.count += 1
        self.total += length
        self.least, self.most = min(self.least, length), max(self.most, length)


Rows = Dict[Tuple[str, str], Totals]  # (sort, name)


@dataclass
class FileTotals:
    """One file, or the tables of one rank."""

    path: str
    rank: Optional[int] = None
    labels: Mapping[str, int] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)
    window: float = 0.0  # microseconds
    events: int = 0
    problems: List[str] = field(default_factory=list)
