"""The kind of rows that explain error numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class ErrorRow:
    """What a number means. `prints` is what the library's own text function says: messages show it."""

    number: int
    meaning: str
    source: str
    sticky: Optional[bool] = False
    causes: Tuple[str, ...] = ()
    steps: Tuple[str, ...] = ()
    prints: str = ""
