"""Whose code a frame is, by file and function name: regular expressions, matched from the start unless it is said."""

from typing import Tuple

NO_NAME = (
    r"(\?\?|0x[0-9a-fA-F]+|[0-9a-fA-F]{12,16}|___lldb_unnamed_symbol\S*|<unknown>|\[unknown\]|\(unknown\)|unknown"
    r"|_?_?\?+)$"
)
"""What debuggers print for code without a name."""

PUBLIC = (
    r"(cu(da|blas)?[A-Z]\w+|p?nccl(Comm|Group|All|Get|Mem|Redop)\w*"
    r"|p?nccl(Broadcast|Bcast|Reduce|ReduceScatter|Send|Recv|Gather|Scatter))$"
)
"""Public functions of CUDA and NCCL: none of them is where a thread begins."""

EXPORTS_OF_STRIPPED: Tuple[Tuple[str, str], ...] = (
    ("", PUBLIC),
    ("TensorRT", r"createInfer\w+_INTERNAL$|getInferLib\w*Version$|get(?:Builder(?:Safe)?)?PluginRegistry$"),
)
"""Libraries without symbols of their own and the few functions that they export (TensorRT: NvInferRuntime.h): of many
frames in a row with such names none is right. Without a name of the library only one name counts, again and again."""

C_LIBRARY_MODULES = r"(libc|libpthread|ld|ld-linux[\w-]*|librt|libdl|linux-vdso|\[vdso\])([-.]\d[\d.]*)?(\.so|-|$|\.)"

C_LIBRARY_FUNCTIONS = (
    r"_*(GI_)?_*(libc_|lx_|new_|old_|nptl_)?(futex_\w+|pthread_\w+|lll_\w+|sem_\w+|do_futex\w*|p?poll|epoll_p?wait\d?|p?select|p?readv?|p?writev?"
    r"|recv(from|msg|mmsg)?|send(to|msg|mmsg)?|accept4?|nanosleep|clock_(gettime|nanosleep)|usleep|sleep|sched_yield|syscall|wait4|waitpid"
    r"|waitid|ioctl|gettimeofday|start_thread|clone3?|libc_start\w*|kernel_vsyscall)(_chk|_nocancel|64|_time64|_2)?(@\S*)?$"
    r"|std::(_V2::|__\w+::)*(condition_variable|unique_lock|mutex|this_thread|thread|__future_base|__basic_future|future|_Function_handler"
    r"|__invoke\w*|chrono|function|call_once|recursive_mutex|shared_mutex|lock_guard|scoped_lock|shared_lock|__shared_mutex_\w+|__glibcxx_rwlock_\w+|__atomic_wait\w*|__detail)\b"
    r"|__gthread_\w+|(std::)?execute_native_thread_routine"
    r"|nsync::|AbslInternal(PerThreadSem|SpinLock)\w*|absl::(\w+::)?(synchronization_internal|base_internal|CondVar|Mutex|Notification)\b"
    r"|(tensorflow|tsl)::(condition_variable|mutex|Notification|BlockingCounter)\b|boost::(condition_variable|unique_lock|mutex|latch)\b"
    r"|(rocksdb|leveldb)::(port::)?(Instrumented)?(CondVar|Mutex\w*)\b|std::(sys|sys_common)::|parking_lot(_core)?::|lock_api::|folly::(Baton|detail::Futex)"
    r"|runtime\.(asm)?cgocall$|__psynch_\w+|__ulock_\w+|semaphore_\w*trap|_pthread_\w+|uv_(cond|mutex|sem|rwlock)_\w+|gpr_cv_wait"
    r"|std::__\w+::(__thread_proxy|__thread_execute|__invoke)\b|boost::detail::thread_data<|cnd_\w*wait$|mtx_\w*lock$|thrd_\w+$"
    r"|CRYPTO_THREAD_(?:read|write)_lock$|(?:base::(?:internal|subtle)::)?SpinLock(?:Delay|Holder|::\w+)?(?!\w)|sys_futex$"
    r"|__pyx_\w*6uvloop_4loop_|(?:__|io_|preempt_)?schedule(?:_(?:hr)?timeout\w*|_idle|_preempt\w*)?$"
)
"""Functions of the C library, of C++ and Rust threading and of what stands in for them, wherever they are linked in."""

STARTS_THREADS = r"std::thread::_(State_impl|Impl)<|std::__\w+::__thread_proxy\b|boost::detail::thread_data<"
"""What C++ puts around the function of a thread: where it was inlined, nothing else is left of it."""

TASKS = r"std::(__\w+::)*(__future_base|packaged_task|__packaged_task|async|__async)"
"""A thread that was made for one task."""

