"""TensorRT-LLM: where an idle executor waits, and the calls that name a collective."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import collectives
from gdbext.knowledge.frame_precedence import STEP
from gdbext.knowledge.row_kinds import FrameRule

RULES: Tuple[FrameRule, ...] = (
    FrameRule(
        "trt-idle",
        "condvar-idle",
        r"tensorrt_llm::(executor::Executor::Impl::(fetchNewRequests|getNewReqWithIds)|batch_manager::\w+::waitFor\w+)",
        "waits for requests: normal",
        rank=STEP,
        idle=True,
        leaf=True,
    ),
    *collectives(
        "trt", r"tensorrt_llm::(plugins|kernels|torch_ext|_v1::\w+)::", "TensorRT-LLM plugins; NVIDIA/nccl#1550"
    ),
)
