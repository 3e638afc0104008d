"""Waits behind other interfaces than CUDA's and HIP's: OpenCL, SYCL, Level Zero, Metal, Vulkan, ROCclr."""

from functools import partial

from gdbext.knowledge.engines.frame_rows import step
from gdbext.knowledge.frame_precedence import API, LOCK, STEP
from gdbext.knowledge.row_kinds import FrameRule

_api = partial(FrameRule, rank=API)
_driver = partial(FrameRule, rank=LOCK)

RULES = (
    _api("opencl-finish", "stream-sync", r"cl(Finish|Flush)(\w*)$", "CL/cl.h"),
    _api("opencl-event", "event-sync", r"cl(WaitForEvents|EnqueueWaitForEvents|GetEvent(Profiling)?Info)$", "CL/cl.h"),
    _api(
        "opencl-copy",
        "memcpy-sync",
        r"clEnqueue(Read|Write|Copy|Map|Fill|SVMMemcpy|Migrate)\w*$",
        "CL/cl.h: blocking reads, writes and maps",
    ),
    _api("opencl-build", "module-load", r"cl(Build|Compile|Link)Program\w*|clCreateProgram\w*$", "CL/cl.h"),
    _api(
        "opencl-launch",
        "kernel-launch",
        r"clEnqueue(NDRangeKernel|Task|NativeKernel|Barrier\w*"
        r"|Marker\w*)$",
        "CL/cl.h",
    ),
    _driver(
        "opencl-queue",
        "condvar-idle",
        r"cl(Create|Release)(CommandQueue|Context)\w*$",
        "CL/cl.h; ROCT-Thunk-Interface#56",
    ),
    step(
        "openmp-offload",
        "stream-sync",
        r"GOMP_OFFLOAD_\w*(synchronize|wait)|acc_wait|__pgi_uacc_\w*wait|__tgt_rtl_(synchronize\w*|query_async)"
        r"|llvm::omp::target::plugin::\w+::(wait\w*|\w*[Ss]ynchronize\w*)",
        "LLVM openmp/libomptarget plugins; llvm-project#64572; libgomp/plugin; NVHPC",
    ),
    _driver(
        "kokkos-fence",
        "device-sync",
        r"Kokkos::(\w+::)*\w*fence\w*|alpaka::(\w+::)*wait|rmm::cuda_stream_view::synchronize",
        "Kokkos::fence, alpaka::wait, rmm/cuda_stream_view.hpp",
    ),
    _driver(
        "openvino-wait",
        "event-sync",
        r"(ov|InferenceEngine)::\w*(InferRequest|AsyncInfer\w*|IAsyncInfer\w*)::\w*[wW]ait",
        "OpenVINO infer requests",
    ),
    step(
        "iree-wait",
        "event-sync",
        r"iree_hal_(\w+_)?(semaphore|device|fence)\w*_(wait|multi_wait)\w*",
        "iree/hal/semaphore.h; amd-shark-ai#888",
    ),
    step(
        "sycl-wait",
        "stream-sync",
        r"(sycl|cl::sycl)::(_V\d+::)?(queue|detail::queue_impl)::(wait\w*|finish|throw_asynchronous)|(?:ur_?\w*::(?:\w+::)?)?(ur|pi"
        r"|zur)Queue(Finish|Flush)|(v2::)?ur_queue_\w+::queueFinish$",
        "SYCL 2020 queue::wait; Unified Runtime",
    ),
    step(
        "sycl-event",
        "event-sync",
        r"(sycl|cl::sycl)::(_V\d+::)?(event|detail::event_impl)::\w*(wait|get_profiling)\w*|(?:ur_?\w*::(?:\w+::)?)?(ur|pi)Events?(Wait\w*"
        r"|GetInfo|GetProfilingInfo)|L0::EventImp\w*(<.*>)?::(host|query)\w*",
        "SYCL 2020 event::wait; Unified Runtime, Level Zero",
    ),
    _driver(
        "intel-driver",
        "device-sync",
        r"NEO::(\w+::)*(wait\w*|\w*[Ww]aitFor\w*|ioctl)$|L0::(CommandQueue|Fence"
        r"|CommandList)\w*(<.*>)?::\w*(ynchronize|[Ww]ait)\w*",
        "intel/compute-runtime",
    ),
    _driver(
        "intel-driver-threads",
        "condvar-idle",
        r"NEO::(DirectSubmissionController::\w+|DrmGemCloseWorker::(worker|close)|AsyncEventsHandler::asyncProcess"
        r"|UnifiedMemoryReuseCleaner::\w+|DeferredDeleter::run|IpcSocketServer::\w+)$",
        "intel/compute-runtime shared/source: threads of the driver",
        helper="GPU driver events",
        leaf=True,
    ),
    step("torch-xpu", "device-sync", r"c10::xpu::syncStreamsOnDevice$", "torch c10/xpu/XPUStream.cpp"),
    _api(
        "neuron-execute",
        "device-sync",
        r"nrt_(execute\w*|tensor_(read|write|copy)\w*|barrier|async_sendrecv\w*)$",
        "aws-neuron libnrt nrt.h: returns when the core has run the model",
    ),
    _api("neuron-load", "module-load", r"nrt_(init|load\w*|build_global_comm)$", "aws-neuron libnrt nrt.h"),
    step(
        "metal-wait",
        "stream-sync",
        r"\W\W\w+ waitUntil(Completed|Scheduled)|at::mps::MPS(Stream::synchronize|Hooks::deviceSynchronize)"
        r"|torch::mps::MPSModule_\w*[sS]ynchronize"
        r"|mlx::core::(synchronize|eval|array::wait)|ggml_(backend_)?metal_\w*synchronize",
        "Metal MTLCommandBuffer; torch MPSStream.mm",
    ),
    step(
        "vulkan-wait",
        "stream-sync",
        r"vk(WaitForFences|WaitSemaphores\w*|QueueWaitIdle|DeviceWaitIdle|GetFenceStatus)$|ggml_vk_(wait_for_fence"
        r"|synchronize)|vk::\w+::wait\w+",
        "vulkan_core.h; ggml-vulkan.cpp",
    ),
    FrameRule(
        "rocclr-wait",
        "stream-sync",
        r"amd::(Event|Command|HostQueue)::(awaitCompletion|finish)|hip::(Stream|Event|NullStream)::(finish|Finish"
        r"|synchronize|awaitEvent)",
        "ROCm/clr hipamd and rocclr",
        rank=STEP + 2,
    ),
    _driver(
        "hsakmt-wait",
        "device-sync",
        r"hsaKmtWaitOn(Multiple)?Events?\w*|hsakmt_ioctl|kmtIoctl$",
        "ROCT-Thunk-Interface events.c",
    ),
    step(
        "pjrt-wait",
        "stream-sync",
        r"xla::((ifrt|internal)::)?(PjRt|TfrtCpu|Tpu|Common|PyArray|Future)\w*(<.*>)?::\w*(Await|BlockHost|BlockUntilReady|ToLiteralSync|Synchronize)"
        r"|tsl::AsyncValue\w*::\w*Wait|tpu::System::\w*Wait",
        "openxla pjrt_client.h",
    ),
    _driver(
        "gpu-jl",
        "stream-sync",
        r"(julia_|japi1_)?(nonblocking|device)_synchronize\b",
        "CUDA.jl lib/cudadrv/stream.jl, AMDGPU.jl",
    ),
)
