"""RTP-LLM: where an idle worker waits, and the calls that name a collective."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import collectives
from gdbext.knowledge.frame_precedence import STEP
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "rtp-follower",
        "io",
        r"rtp_llm::(CpuTpBroadcaster|\w*Broadcaster)::(broadcast|recv|read\w*)",
        "followers read the next request from a unix socket: normal",
        rank=STEP,
        idle=True,
        collective=None,
    ),
    FrameRule(
        "rtp-scheduler",
        "condvar-idle",
        r"rtp_llm::\w*Scheduler\w*::(wait|schedule)\w*",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    *collectives("rtp", r"rtp_llm::(exec|CudaDevice::|CustomAllReduceComm::)", "RTP-LLM ExecOps.cc"),
)
