"""When and where a look was taken that is read from a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from gdbext.model.codes import Given
from gdbext.model.job import JobSnapshot


@dataclass(frozen=True)
class Origin:
    """`taken_at`: seconds since the epoch; of core files when the last of them was written."""

    files: Tuple[str, ...]
    taken_at: Optional[float]
    hosts: Tuple[str, ...]
    cores: bool = False

    @staticmethod
    def of(snapshot: JobSnapshot, files: Tuple[str, ...]) -> Origin:
        hosts = tuple(dict.fromkeys(one.host for one in snapshot.processes if one.host))
        cores = any(one.given is Given.CORE for one in snapshot.processes)
        return Origin(files, snapshot.taken_at, hosts, cores)


@dataclass(frozen=True)
class FromFile:
    """An answer, and where the look came from that it is about."""

    answer: object
    origin: Origin
