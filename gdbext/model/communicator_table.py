"""All communicators of a job, and the processes in which they were looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from gdbext.model.communicator import CommunicatorGroup, Member
from gdbext.model.job import RankSnapshot


@dataclass(frozen=True)
class CommunicatorTable:
    """Every communicator that was found in the ranks that were looked at."""

    groups: Tuple[CommunicatorGroup, ...]
    processes: Tuple[RankSnapshot, ...]
    unreadable: Tuple[Member, ...] = ()  # addresses that frames name and that could not be read
    notes: Tuple[str, ...] = ()
