"""ROCm beneath HIP's public calls (`knowledge.vendor_calls`): the HSA runtime polls signals of the GPU, or sleeps."""

from gdbext.knowledge.frame_precedence import STEP
from gdbext.knowledge.row_kinds import FrameRule

_SOURCE = "ROCR-Runtime hsa-runtime/core, 6.x"

RULES = (
    FrameRule(
        "hsa-load",
        "module-load",
        r"rocr::.*::(Freeze|LoadCodeObject\w*|LoadSegments\w*)$|hsa_executable_(freeze|load)\w*",
        _SOURCE,
        rank=STEP + 2,
    ),
    FrameRule(
        "hsa-copy",
        "memcpy-sync",
        r"rocr::AMD::(Blit\w+|GpuAgent)::(SubmitLinear\w+|SubmitBlocking\w*|DmaCopy\w*|DmaFill)|hsa_amd_memory_(async_)?copy\w*"
        r"|hsa_memory_copy",
        _SOURCE,
        rank=STEP + 1,
    ),
    FrameRule(
        "hsa-signal",
        "device-sync",
        r"rocr::core::\w*Signal::Wait\w+|(rocr::)?(HSA::)?hsa_(amd_)?signal_wait\w*|amd::roc::\w+::(Wait\w*|wait\w*|releaseGpuMemoryFence)",
        _SOURCE,
        rank=STEP,
    ),
)
