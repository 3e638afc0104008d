"""ROCm beneath HIP's public calls (`knowledge.vendor_calls`): the HSA runtime polls signals of the GPU, or sleeps."""

from functools import partial

from gdbext.knowledge.engines.frame_rows import step
from gdbext.knowledge.frame_precedence import LOCK, STEP
from gdbext.knowledge.row_kinds import FrameRule

_SOURCE = "ROCR-Runtime hsa-runtime/core, 6.x"
_HSA = r"(?:rocr::(?:HSA|AMD)::)?"
_CLR = "ROCm/clr rocclr, hipamd/src"

_runtime = partial(FrameRule, rank=STEP + 1)

RULES = (
    FrameRule(
        "hsa-load",
        "module-load",
        rf"rocr::.*::(Freeze|LoadCodeObject\w*|LoadSegments\w*)$|{_HSA}hsa_executable_(freeze|load)\w*"
        rf"|{_HSA}hsa_init$|rocr::core::Runtime::(Load|Acquire)$",
        _SOURCE,
        rank=STEP + 2,
    ),
    _runtime(
        "hsa-copy",
        "memcpy-sync",
        rf"rocr::AMD::(Blit\w+|GpuAgent)::(SubmitLinear\w+|SubmitBlocking\w*|DmaCopy\w*|DmaFill)|{_HSA}hsa_(amd_)?memory_(async_)?(copy|fill)\w*",
        _SOURCE,
    ),
    step(
        "hsa-signal",
        "device-sync",
        r"rocr::core::\w*Signal::Wait\w+|(rocr::)?((HSA|AMD)::)?hsa_(amd_)?signal_wait\w*|amd::roc::\w+::(Wait\w*|wait\w*|releaseGpuMemoryFence)",
        _SOURCE,
    ),
    _runtime(
        "hsa-alloc",
        "device-alloc",
        rf"{_HSA}hsa_(amd_memory_pool_allocate|amd_agents_allow_access|amd_ipc_memory_attach|memory_allocate|amd_vmem_\w+)$"
        r"|hsaKmt(AllocMemory|MapMemoryToGPU)\w*$",
        f"{_SOURCE}; libhsakmt/src/memory.c",
    ),
    _runtime(
        "hsa-free",
        "device-free",
        rf"{_HSA}hsa_(amd_memory_pool_free|amd_ipc_memory_detach|memory_free)$|hsaKmt(FreeMemory|UnmapMemoryToGPU)\w*$",
        f"{_SOURCE}; libhsakmt/src/memory.c",
    ),
    _runtime(
        "hsa-end",
        "device-sync",
        rf"{_HSA}hsa_(shut_down|queue_destroy)$|rocr::core::Runtime::(Release|Unload)$|rocr::AMD::AqlQueue::~AqlQueue$|hsaKmtDestroyQueue$",
        f"{_SOURCE}; libhsakmt/src/queues.c: the queue is taken from the device",
    ),
    FrameRule(
        "clr-event",
        "event-sync",
        r"hip::(Event(DD)?|IPCEvent)::(synchronize|query|awaitEventCompletion|ready)$",
        f"{_CLR}/hip_event.cpp, hip_event_ipc.cpp",
        rank=STEP + 3,
    ),
    FrameRule(
        "clr-device",
        "device-sync",
        r"hip::Device::(SyncAllStreams|WaitActiveStreams|Reset)$",
        f"{_CLR}/hip_device.cpp",
        rank=STEP + 3,
    ),
    _runtime(
        "clr-copy",
        "memcpy-sync",
        r"amd::roc::\w*BlitManager::(\w*[cC]opy\w*|\w*[rR]ead\w*|\w*[wW]rite\w*|fill\w*)$|amd::(Copy|Read|Write|Fill)Memory\w*Command::submit$",
        f"{_CLR}/device/rocm/rocblit.cpp",
    ),
    _runtime(
        "clr-launch",
        "kernel-launch",
        r"amd::roc::VirtualGPU::(dispatch\w+|submitKernel\w*)(<.*>)?$|amd::NDRangeKernelCommand::submit$|hip::GraphExec::Run$",
        f"{_CLR}/device/rocm/rocvirtual.cpp: room in the queue of packets is waited for",
    ),
    FrameRule(
        "clr-load",
        "module-load",
        r"hip::(PlatformState|StatCO|DynCO|FatBinaryInfo|init)\b|amd::(Program|Runtime)::(load|build|init)\w*$",
        f"{_CLR}/hip_platform.cpp, hip_code_object.cpp, hip_context.cpp",
        rank=LOCK,
    ),
    FrameRule(
        "hsa-own-threads",
        "condvar-idle",
        r"rocr::(core::Runtime::AsyncIPCSockServerConnLoop|AMD::(GpuAgent::PcSamplingThread(Run)?|SvmProfileControl::PollSmi(Run)?)"
        r"|os::ThreadTrampoline)$",
        f"{_SOURCE}/runtime/runtime.cpp, amd_gpu_agent.cpp, svm_profiler.cpp: threads of its own",
        helper="GPU driver events",
        leaf=True,
    ),
)
