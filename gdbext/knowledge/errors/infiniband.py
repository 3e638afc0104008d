"""Status of a completion of the verbs library: what NCCL and UCX log of a transfer that failed."""

from typing import Mapping

COMPLETIONS: Mapping[int, str] = {
    1: "IBV_WC_LOC_LEN_ERR (a buffer is too short)",
    2: "IBV_WC_LOC_QP_OP_ERR (the queue pair refused the request)",
    4: "IBV_WC_LOC_PROT_ERR (a local buffer is not registered memory)",
    5: "IBV_WC_WR_FLUSH_ERR (the connection had already failed: look for an earlier error)",
    9: "IBV_WC_REM_INV_REQ_ERR (the peer rejected the request)",
    10: "IBV_WC_REM_ACCESS_ERR (the peer's buffer is not registered memory)",
    11: "IBV_WC_REM_OP_ERR (the peer could not complete it)",
    12: "IBV_WC_RETRY_EXC_ERR (the peer did not acknowledge it, so the peer is gone or the link is broken)",
    13: "IBV_WC_RNR_RETRY_EXC_ERR (the peer posts no receive buffers)",
}
"""By number: rdma-core libibverbs/verbs.h, enum ibv_wc_status."""
