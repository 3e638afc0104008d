"""What a field of a saved snapshot must be beyond its type, because the code that reads it later relies on it.

What concerns several fields stands in model/snapshot_files/consistency.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Tuple

from gdbext.model.activity import Activity
from gdbext.model.gpu_core import ResidentKernel, WarpPlace
from gdbext.model.gpu_errors import SIDES, DevicePlace, GpuError, NearestAllocation
from gdbext.model.job import AFTER, JobSnapshot, RankSnapshot
from gdbext.model.locks import KINDS, LockWait
from gdbext.model.snapshot_files import limits
from gdbext.model.stack import LANGUAGES, Frame, ThreadStack
from gdbext.model.witness import STATES as ANSWERS
from gdbext.model.witness import Statement, Witness


@dataclass(frozen=True)
class Rule:
    """What values of a field are good: for a text one of `labels`, for a number (or those in a list) a range."""

    labels: Tuple[str, ...] = ()
    least: float = 0
    most: float = (1 << 64) - 1


NATURAL = Rule()
AMOUNT = Rule(most=limits.FLOAT)

RULES: Mapping[type, Mapping[str, Rule]] = {
    JobSnapshot: {"taken_at": Rule(most=limits.YEAR_10000), "world_size": NATURAL, "absent": NATURAL, "apart": AMOUNT},
    RankSnapshot: {
        "index": NATURAL,
        "pid": NATURAL,
        "rank": NATURAL,
        "local_rank": NATURAL,
        "world_size": NATURAL,
        "pause_ms": AMOUNT,
        "after": Rule(tuple(AFTER)),
    },
    ThreadStack: {"lwp": NATURAL, "still": NATURAL, "switches": NATURAL},
    Frame: {"language": Rule(LANGUAGES)},
    LockWait: {"thread": NATURAL, "kind": Rule(tuple(KINDS))},
    GpuError: {"size": NATURAL, "address": NATURAL, "hazards": NATURAL, "count": NATURAL, "host_thread": NATURAL},
    ResidentKernel: {"device": NATURAL, "host_tid": NATURAL, "blocks": NATURAL, "warps": NATURAL},
    WarpPlace: {"warps": NATURAL, "pc": NATURAL},
    DevicePlace: {"line": NATURAL, "offset": NATURAL},
    NearestAllocation: {"side": Rule(SIDES), "distance": NATURAL, "address": NATURAL, "size": NATURAL},
    Activity: {"seconds": AMOUNT},
    Witness: {"state": Rule(ANSWERS)},
    Statement: {"process": NATURAL},
}
"""By type and field. Numbers that are not here may be any of 128 bits: they are as the memory of a rank had them."""
