"""The hosts of a job that were asked together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class HostLook:
    """What one host answered. Its clock: `offset` seconds ahead of the caller's, known to `error` seconds."""

    name: str
    read: bool
    reason: str = ""  # why it was not read
    offset: Optional[float] = None
    error: Optional[float] = None
    gdb: Optional[bool] = None  # whether it has one: without it, stacks end where only gdb can name a frame
