"""Kinds of waits, functions and words that remedies share."""

from gdbext.knowledge.causes.held_by_frames import ENDS, EXITS
from gdbext.knowledge.frames.networks.mpi import RETURNS_AT_ONCE
from gdbext.knowledge.frames.system.code_owners import RUNS_LOCKED

SANITIZER = "Compute Sanitizer manual, NVIDIA"
ALLOCATES = ("pinned-host-alloc", "device-alloc", "device-free")
FOR_THE_GPU = ("stream-sync", "event-sync", "device-sync", "kernel-launch", "memcpy-sync", "nccl-group-launch")
APPLE = r"-\[|MTL|at::mps::"
"""Functions of Apple's GPU stack: one GPU, no NCCL."""
PARENTS = ("launcher-watches", "python-spawn-join", "python-child")
"""Frame rules of launchers and parents, which have no other work than to wait for their processes."""
CHILD_WAITS = r"_*(?:GI_+)?_*(?:wait4|waitpid|waitid|libc_wait)(?:_nocancel|64)?(?:@\S*)?$|(?:\w+\.)*_try_wait$"
"""Calls that wait for the end of a child; `_try_wait` is of Python's subprocess."""
RDMA_COMMANDS = r"ibv_cmd_\w+|execute_ioctl$|cxil_\w+$"
"""A write() or an ioctl() to the file of a network's driver: /dev/infiniband/uverbsN (rdma-core libibverbs/cmd*.c),
/dev/cxiN (libcxi.c)."""
GRPC_CALLS = r"grpc::(?:internal::)?(?:Client(?:Reader|Writer|ReaderWriter)|BlockingUnaryCall(?:Impl)?)\b"
GRPC_IN_PYTHON = "grpc-call"
"""Synchronous calls of a gRPC client (grpcpp sync_stream.h, client_unary_call.h), and the frame rule of grpcio's."""
AFTER_HANG = (
    "See in the later lines of the kernel log whether the driver has reset the GPU (reboot the host if that failed); "
    "then restart every job that used this GPU"
)
POLLS = (
    rf"{RETURNS_AT_ONCE}|update_time_cache$|vgetns$|__vdso_\w+$|do_(?:monotonic|realtime)\w*$"
    r"|_*(?:vdso_)?(?:clock_)?gettime(?:ofday)?$"
)
"""Who asks or reads the clock does so again and again: its innermost frames change, whether or not it goes on."""
SHUTS_DOWN = f"(?:{ENDS})|(?:{EXITS})"
ABORTS_COMMUNICATOR = r"(?:\w+::)*\w*Comm\w*Abort$|(?:\w+::)+abort$"
BUILDS_EXTENSION = r"(?:_jit_compile|load_inline|.*file_baton)"
ADDRESS = (
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f]{0,4}:[0-9a-f:]{2,40}\]"
    r"|\b(?![\w./-]{0,80}\.(?:cc?|cpp|cu|h|hpp|py|rs|go):)[A-Za-z][\w.-]{0,80}:\d{4,5}\b(?![:\]])"
)
"""An address of the network in a line of a log: of IPv4, of IPv6 between brackets, or a host with a port."""
PEER = r"Connecting to rank \d|remoteRank\W{0,4}\d"
"""The rank to which a connection was wanted, in such a line."""
STATIC_INITIALIZER = r".*\.<clinit>$"
"""Where the JVM initializes a class."""
BY_OPENJDK = r"waiting to lock monitor 0x|ownable synchronizer 0x"
"""Lines of `locked-twice` that come from a detector, of threads in a circle."""
CHECK_OF_ENGINE = r"\[(?:FT|TM|TensorRT-LLM)\]\[ERROR\] CUDA runtime error(?: in [^:]{1,120})?: (?!out of memory)"
"""A failed check of FasterTransformer, TurboMind or TensorRT-LLM, which names the source line and the error."""
GIL_HOLDER = (
    "Find the thread that holds the GIL: `py-spy dump --native --pid {pid} > dump.txt` marks it `+gil`; then gdbext "
    "diagnose dump.txt"
)
MUTEX_ADDRESS = (r"_*(?:GI_)?_*pthread_mutex_(?:timed|clock)?lock(?:_full)?\w*$", "mutex")
"""The function of glibc that waits for a mutex, and its argument with the address."""
OF_LOCKED = rf"(?:.*(?:::|\.))?{RUNS_LOCKED}"
"""A function that runs with a lock held, by its name."""
SLEEPS = r"(?:Nt|Zw)DelayExecution|SleepEx?$|_*(?:GI_)?(?:clock_)?(?:nano|u)?sleep(?:_nocancel|64)?$"
"""Calls that sleep for a fixed time: in a loop, until something else is done."""
OF_CUDA = r".*(?:\bcu(?:da|blas|dnn|fft)?[A-Z]|CUDA|[Cc]uda|nccl|NCCL|\bhip[A-Z]|\bHIP|torch)"
"""Functions and lines of CUDA, HIP, NCCL and of torch, which calls them."""
CONNECTS_TO_STORE = r"c10d::detail::TCPClient::connect"
"""Where torch tries again and again to reach the host that serves the rendezvous store."""
JOINS_CHILDREN = r"_shutdown_workers$|_*(?:GI_+)?_*wait(?:pid|4|id)$"
WAITS_FOR_SIGNAL = (
    r"_*(?:GI_+)?_*pthread_cond_\w*wait|std::(?:__\w+::|_V2::)*condition_variable\w*::|SleepConditionVariable"
)
"""Waits until another thread signals, whatever it signals."""
JOINS_OF_PYTHON = r"wait_for_thread_shutdown$"
"""CPython waits at its end for the threads that are no daemons."""

READER_WRITER = (
    r"_*(?:GI_+)?pthread_rwlock_|std::(?:__\w+::)?(?:__)?shared_(?:timed_)?mutex|.*\bRwLock<|.*RWMutex|_*uv_rwlock_"
)
"""Calls that ask for a lock which readers share."""
SAMPLES = r"perf_event_handler$|hpcrun_\w+|(?:.*::)?(?:ProfileHandler::SignalHandler|CpuProfiler::prof_handler)$"
"""Handlers of the signal by which a profiler takes its samples: HPCToolkit; gperftools."""
OF_GPU_MEMORY = r"\bRMM\b|[Dd]evice (?:store|memory)\b|OutOfMemoryError: (?:CUDA|HIP) out of memory"
"""Lines about memory of the GPU alone: RMM, spark-rapids; torch CUDACachingAllocator.cpp. CUDA's own error may also be
about page-locked memory of the host."""
LET_RUN = "llm-nccl-diagnose --let-run"
"""How gdb looks again at the ranks that it holds."""
