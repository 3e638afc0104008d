"""Which timeouts run while a rank stands still."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Iterable, List, Mapping, Optional, Tuple

from gdbext.knowledge.causes.timeouts import TIMEOUTS
from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow


@dataclass(frozen=True)
class Timeout:
    """What happens after how long, and who says so."""

    seconds: float
    what: str
    variable: str = ""  # that says it, where one is set
    source: str = ""

    def words(self) -> str:
        """`after 60 s NCCL's status service ...`."""
        said = f" ({self.variable})" if self.variable else ""
        return f"after {self.seconds:g} s {self.what}{said}"


def timeouts_of(environ: Mapping[str, str], files: Iterable[str], engine: Optional[str]) -> Tuple[Timeout, ...]:
    """Those of a process with these variables and mapped files, the nearest first."""
    names = {os.path.basename(file) for file in files}
    found: List[Timeout] = []
    for row in TIMEOUTS:
        if row.engine and row.engine != engine:
            continue
        if row.library and not any(name.startswith(row.library) for name in names):
            continue
        if row.off[0] and environ.get(row.off[0]) == row.off[1]:
            continue
        given = _number(environ.get(row.variable, "")) if row.variable else None
        seconds = _seconds(row, given)
        if seconds is not None:
            said = f"{row.variable}={environ[row.variable]}" if given is not None else ""
            found.append(Timeout(seconds, row.what, said, row.source))
    return tuple(sorted(found, key=lambda one: one.seconds))


def _seconds(row: TimeoutRow, given: Optional[float]) -> Optional[float]:
    if given is None:
        return row.seconds
    return given * (row.seconds or 0) if row.factor else given * row.unit


def _number(text: str) -> Optional[float]:
    try:
        found = float(text[:32])
    except ValueError:
        return None
    return found if math.isfinite(found) and found > 0 else None
