"""What does not wait for ever for a rank that stands still, and for how long it does: one row each.

A source names the release and the file that the number was read in; of a binary, the function that holds it.
"""

from typing import Tuple

from gdbext.knowledge.engines.engine_list import rows
from gdbext.knowledge.engines.engine_row_kinds import TimeoutRow

TIMEOUTS: Tuple[TimeoutRow, ...] = (
    TimeoutRow(
        "NCCL's status service (RAS) calls a stopped rank dead",
        60,
        "libnccl 2.28.9 rasConnsHandleTimeouts: 60e9 ns * NCCL_RAS_TIMEOUT_FACTOR, then it declares the peer dead",
        "NCCL_RAS_TIMEOUT_FACTOR",
        factor=True,
        off=("NCCL_RAS_ENABLE", "0"),
        library="libnccl.so",
    ),
    TimeoutRow(
        "the process group's timeout, where the launch script reads NCCL_TIMEOUT",
        None,
        "no name of libnccl 2.28.9, not found in torch 2.13.0, vllm 0.33.0, sglang 0.5.23: scripts read it",
        "NCCL_TIMEOUT",
    ),
    TimeoutRow(
        "a collective of HCCL fails",
        1836,
        "CANN documentation, HCCL_EXEC_TIMEOUT, from memory: not checked against a release",
        "HCCL_EXEC_TIMEOUT",
        library="libhccl.so",
    ),
    *rows("timeouts", "TIMEOUTS"),
)
