"""Ascend: the runtime (ACL) and HCCL by their public names, which mean what CUDA's and NCCL's do."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.frames.ranks import API, LOCK, OUTER
from gdbext.knowledge.schema import FrameRule

_ACL = "CANN acl_rt.h"
_HCCL = "CANN hccl.h"

_CALLS = (
    ("AllReduce", "all_reduce"),
    ("AllGather", "all_gather"),
    ("Broadcast", "broadcast"),
    ("ReduceScatter", "reduce_scatter"),
    ("Reduce", "reduce"),
    ("AlltoAll", "all_to_all"),
    ("Scatter", "scatter"),
    ("Barrier", "barrier"),
    ("BatchSendRecv", "send_recv"),
    ("Send", "send"),
    ("Recv", "recv"),
)


def _calls() -> Tuple[FrameRule, ...]:
    return tuple(
        FrameRule(
            f"hccl-{collective}", "nccl-group-launch", rf"Hccl{name}V?C?$", _HCCL, rank=API, collective=collective
        )
        for name, collective in _CALLS
    )


def _acl(id: str, kind: str, function: str) -> FrameRule:
    return FrameRule(f"acl-{id}", kind, rf"(aclrt|rt)({function})\w*$", _ACL, rank=API)


RULES = (
    *_calls(),
    FrameRule(
        "hccl-init", "nccl-init", r"Hccl(CommInit\w*|GetRootInfo|CreateSubCommConfig|InitComm\w*)$", _HCCL, rank=OUTER
    ),
    FrameRule("hccl-destroy", "nccl-destroy-abort", r"HcclComm(Destroy|Suspend|Resume)\w*$", _HCCL, rank=OUTER + 1),
    _acl("stream-sync", "stream-sync", "SynchronizeStream|StreamSynchronize"),
    _acl("event-sync", "event-sync", "SynchronizeEvent|EventSynchronize|QueryEvent"),
    _acl("device-sync", "device-sync", "SynchronizeDevice|DeviceSynchronize|ResetDevice"),
    _acl("pinned", "pinned-host-alloc", "MallocHost|FreeHost"),
    _acl("alloc", "device-alloc", "Malloc(?!Host)|MapMem|MallocPhysical"),
    _acl("free", "device-free", "Free(?!Host)|UnmapMem"),
    _acl("copy", "memcpy-sync", "Memcpy|Memset"),
    _acl("launch", "kernel-launch", "LaunchKernel|KernelLaunch|LaunchCallback"),
    FrameRule("hccl", "nccl-group-launch", r"Hccl\w+", "Ascend's collectives", rank=LOCK),
)
