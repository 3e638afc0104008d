"""CUDA beside its public calls (`knowledge.vendor_calls`): nothing beneath has names (libcuda 550, libcudart 12)."""

from gdbext.knowledge.frame_precedence import API, STEP
from gdbext.knowledge.row_kinds import EmptyName, FrameRule

RULES = (
    FrameRule(
        "cuda-register",
        "module-load",
        r"__cuda(InitModule|RegisterFatBinary)",
        "CUDA programming guide, lazy loading; torchcomms PR#2334",
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
    EmptyName(r"_*mh_execute_header$", "the start of the file, which stands for all code of a stripped macOS program"),
    EmptyName(r"_*funlockfile$", "nearest export to the signal trampoline in a stripped glibc", r"libpthread|$"),
    EmptyName(r"__nss_database_lookup$", "nearest export to memcpy in a stripped glibc", r"libc[.-]|$"),
    EmptyName(r"pseudo_end$", "Genode lx_syscall.S: the label behind the instruction of every system call"),
    EmptyName(r"__cp_(begin|end|cancel)$", "musl syscall_cp.s: labels around the instruction of a system call"),
    EmptyName(r"<function called from gdb>$", "gdb manual, calling program functions"),
)