UNNAMED_FUNCTIONS = r".*(\{lambda.*\}|\$_\d+|\{\{?closure(#\d+)?\}\}?)(::operator\(\))?$"
"""Functions without a name of their own, as compilers call them."""

MAIN_FUNCTIONS = r"(main|_start|__libc_start_\w+|Py_BytesMain)$"
"""Where the first thread of a process begins."""

C_LIBRARY_FILES = (
    r"(^|/)(nptl|sysdeps|libio|elf|posix|signal)/|gthr-default\.h$"
    r"|/(condition_variable|thread|future|mutex)(\.cc|\.h)?$"
)
"""Searched anywhere in the source file's name."""

VENDOR_MODULES = (
    C_LIBRARY_MODULES
    + r"|lib(cuda|cudart|cudadebugger|cublas\w*|cudnn\w*|cufft|cusolver|cusparse|curand|nccl|rccl|nvidia|nvrtc|cupti"
    r"|hip\w*|amdhip64|amdocl64|hsa\w*|roctracer64|rocprofiler\w*|ze_\w+|ur_\w+|sycl\w*|ascend_hal"
    r"|torch\w*|c10\w*|python\d|stdc\+\+|gcc_s|gomp|iomp\w*|omp\d*|mkl\w*|openblas\w*|\w*openblas\w*|tbb\w*|mpi\w*|open-(pal|rte)|pmix\w*"
    r"|mca_\w+|ucp|uct|ucs|ucm|fabric|ibverbs|mlx5|rdmacm|zmq\w*|event\w*|uv|protobuf|grpc\w*|gloo\w*|tensorflow\w*|jemalloc|tcmalloc\w*"
    r"|nvinfer(?!_plugin)\w*|ffi|nvshmem\w*|hccl\w*|ascendcl|(?:hw|ub)?[atml]?san|clang_rt)\b|python\d?(\.\d+)?$|_?ctypes|\[|triton|libffi"
)

VENDOR_FUNCTIONS = (
    r"(cu(da|blas|blasLt|dnn|fft)?[A-Z]\w+|p?nccl[A-Z]\w+|P?MPI_\w+|c10::|c10d::|at::|torch::|caffe2::|gloo::|pybind11::|nanobind::|std::"
    r"|__gnu_cxx::|__\w+|_?Py[A-Z_]\w+|_PyEval\w+|_?Py\w*|(cfunction|method|slot_tp|type|object|function|builtin)_\w+|take_gil|drop_gil"
    r"|pymain_\w+|run_(mod|eval_code_obj)|ffi_call\w*|doLaunches|groupLaunch|waitWorkFifoAvailable|bootstrap[A-Z]\w+|socket[A-Z]\w+"
    r"|gomp_\w+|GOMP_\w+|blas_thread\w+|mkl_\w+|uv__?\w+|event_base\w+|zmq\w*|MPI\w+|ompi_\w+|mca_\w+|opal_\w+"
    r"|operator "
    r"|(abort|raise|memcpy|memset|memmove|malloc|calloc|realloc|free|munmap|mmap)$)"
)

VENDOR_PYTHON = (
    r"(^|/)(lib/python\d\.\d+/(?!site-packages|dist-packages)|(site|dist)-packages/(torch|numpy|triton|zmq|tqdm|ray|pydantic|uvloop|uvicorn"
    r"|fastapi|starlette|anyio|_pytest|pluggy)/|torch/|asyncio/|multiprocessing/|concurrent/|importlib/|contextlib\.py$|threading\.py$"
    r"|queue\.py$|selectors\.py$|subprocess\.py$|socket\.py$|ssl\.py$|functools\.py$|runpy\.py$|tqdm/)|^<"
)
"""Searched anywhere in a Python file name."""

OWN_THREADS = (
    (r"libcuda(debugger)?\.", "CUDA driver events"),
    (r"lib(nccl|rccl)", "NCCL thread"),
    (r"lib(gomp|iomp|omp)", "OpenMP pool"),
    (r"lib\w*(openblas|mkl)\w*|libtbb|_multiarray", "BLAS pool"),
    (r"lib(ibverbs|mlx\d|rdmacm)", "InfiniBand events"),
    (r"libuc[pstm]", "UCX"),
    (r"lib(hsa-runtime64|amdhip64|hsakmt|ze_intel_gpu|ascend_hal)", "GPU driver events"),
    (r"lib(jemalloc|tcmalloc)", "allocator background"),
    (r"libzmq", "ZeroMQ"),
    (r"lib(pmix|open-(pal|rte)|event|prrte|fabric|mca_\w+)", "MPI event loop"),
    (r"lib(cupti|nvperf|nvToolsExt|nvidia-ml)", "profiler"),
    (r"libcudart", "CUDA runtime"),
)
"""Libraries whose own threads show nothing but frames of that library (mostly nameless) above the thread's entry."""

