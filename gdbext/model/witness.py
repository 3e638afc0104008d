"""What others than the stacks say of a job: each witness is asked before the stop, and may be absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

STATES = ("present", "absent", "failed")


@dataclass(frozen=True)
class Statement:
    """One thing that a witness says. `says` is a label of knowledge/causes/witnesses.py: what the verdict makes of
    it."""

    text: str
    says: str = "fact"
    process: Optional[int] = None  # index of the process it is about; None: the job, the host, or nobody known


@dataclass(frozen=True)
class Witness:
    """One witness. `state`: "present" (it answered), "absent" (it is not there) or "failed" (it gave no sense)."""

    name: str
    state: str
    reason: str = ""  # why it is absent or failed; who it is when it is present
    statements: Tuple[Statement, ...] = ()
