"""Lines of Python that call a collective, in which a rank waits for those that are held at its breakpoint."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Optional

_TORCH = (
    "all_reduce all_reduce_coalesced broadcast broadcast_object_list all_gather all_gather_into_tensor "
    "all_gather_object all_gather_coalesced gather_object scatter_object_list reduce_scatter reduce_scatter_tensor "
    "all_to_all all_to_all_single barrier monitored_barrier"
)
"""torch.distributed (distributed_c10d.py); mindspore.mint.distributed has the same names. Without `reduce`, `gather`
and `scatter`: tensors and functools have these, too."""
_VLLM = (
    "tensor_model_parallel_all_reduce tensor_model_parallel_all_gather tensor_model_parallel_gather "
    "tensor_model_parallel_reduce_scatter broadcast_tensor_dict"
)
"""vllm/distributed/communication_op.py; SGLang has the same."""
_MPI = "Allreduce allreduce Allgather allgather Alltoall alltoall Bcast bcast Reduce_scatter Barrier"
"""Methods of mpi4py's Comm."""
NAMES = frozenset(f"{_TORCH} {_VLLM} {_MPI}".split())


def called_at(code: CodeType, line: int, last: Optional[int] = None) -> Optional[str]:
    """The first collective that is named on a line, or on those up to `last`."""
    now = 0
    for instruction in dis.get_instructions(code):
        start = getattr(instruction, "line_number", None)  # Python 3.13: `starts_line` is a bool there
        if start is None and not isinstance(instruction.starts_line, bool):
            start = instruction.starts_line
        now = start or now
        if line <= now <= (last or line) and isinstance(instruction.argval, str) and instruction.argval in NAMES:
            return instruction.argval
    return None
