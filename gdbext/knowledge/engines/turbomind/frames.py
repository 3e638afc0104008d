"""TurboMind: where an idle worker waits, and the calls that name a collective."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import collectives
from gdbext.knowledge.frame_precedence import STEP
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "turbomind-gateway",
        "condvar-idle",
        r"turbomind::(Gateway|RequestQueue)::(pop|dequeue|wait)\w*",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    *collectives(
        "turbomind", r"turbomind::(comm::)?(NcclCommImpl|CudaIpcCommImpl|HostCommImpl|\w+Comm\w*)::", "TurboMind comm"
    ),
)
