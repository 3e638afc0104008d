"""Whole numbers in text that others wrote.

`str.isdigit` lets "²" through, which `int` refuses; and `int` refuses more than 4,300 digits (Python 3.11).
"""

from __future__ import annotations

from typing import Optional

MOST = 19
"""Digits: numbers of programs have 64 bits."""


def is_whole(text: Optional[str]) -> bool:
    """Whether it is a decimal number as programs write it."""
    return text is not None and 0 < len(text) <= MOST and text.isascii() and text.isdigit()


def integer_or_none(text: Optional[str]) -> Optional[int]:
    """The number; None for anything else."""
    return int(text) if text is not None and is_whole(text) else None