INTERPRETER_MODULES = (
    r"(libpython\d|python\d?(\.\d+)?$|select\."
    r"|_(socket|queue|ssl|ctypes|multiprocessing|asyncio|datetime|posixsubprocess)\b)"
)

INTERPRETER = (
    r"(_?Py[A-Z_]\w+|_PyEval\w+|take_gil|drop_gil|time_sleep|pysleep|acquire_timed|lock_PyThread_acquire_lock|rlock_acquire|select_\w+|sock_\w+"
    r"|(cfunction|method|slot_tp|type|object|function|builtin|vectorcall|os|posix)_\w+"
    r"|call_function|fast_function|ext_do_call|do_call(?:_core)?)$"
)
"""C functions of CPython."""

PYTHON_EXTENSIONS = r"(?:_\w+|\S*\.(?:cpython-[\w-]+|abi3))\.so$"
"""Modules that Python loads by `import`: the outermost of their frames was called by Python (PEP 3149)."""

DRIVER_MODULES = (
    r"lib(cuda|cudadebugger|cudart|nccl|rccl|cublas\w*|hip\w*|amdhip64|hsa\w*|ze_intel_gpu|ascend_hal)\b"
    r"|nvcuda\w*\.dll"
)
"""Libraries that poll for the device: a nameless frame of theirs on top computes nothing."""

SLEEPS_IN_KERNEL = (
    "poll",
    "__poll",
    "__GI___poll",
    "ppoll",
    "read",
    "__read",
    "__GI___libc_read",
    "epoll_wait",
    "ioctl",
)

CALLS_C = ("runtime.cgocall",)
"""Frames of other languages whose callee is C code, of which their own stacks have no frame."""

CUDA_DRIVER_MODULES = r"libcuda(debugger)?\.|nvcuda\w*\.dll"
"""The user part of the driver: holds its lock while it calls hooks and callbacks."""

STANDARD_FILES = (
    r"(/c\+\+/|(^|/)(stl_\w+|basic_(string|ios)|(char|alloc)_traits|std_(function|mutex|thread)|atomic_(base|wait|futex)|shared_ptr"
    r"(_base|_atomic)?|unique_(ptr|lock)|hashtable(_policy)?|invoke|new_allocator)\.(h|tcc)$)"
)
"""Files of the C++ standard library. The line of a program's own function lies there where a call of it was inlined."""

STANDARD_NAMES = ("std::", "__gnu_cxx::")
"""How functions of the C++ standard library begin."""

LAMBDA_OWNER = (
    r"[<, ](?P<owner>[A-Za-z_]\w*(?:::~?\w+)+)\([^()]*(?:\([^()]*\)[^()]*){0,4}\)(?: const)?"
    r"::(?:<lambda|\{lambda|\$_\d)"
)
"""Searched in names of the C++ standard library: whose lambda is among the template's arguments calls it."""

WAITS_OF_WINDOWS = r"(?:ntdll!)?(?:Zw|Nt)[A-Z]\w+$|(?:KERNELBASE!)?(?:SleepEx?|WaitFor\w+Objects?(?:Ex)?)$"

NAMELESS_PYTHON = ("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")
"""How Python calls code without a name: its line says more."""

LOOPS_FOR_WORK = r"(?i:loop|work|thread|listen|serve|schedul|dispatch|consum|monitor|watch|idle|background|daemon|poll)"
"""Searched in a function's own name: code that waits for work as long as it lives."""

_BEGUN = (
    r"init|initiali[sz]e\w*|set_?up|load|save|sync|synchroni[sz]e|compile|connect|all_?reduce"
    r"|all_?gather|broadcast|train|fit|forward|backward|generate|predict|infer|prefill|checkpoint"
    r"|wait_?(?:for_?|until_?)?(?:all|complet\w*|done|finish\w*|ready|result\w*|devices?|stream|ops|compact\w*|flush\w*)"
)
BEGUN_WORK = rf"(?:(?:^|_)|(?<=[a-z0-9])(?=[A-Z]))(?i:{_BEGUN})(?=$|_|\d|(?<=[a-z])[A-Z])"
"""Searched there: what somebody has begun and waits for the end of."""

BEGUN_CALLS = r"(?:\w+::)*\w*Session::Run(?:$|\()"
"""Matched with the whole name: calls of that kind whose last name says too little (TensorFlow, ONNX Runtime)."""

RUNS_LOCKED = r"(?!(?i:is|was|not|if|try)_?[lL])\w*(?<![uU]n)(?:(?<=_)locked|(?<=[a-z0-9])Locked)$"
"""How functions are called that must be called with their object's lock held."""
