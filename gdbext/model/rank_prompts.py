"""The ranks of Python programs that have come to a breakpoint_(), as each of them says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple, Union


@dataclass(frozen=True)
class RankPrompts:
    """The answer of `gdbext pdb --list`: of each rank its job, number, pid and state, where it is, who waits for it."""

    ranks: Tuple[Mapping[str, Union[str, int, Tuple[int, ...], None]], ...]
