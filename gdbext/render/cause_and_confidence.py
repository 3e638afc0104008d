"""`missing-rank (high confidence)`: how an answer begins, wherever it is shown."""

from __future__ import annotations

from typing import Optional


def cause_and_confidence(cause: str, confidence: Optional[str]) -> str:
    """`missing-rank (high confidence)`; `unknown` has no grade: nobody can be confident of no cause."""
    return cause if cause == "unknown" else f"{cause} ({confidence} confidence)"
