"""FasterTransformer: its wrappers of NCCL, which name the collective."""

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import collectives
from gdbext.knowledge.row_kinds import FrameRule

# What FasterTransformer's wrappers are called with: NcclParam comes by value.
_NCCL_PARAM = (
    "data_size",
    "nccl_param.rank_",
    "nccl_param.world_size_",
    "nccl_param.nccl_comm_",
    "nccl_param.nccl_comm_->commHash",
    "nccl_param.nccl_comm_->opCount",
)

RULES: Tuple[FrameRule, ...] = (
    *collectives(
        "ft",
        r"fastertransformer::(ftNccl|CudaDevice::|\w+CommBase<\w+>::|CustomAllReduceComm<\w+>::)",
        "FasterTransformer, RTP-LLM v0",
        captures=_NCCL_PARAM,
    ),
)
