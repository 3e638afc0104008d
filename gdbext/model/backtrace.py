"""The stack of one thread for a person: native and Python frames, with the numbers that select them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

from gdbext.model.stack import ThreadStack


@dataclass(frozen=True)
class PythonVariable:
    """A local variable of a Python frame, and what it is in a few words: a number, a text, the shape of a tensor."""

    name: str
    value: str


@dataclass(frozen=True)
class FileLine:
    """A line of a file, as it is now."""

    number: int
    text: str


@dataclass(frozen=True)
class PythonPlace:
    """The selected Python frame of a thread. `number` counts from the innermost one, as `pyN` in `llm-bt`."""

    thread: str
    number: int
    frames: int  # how many there are
    function: Optional[str]
    file: Optional[str]
    line: Optional[int]
    source: Tuple[FileLine, ...] = ()  # the lines around
    source_problem: Optional[str] = None


@dataclass(frozen=True)
class Backtrace:
    """One thread. `numbers` has gdb's number of each frame (`frame N` selects it); None for a frame of Python.

    `variables` are those of each Python frame, from the innermost one on, where they were asked for.
    """

    pid: int
    rank: Optional[int]
    thread: ThreadStack
    numbers: Tuple[Optional[int], ...]
    problems: Tuple[str, ...] = ()
    left_out: int = 0  # outer frames beyond the number that was asked for
    variables: Tuple[Tuple[PythonVariable, ...], ...] = ()

    @property
    def python_numbers(self) -> Tuple[Optional[int], ...]:
        """The number of each Python frame, None for a native one; `llm-py-frame N` selects it."""
        count = -1
        found: List[Optional[int]] = []
        for number in self.numbers:
            count += number is None
            found.append(count if number is None else None)
        return tuple(found)
