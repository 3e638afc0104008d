"""Ascend beside its public calls, which `knowledge.vendor_calls` has."""

from gdbext.knowledge.engines.frame_rows import collectives
from gdbext.knowledge.frame_precedence import API, LOCK, OUTER, STEP
from gdbext.knowledge.row_kinds import FrameRule

_TORCH = "Ascend/pytorch torch_npu/csrc"

RULES = (
    FrameRule("hccl", "nccl-group-launch", r"Hccl\w+", "Ascend's collectives", rank=LOCK),
    *collectives("hccl-inside", r"hccl::\w+::", "CANN hccl src/framework"),
    FrameRule(
        "hccl-setup",
        "nccl-init",
        r"hccl::(TopoInfo(Detect|Exchange)\w*|TransportManager|HcclSocket\w*)::\w+|Hcom(Init|CreateGroup)\w*$",
        "CANN hccl src/framework/common, hcom.h: members find each other and connect",
        rank=STEP,
    ),
    FrameRule(
        "acl-operator",
        "kernel-launch",
        r"acl(op(CompileAndExecute|Execute)\w*|mdlExecuteAsync\w*|nn[A-Z]\w*)$",
        "CANN acl_op.h, acl_mdl.h, aclnnop: operators are put into a stream",
        rank=API,
    ),
    FrameRule("acl-model", "stream-sync", r"aclmdlExecute(V2)?$", "CANN acl_mdl.h: returns when it has run", rank=API),
    FrameRule("acl-finalize", "device-sync", r"aclFinalize\w*$", "CANN acl.h", rank=API),
    FrameRule(
        "acl-callbacks",
        "condvar-idle",
        r"aclrtProcessReport$",
        "CANN acl_rt.h: a thread of the program that waits for callbacks of a stream",
        helper="GPU driver events",
    ),
    FrameRule(
        "npu-queue-worker",
        "condvar-idle",
        r"c10_npu::(Repository::Dequeue|StartConsume)$",
        f"{_TORCH}/core/npu/NPUQueue.cpp: the thread that launches what the program has queued",
        helper="NPU task queue",
        leaf=True,
    ),
    FrameRule(
        "npu-queue",
        "kernel-launch",
        r"c10_npu::Repository::(MakeSureQueueEmpty|Enqueue)$",
        f"{_TORCH}/core/npu/NPUQueue.cpp: the program waits for the thread that launches",
        rank=STEP,
    ),
    FrameRule(
        "npu-watchdog",
        "condvar-idle",
        r"c10d_npu::ProcessGroupHCCL::(hcclCommWatchdog\w*|workCleanupLoop|heartbeatMonitor|HCCLDebugEventLoop)$",
        f"{_TORCH}/distributed/ProcessGroupHCCL.cpp",
        helper="NCCL watchdog",
    ),
    FrameRule(
        "npu-work-wait",
        "nccl-group-launch",
        r"c10d_npu::ProcessGroupHCCL::(WorkHCCL::(wait|synchronize)\w*|groupEnd)$",
        f"{_TORCH}/distributed/ProcessGroupHCCL.cpp",
        rank=STEP,
    ),
    FrameRule(
        "npu-comm-init",
        "nccl-init",
        r"c10d_npu::ProcessGroupHCCL::(createHCCLComm\w*|getHCCLComm|broadcastMasterID)$",
        f"{_TORCH}/distributed/ProcessGroupHCCL.cpp",
        rank=STEP,
    ),
    FrameRule(
        "npu-comm-end",
        "nccl-destroy-abort",
        r"c10d_npu::(ProcessGroupHCCL::(~ProcessGroupHCCL|abort\w*|shutdown)|HCCLComm::(destroyHcclComm|~HCCLComm))$",
        f"{_TORCH}/distributed/ProcessGroupHCCL.cpp, HCCLUtils.cpp",
        rank=OUTER,
    ),
)
