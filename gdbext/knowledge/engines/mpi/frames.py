"""nccl-tests: polls a stream."""

from typing import Tuple

from gdbext.knowledge.frame_precedence import LEAF
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "nccl-tests-poll",
        "stream-sync",
        r"(TimeTest|BenchTime|testStreamSynchronize|startColl|completeColl|CheckData)\b",
        "NVIDIA/nccl-tests common.cu: polls cudaStreamQuery and yields",
        rank=LEAF + 5,
        leaf=True,
    ),
)
