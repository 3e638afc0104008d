"""A rank of this host that has not come to a breakpoint yet: its process, which may end before it comes."""

from __future__ import annotations

import os
from typing import List, Optional, Tuple

from gdbext.rankpdb.identity import Identity, is_ending, job_of, parent_of, rank_of, start_time


class Absent:
    """Found by the variables of its launcher. `has_ended` is False as long as the process was never seen."""

    def __init__(self, me: Identity, rank: int) -> None:
        self._me, self._rank = me, rank
        self._found = _find(me.job, rank)

    @property
    def pid(self) -> Optional[int]:
        return self._found[0] if self._found else None

    def has_ended(self) -> bool:
        if self._found is None:
            self._found = _find(self._me.job, self._rank)
            return False
        pid, start = self._found
        return start_time(pid) != start or is_ending(pid, start)


def _find(job: str, rank: int) -> Optional[Tuple[int, str]]:
    """Its children (workers of a data loader) have its environment, too: the oldest process is the rank."""
    found: List[Tuple[int, int]] = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                entries = file.read().decode("utf-8", "replace").split("\0")
        except OSError:  # another user's, or gone
            continue
        environ = dict(entry.partition("=")[::2] for entry in entries)
        start = start_time(pid)
        if rank_of(environ) == rank and job_of(environ, parent_of(pid)) == job and not is_ending(pid, start):
            found.append((int(start), pid))
    return (min(found)[1], str(min(found)[0])) if found else None
