"""How often each rank has come to a place, counted from a moment at which all of them stood there.

Ranks that run the same code come to a place as often. So the counts tell who has passed it for this turn already, and
who is still on the way. They are unknown until all ranks have stood there together, and after somebody else moved one.
"""

from __future__ import annotations

from typing import Dict, Iterable, Optional


class Turns:
    """Of one breakpoint; ranks by number of the inferior."""

    def __init__(self) -> None:
        self._counts: Optional[Dict[int, int]] = None

    def begin(self, numbers: Iterable[int]) -> None:
        """All of them stand there now."""
        self._counts = dict.fromkeys(numbers, 0)

    def forget(self) -> None:
        self._counts = None

    def came(self, number: int) -> None:
        if self._counts is not None and number in self._counts:
            self._counts[number] += 1

    def known(self, numbers: Iterable[int]) -> bool:
        """Of all these."""
        return self._counts is not None and self._counts.keys() >= set(numbers)

    def is_ahead(self, one: int, other: int) -> bool:
        """Whether `one` has come more often than `other`."""
        return self._counts is not None and self._counts[one] > self._counts[other]
