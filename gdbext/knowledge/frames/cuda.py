"""The CUDA runtime and driver by their public names: everything underneath is `??` (libcuda 550, libcudart 12)."""

from __future__ import annotations

from gdbext.knowledge.frames.ranks import API, STEP
from gdbext.knowledge.schema import EmptyName, FrameRule

_GUIDE = "CUDA programming guide, implicit synchronization"
_HIP = "HIP runtime API: the names of CUDA's with another prefix"
_SUFFIX = r"(_v\d+|_ptsz|_ptds|_v\d+_pt[ds]s?z?)*$"

RULES = (
    FrameRule(
        "cuda-pinned-alloc",
        "pinned-host-alloc",
        r"(cuda(MallocHost|HostAlloc|FreeHost|HostRegister|HostUnregister)"
        rf"|cuMem(AllocHost|HostAlloc|FreeHost|HostRegister|HostUnregister)){_SUFFIX}",
        f"{_GUIDE}; NVIDIA/nccl#48",
        rank=API,
    ),
    FrameRule(
        "cuda-device-alloc",
        "device-alloc",
        r"(cudaMalloc(Pitch|3D|Array|3DArray|MipmappedArray|Managed|Async|FromPoolAsync)?"
        r"|cudaIpcOpen(Mem|Event)Handle|cudaDevice(Enable|Disable)PeerAccess|cuCtxEnablePeerAccess"
        r"|cuMem(Alloc|AllocPitch|AllocManaged|AllocAsync|AllocFromPoolAsync|Create|Map|SetAccess|AddressReserve)"
        rf"|cuIpcOpenMemHandle){_SUFFIX}",
        _GUIDE,
        rank=API,
        captures=("size",),
    ),
    FrameRule(
        "cuda-device-free",
        "device-free",
        r"(cudaFree(Array|Async|MipmappedArray)?|cudaIpcCloseMemHandle|cudaMemPool(TrimTo|Destroy)"
        rf"|cuMem(Free|FreeAsync|Unmap|Release|AddressFree|PoolTrimTo)|cuIpcCloseMemHandle){_SUFFIX}",
        f"{_GUIDE}; NVIDIA/nccl#239",
        rank=API,
    ),
    FrameRule(
        "cuda-module-load",
        "module-load",
        r"(cuModule(Load\w*|Unload|GetFunction|GetGlobal|GetLoadingMode)|cuLibrary\w+|cuKernel(GetFunction|GetAttribute|SetAttribute)"
        r"|cuLink\w+|cuFuncLoad|cuFunc[GS]etAttribute|cudaLibrary\w+|cudaFunc(GetAttributes|SetAttribute|SetCacheConfig)"
        r"|cudaGetFuncBySymbol|cudaGetSymbolAddress|cudaGetSymbolSize|__cudaInitModule|__cudaRegisterFatBinary"
        rf"|cudaOccupancy\w+|cuOccupancy\w+){_SUFFIX}",
        "CUDA programming guide, lazy loading; torchcomms PR#2334",
        rank=API,
    ),
    FrameRule(
        "cuda-init",
        "module-load",
        r"(cuInit|cudaInitDevice|cudaSetDevice|cudaGetDeviceCount|cuCtxCreate|cuDevicePrimaryCtxRetain)" + _SUFFIX,
        "context creation; libcudart 12: cudaSetDevice initialises",
        rank=API,
    ),
    FrameRule(
        "cuda-launch",
        "kernel-launch",
        r"(cudaLaunch(Kernel|KernelExC?|CooperativeKernel|CooperativeKernelMultiDevice|HostFunc|Device)?"
        r"|cudaGraph(Launch|Upload|Instantiate\w*)|cuGraph(Launch|Upload|Instantiate\w*)"
        rf"|cuLaunch(Kernel|KernelEx|CooperativeKernel\w*|HostFunc|Grid\w*)?){_SUFFIX}",
        "NVIDIA/nccl#750, #1766",
        rank=API,
        captures=("stream",),
    ),
    FrameRule(
        "cuda-stream-sync",
        "stream-sync",
        rf"cu(da)?Stream(Synchronize|Query){_SUFFIX}",
        "NVIDIA/nccl#585, #1550",
        rank=API,
        captures=("stream",),
    ),
    FrameRule(
        "cuda-event-sync",
        "event-sync",
        rf"cu(da)?Event(Synchronize|Query|Destroy|ElapsedTime){_SUFFIX}",
        "vllm-project/vllm#42897",
        rank=API,
    ),
    FrameRule(
        "cuda-device-sync",
        "device-sync",
        r"(cuda(DeviceSynchronize|ThreadSynchronize|DeviceReset|ThreadExit)"
        rf"|cuCtx(Synchronize|Destroy)|cuDevicePrimaryCtx(Reset|Release)){_SUFFIX}",
        _GUIDE,
        rank=API,
    ),
    FrameRule(
        "cuda-memcpy",
        "memcpy-sync",
        rf"(cuda(Memcpy|Memset|MemPrefetch)\w*|cu(Memcpy|Memset|MemPrefetch)\w*){_SUFFIX}",
        f"{_GUIDE}; NVIDIA/nccl#613",
        rank=API,
        captures=("count", "kind", "stream"),
    ),
    FrameRule("hip-stream-sync", "stream-sync", r"hipStream(Synchronize|Query)", _HIP, rank=API),
    FrameRule("hip-event-sync", "event-sync", r"hipEvent(Synchronize|Query|Destroy)", _HIP, rank=API),
    FrameRule("hip-device-sync", "device-sync", r"hip(DeviceSynchronize|DeviceReset)", _HIP, rank=API),
    FrameRule("hip-copy", "memcpy-sync", r"hip(Memcpy|Memset)\w*", _HIP, rank=API),
    FrameRule("hip-launch", "kernel-launch", r"hip(\w*LaunchKernel\w*|GraphLaunch)", _HIP, rank=API),
    FrameRule("hip-pinned", "pinned-host-alloc", r"hipHost(Malloc|Alloc|Free|Register|Unregister)", _HIP, rank=API),
    FrameRule("hip-alloc", "device-alloc", r"hip(Ext)?Malloc\w*", _HIP, rank=API),
    FrameRule("hip-free", "device-free", r"hipFree(Async|Array)?$", _HIP, rank=API),
    FrameRule("hip-module", "module-load", r"hipModuleLoad\w*", _HIP, rank=API),
    FrameRule(
        "cuda-pointer-query",
        "mutex",
        rf"(cudaPointerGetAttributes|cuPointer[GS]etAttributes?){_SUFFIX}",
        "takes the driver's lock only; libfabric#9003",
        rank=API,
    ),
    FrameRule("cuda-cupti", "mutex", r"(cupti[A-Z]\w+|_nv\d+cupti)", "pytorch/pytorch#60158", rank=STEP),
    FrameRule(
        "cuda-nvrtc",
        "native-compute",
        r"(nvrtcCompileProgram|nvPTXCompilerCompile|nvJitLinkComplete)",
        "NVRTC manual",
        rank=API,
    ),
)

EMPTY = (
    EmptyName(r"libcudart_static_[0-9a-f]{16,}", "local symbols of a static runtime, CUDA 12; NVIDIA/nccl#1550"),
    EmptyName(r"__cudart\d+", "local symbols of a static runtime, CUDA 11; NVIDIA/nccl#901"),
    EmptyName(r"libcuda_[0-9a-f]{16,}", "driver builds with hashed local symbols"),
    EmptyName(
        r"third_party_gpus_cuda_\w+", "a data symbol of an XLA binary printed for driver code; openxla/xla#15144"
    ),
    EmptyName(
        r"(cuEGLApiInit|cuVDPAUCtxCreate|cudbg\w+|cuEGLStream\w+|cuGLInit|cuVDPAU\w+|cuProfilerInitialize|cuGetExportTable)",
        "nearest export of a stripped driver; k2-fsa/snowfall#71",
        module=r"libcuda(\.|debugger)",
    ),
)
