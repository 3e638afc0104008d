"""Threads that serve others and are no finding while they wait: by their frames, and (weaker) by their names."""

from __future__ import annotations

from gdbext.knowledge.ranks import LEAF, LOCK
from gdbext.knowledge.schema import FrameRule, ThreadName


def _pool(id: str, function: str, source: str, helper: str, module: str = "", leaf: bool = True) -> FrameRule:
    return FrameRule(id, "condvar-idle", function, source, module=module, rank=LEAF, helper=helper, leaf=leaf)


RULES = (
    FrameRule(
        "openmp-caller",
        "condvar-idle",
        r"(GOMP_(parallel|barrier|taskwait|loop)\w*|__kmpc_(fork_call|barrier)\w*)",
        "the thread that entered the parallel region waits for its pool: no member of it",
        rank=LOCK,
    ),
    _pool("openmp-gomp", r"(gomp_\w+|do_wait|do_spin|gomp_thread_start)$", "libgomp", "OpenMP pool", module=r"libgomp"),
    _pool(
        "openmp-gomp-named",
        r"gomp_(barrier_wait\w*|team_barrier_wait\w*|simple_barrier_wait|thread_start)",
        "libgomp",
        "OpenMP pool",
    ),
    _pool("openmp-kmp", r"(__kmp_\w+|kmp_\w+|_INTERNAL\w*kmp\w*)", "libiomp5, libomp", "OpenMP pool"),
    _pool("blas-openblas", r"(blas_thread_server|exec_blas_async_wait|openblas_\w+)$", "OpenBLAS", "BLAS pool"),
    _pool("blas-mkl", r"mkl_\w+_(idle|wait)\w*", "MKL", "BLAS pool"),
    _pool("tbb", r"(tbb::|rml::)", "TBB", "thread pool"),
    _pool(
        "eigen-pool",
        r"(Eigen::\w*ThreadPool|Eigen::EventCount|tsl::thread|onnxruntime::concurrency)",
        "Eigen",
        "thread pool",
    ),
    _pool("grpc", r"(grpc_core::|grpc_event_engine::|grpc::(Server|Thread)|gpr_cv_wait|gpr_\w+)", "gRPC", "gRPC"),
    _pool("jemalloc", r"(background_thread_\w+|je_background\w*)", "jemalloc", "allocator background"),
    _pool(
        "tcmalloc",
        r"tcmalloc::\w*[Bb]ackground\w*|MallocExtension_Internal_ProcessBackgroundActions",
        "tcmalloc",
        "allocator background",
    ),
    _pool("ucx-async", r"ucs_(async|event|vfs)\w*", "UCX", "UCX"),
    _pool(
        "ibv-events",
        r"(ibv_get_(async_event|cq_event)\w*|__ibv_get_\w+|fi_cq_sread|ibv_exp_\w+)",
        "libibverbs",
        "InfiniBand events",
        leaf=False,
    ),
    _pool("libuv", r"uv__?\w+", "libuv", "event loop"),
    _pool("libevent", r"event_base_(loop|dispatch)$|event_process_active\w*", "libevent", "event loop"),
    _pool("brpc", r"(bthread::TaskGroup::(wait_task|run_main_task)|brpc::|butil::|bvar::)", "brpc", "RPC pool"),
    _pool(
        "autil", r"(autil::(ThreadPool|LoopThread|\w+ThreadPool)\w*::|alog::)", "RTP-LLM's base library", "thread pool"
    ),
    _pool("xpu-timer", r"(xpu_timer::|atorch::)", "DLRover xpu_timer preload", "tracing"),
    _pool(
        "zmq-io", r"zmq::(epoll_t|poll_t|io_thread_t|thread_t|reaper_t)::", "libzmq's own threads", "ZeroMQ", leaf=False
    ),
    _pool(
        "hsa",
        r"(rocr::core::Runtime::AsyncEventsLoop|(rocr::)?(core::)?(Runtime::)?AsyncEventsLoop|rocr::os::\w*Trampoline)",
        "ROCr event thread",
        "GPU driver events",
    ),
)

NAMES = (
    ThreadName(r"cuda-EvtHandlr|cuda\d{6,}", "CUDA driver events", "TensorRT-LLM#2560"),
    ThreadName(r"pt_nccl_(watchdg|heartbt|gil_chk)", "NCCL watchdog", "libtorch strings"),
    ThreadName(r"pt_tcpstore", "TCPStore server", "libtorch strings"),
    ThreadName(r"pt_gloo_runloop", "Gloo worker", "libtorch strings"),
    ThreadName(r"pt_autograd", "autograd", "libtorch strings"),
    ThreadName(r"pt_(thread_pool|dist_engine|workerserver|monitor)", "thread pool", "libtorch strings"),
    ThreadName(r"NCCL (Progress|Service|UDS|RAS|Bootstrap|Sock|IbAsync|GIN)", "NCCL thread", "NCCL_SET_THREAD_NAME=1"),
    ThreadName(r"xpu_(poller|bvar)", "tracing", "DLRover xpu_timer"),
    ThreadName(r"(jemalloc_bg|tcmalloc)", "allocator background", "jemalloc"),
    ThreadName(r"(ZMQbg|grpc|resolver-|event_engine|timer_manager)", "RPC threads", "libzmq, gRPC"),
    ThreadName(r"(ucx_|async|UCX)", "UCX", "UCX"),
    ThreadName(r"(OMPI|PMIX|orte)", "MPI event loop", "Open MPI"),
    ThreadName(
        r"Thread-\d+ \(_?(watchdog|monitor|heartbeat)\w*\)", "watchdog", "Python thread names; sgl-project/sglang#12076"
    ),
    ThreadName(
        r"(QueueFeederThread|AnyIO worker|asyncio_\d|ThreadPoolExecutor|tokio-|rayon|gc-|wandb|MsgRouterThr"
        r"|ChkStopThr|NetStatThr)",
        "thread pool",
        "Python and Rust pools",
    ),
)

ENTRIES = (
    r"(start_thread|clone3?|__clone3?|pthread_create\w*|thread_start|std::execute_native_thread_routine|execute_native_thread_routine"
    r"|std::thread::_\w+|_start)$"
)
"""Where a thread begins: a public function called directly by these is the nearest name of something private."""
