"""The stack of one thread for a person: native and Python frames, with the numbers that select the native ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.stack import ThreadStack


@dataclass(frozen=True)
class Backtrace:
    """One thread. `numbers` has gdb's number of each frame (`frame N` selects it); None for a frame of Python."""

    pid: int
    rank: Optional[int]
    thread: ThreadStack
    numbers: Tuple[Optional[int], ...]
    problems: Tuple[str, ...] = ()
    left_out: int = 0  # outer frames beyond the number that was asked for
