"""What an answer rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Evidence:
    """One statement and the place that shows it."""

    text: str
    process: Optional[int] = None  # index
    thread: Optional[str] = None
    frame: Optional[int] = None
