"""The exit status of `gdbext`: one table for all commands (docs/exit-status.md)."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

from gdbext.model.errors import FINDING, NOTHING, OK, UNTOLD

ALL, PART, NONE = "all", "part", "none"
"""How much of what was asked for could be read."""

_TABLE: Mapping[Tuple[str, Optional[bool]], int] = {
    (ALL, False): OK,
    (ALL, True): FINDING,
    (ALL, None): UNTOLD,
    (PART, False): UNTOLD,  # what was not read may hide it
    (PART, True): FINDING,
    (PART, None): UNTOLD,
    (NONE, False): NOTHING,
    (NONE, True): NOTHING,
    (NONE, None): NOTHING,
}


def exit_status(found: Optional[bool], read: str = ALL) -> int:
    """`found`: whether something hangs, failed or is late, as far as it is proven; None: the evidence does not decide.
    `read`: how much could be read."""
    return _TABLE[read, found]
