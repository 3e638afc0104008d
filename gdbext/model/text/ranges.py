"""Numbers as people write them: `0-3,7`, `1 rank`, `2 ranks`."""

from __future__ import annotations

from typing import Collection, Iterable, Iterator, List, Tuple

from gdbext.model.text.patterns import regex

_MOST = 1 << 16
_RANGE = regex(r"(\d{1,9})(?:-(\d{1,9}))?")


def spans(numbers: Iterable[int]) -> Iterator[Tuple[int, int]]:
    """First and last of every run of consecutive numbers, ascending."""
    ordered = sorted(set(numbers))
    start = 0
    for position in range(1, len(ordered) + 1):
        if position == len(ordered) or ordered[position] != ordered[position - 1] + 1:
            yield ordered[start], ordered[position - 1]
            start = position


def pieces(numbers: Iterable[int]) -> List[str]:
    """`["0-3", "7"]` for 0, 1, 2, 3, 7; two in a row are a range."""
    return [str(first) if first == last else f"{first}-{last}" for first, last in spans(numbers)]


def ranges_text(numbers: Iterable[int]) -> str:
    """`0-3,7` for 0, 1, 2, 3, 7."""
    return ",".join(pieces(numbers))


def numbers_in(text: str, most: int = _MOST) -> List[int]:
    """0, 1, 2, 3, 7 of `0-3, 7`, as many as `most`."""
    found: List[int] = []
    for first, last in _RANGE.findall(text):
        found += range(int(first), min(int(last or first), int(first) + most) + 1)
        if len(found) >= most:
            break
    return found[:most]


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 thread`, `1,024 threads`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def ranks(numbers: Collection[int]) -> str:
    """`rank 3` or `ranks 0-2,5`."""
    return f"{'rank' if len(set(numbers)) == 1 else 'ranks'} {ranges_text(numbers)}"
