"""A CUDA stream or event of the program, as far as it is known without asking the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.missing import Maybe, Missing

NOT_ASKED = Missing("only the driver knows it, and it is not called")
NOT_IN_HANDLE = Missing("the handle does not say it")


@dataclass(frozen=True)
class StreamInfo:
    """One handle. `kind`: default, legacy, per-thread, pool, user, event, or unverified for a bare number."""

    expression: str
    type_name: str
    kind: str
    handle: Maybe[int]
    device: Maybe[int] = NOT_IN_HANDLE
    pool_index: Optional[int] = None  # in torch's pool
    priority: Optional[int] = None  # torch's: 0 is the lowest, -1 goes before it
    state: Maybe[str] = NOT_ASKED
    notes: Tuple[str, ...] = ()
