"""Threads that serve others and are no finding while they wait: by their frames, and (weaker) by their names."""

from __future__ import annotations

from gdbext.knowledge.frame_precedence import LEAF, LOCK
from gdbext.knowledge.frames.networks.mpi import INSIDE
from gdbext.knowledge.row_kinds import FrameRule, ThreadName


def _pool(
    id: str,
    function: str,
    source: str,
    helper: str = "thread pool",
    module: str = "",
    leaf: bool = True,
    under: str = "",
) -> FrameRule:
    return FrameRule(
        id, "condvar-idle", function, source, module=module, rank=LEAF, helper=helper, leaf=leaf, under=under
    )


def _caller(
    id: str, function: str, source: str, kind: str = "condvar-idle", under: str = "", calls: str = ""
) -> FrameRule:
    """The thread that has given a pool its work waits for it with the pool's own functions: no member of it."""
    return FrameRule(id, kind, function, source, rank=LOCK, under=under, calls=calls)


CALLERS = (
    "openmp-caller",
    "rayon-caller",
    "blas-caller",
    "tbb-caller",
    "pool-caller",
    "uvloop-loop",
    "ucx-progress",
    "ucx-finish",
    *INSIDE,
    "ggml-caller",
)
"""Rules of threads that stand in a helper's functions and are none."""


_TBB_WAITS = r"(tbb|rml)::(\w+::)*(atomic_backoff|spin_wait_\w+|futex_\w+|binary_semaphore|thread_monitor)\b"
"""What oneTBB's workers and callers, and programs of their own, wait with: it tells nothing of who waits."""

BLOCKS_ON = r"tokio::runtime::(park|scheduler|runtime|context)\b"
"""Functions of a run-time in which a thread that is none of its workers waits for tasks (`block_on`)."""

RULES = (
    _caller(
        "openmp-caller",
        r"(GOMP_(parallel|barrier|taskwait|loop)\w*|gomp_team_end$|__kmpc_(fork_call|barrier)\w*|__kmp_join_call$)",
        "libgomp, libomp; in the function that the compiler made of the region the caller does its own share",
        calls=r"(?!exec_blas\._omp_fn$).*(\._omp_fn\b|\.?omp_outlined\w*)",
    ),
    _caller(
        "rayon-caller",
        r"rayon_core::latch::LockLatch::wait",
        "rayon latch.rs: a thread that is none of the pool's waits until the pool has done its task",
    ),
    _caller(
        "blas-caller",
        r"(exec_blas(_async_wait)?$|\w*gemm_thread_\w+$|cblas_\w+$|mkl_(blas|lapack)_\w+$|([sdcz]|ss|dd)?(gemm"
        r"|getr[fs]|potr[fs]|gesv|syrk|trsm|gemv)_(64_)?$)",
        "OpenBLAS blas_server.c, MKL: a threaded product",
        kind="native-compute",
    ),
    _caller(
        "tbb-caller",
        r"tbb::.*(external_waiter|market_context|detail::r1::(wait|execute_and_wait|spawn_and_wait|spawn|submit)$"
        r"|_scheduler\w*(<.*>)?::\w*wait)",
        "oneTBB src/tbb/waiters.h: who started the tasks",
    ),
    _caller(
        "pool-caller",
        r"onnxruntime::concurrency::\w*ThreadPool\w*(<.*>)?::(RunIn|Parallel|Simple)|Eigen::ThreadPoolDevice::"
        r"|tensorflow::thread::ThreadPool::Parallel|pthreadpool_(compute|parallelize)\w*|wait_worker_threads$|c10::ThreadPool::waitWorkComplete",
        "ONNX Runtime threadpool.h, Eigen, pthreadpool src/pthreads.c, torch c10/core/thread_pool.cpp",
    ),
    _pool("openmp-gomp", r"(gomp_\w+|do_wait|do_spin|gomp_thread_start)$", "libgomp", "OpenMP pool", module=r"libgomp"),
    _pool(
        "openmp-gomp-named",
        r"gomp_(barrier_wait\w*|team_barrier_wait\w*|simple_barrier_wait|thread_start)",
        "libgomp",
        "OpenMP pool",
    ),
    _pool("openmp-kmp", r"(__kmp_\w+|kmp_\w+|_INTERNAL\w*kmp\w*)", "libiomp5, libomp", "OpenMP pool"),
    _pool("blas-openblas", r"(blas_thread_server|openblas_\w+)$", "OpenBLAS", "BLAS pool"),
    _pool("blas-mkl", r"mkl_\w+_(idle|wait)\w*", "MKL", "BLAS pool"),
    _pool("tbb", rf"(?!{_TBB_WAITS})(tbb::|rml::)", "TBB"),
    FrameRule(
        "tbb-semaphore",
        "condvar-idle",
        r"tbb::(\w+::)*(binary_semaphore::P|futex_wait)$",
        "oneTBB semaphore.h: until somebody posts it",
        rank=LEAF,
    ),
    _pool("tbb-worker", _TBB_WAITS, "oneTBB private_server.cpp", under=r"(tbb|rml)::(\w+::)*private_worker::"),
    _pool(
        "eigen-pool",
        r"(Eigen::\w*ThreadPool|Eigen::EventCount|tsl::thread|onnxruntime::concurrency|(tensorflow|tsl)::(thread::"
        r"|\(anonymous namespace\)::PThread))",
        "Eigen",
    ),
    _pool("grpc", r"(grpc_core::|grpc_event_engine::|grpc::(Server|Thread)|gpr_cv_wait|gpr_\w+)", "gRPC", "gRPC"),
    _pool(
        "grpc-poller",
        r"(grpc_)?pollset_work\w*|pollable_\w+|run_poller|do_epoll_wait|begin_worker|grpc_completion_queue_next"
        r"|grpc::CompletionQueue::AsyncNext",
        "gRPC ev_*_linux.cc: a thread that serves its queue",
        "gRPC",
        under=r"(grpc_completion_queue_next|grpc::CompletionQueue::AsyncNext|run_poller|.*(PollEvents|PollLoop|HandleRPCs|start_thread|clone))",
    ),
    _pool("grpc-timer", r"(timer_thread|timer_main_loop|wait_until)$", "gRPC timer_manager.cc", "gRPC"),
    _pool("jemalloc", r"(je_)?background_(thread|work)\w*", "jemalloc", "allocator background"),
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
    _pool("libuv", r"uv__?(?!mutex_|rwlock_|sem_|cond_|barrier_|thread_|once)\w+", "libuv", "event loop"),
    _pool(
        "httplib-accept",
        r"httplib::detail::(select_read|poll_wrapper)\b",
        "yhirose/cpp-httplib httplib.h: the thread that accepts connections",
        "event loop",
        under=r"httplib::Server::listen_internal",
    ),
    _pool("libuv-pool", r"uv_cond_wait$", "libuv src/threadpool.c", under=r"worker$"),
    _pool(
        "node-pool",
        r"node::(\(anonymous namespace\)::)?(PlatformWorkerThread|TaskQueue<.*>::BlockingPop"
        r"|WorkerThreadsTaskRunner\w*::.*)",
        "nodejs/node src/node_platform.cc: workers without a task",
    ),
    _pool("asio", r"boost::(asio|asio::detail|process)::|asio::detail::", "Boost.Asio", "event loop"),
    _pool("mio", r"mio::(sys|poll)::", "Rust mio", "event loop"),
    _pool(
        "rust-pool",
        r"(tokio::runtime::(scheduler|thread_pool|basic_scheduler|blocking|io|time|driver|signal)"
        r"|rayon_core::(sleep|registry)|async_io::|polling::\w+::Poller::wait"
        r"|tracing_appender::|smol::|async_executor::|hyper::|reqwest::blocking::client::ClientHandle)",
        "Rust tokio, rayon, tracing",
    ),
    _pool(
        "rust-channel-worker",
        r"crossbeam_(channel|utils)::|std::sync::mpsc::|std::thread::park|flume::|async_channel::|kanal::"
        r"|tokio::runtime::(park|scheduler::current_thread)::",
        "Rust: a thread that takes its work from a channel",
        under=r"(tracing_appender::|rayon|std::sys_common::backtrace::__rust_begin_short_backtrace|std::sys::backtrace::__rust_begin_short)",
    ),
    _pool(
        "julia-idle",
        r"i?jl_(task_get_next|process_events|gc_\w*threadfun|safepoint_wait_\w+)|(julia_)?(poptask|try_yieldto)\w*"
        r"|signal_listener$|jl_signal_\w+",
        "Julia partr.c, signals-unix.c: threads without a task",
        "Julia run-time",
        under=r"((julia_|japi1_)?task_done_hook|i?jl_finish_task|i?jl_threadfun|jl_thread_\w*main|start_thread|clone)",
    ),
    _pool("julia-gc", r"(jl_gc_\w*threadfun|signal_listener)$", "Julia", "Julia run-time", leaf=False),
    _pool(
        "go-idle",
        r"runtime\.(find[rR]unnable|stopm|sysmon|bgsweep|bgscavenge|gcBgMarkWorker|forcegchelper|runfinq)$|os/signal\.signal_recv$",
        "Go runtime/proc.go, mgc.go: threads without a goroutine, and the runtime's own",
        "Go run-time",
        leaf=False,
    ),
    _pool(
        "java-idle",
        r"java\.util\.concurrent\.(ThreadPoolExecutor\.getTask|ForkJoinPool\.awaitWork)$|java\.lang\.ref\.ReferenceQueue\.remove0?$",
        "OpenJDK java/util/concurrent, java/lang/ref: a worker without a task, and the collector's queue",
        leaf=False,
    ),
    _pool(
        "windows-idle",
        r"(Nt|Zw)WaitForWorkViaWorkerFactory$",
        "Windows ntdll: a thread of the process' pool without work",
    ),
    _pool("libevent", r"event_base_(loop|dispatch)$|event_process_active\w*", "libevent", "event loop"),
    _pool(
        "brpc",
        r"(bthread::(TaskGroup::(wait_task|run_main_task)|ParkingLot::|TaskControl::|TimerThread::)|butil::|bvar::"
        r"|brpc::(?!Join|Channel::|Controller::))",
        "apache/brpc src/bthread, src/brpc",
        "RPC pool",
    ),
    _pool(
        "mxnet",
        r"(mxnet::engine::ThreadedEngine\w*::\w*(Worker|Pool)|dmlc::(ConcurrentBlockingQueue|ThreadedIter"
        r"|ThreadGroup)|ps::(Van|Customer)::(Receiving|Heartbeat|Transport)"
        r"|std::thread::_State_impl<.*(mxnet|dmlc|ps)::)",
        "MXNet engine, dmlc-core, ps-lite",
    ),
    _pool(
        "tensorflow-threads",
        r"tensorflow::(EventMgr::PollLoop|\(anonymous namespace\)::(StatsThread|GrpcWorkerServiceThread)"
        r"|Grpc\w+Cache|MasterSession::\w*Heartbeat|data::\w*(Thread|Runner)\w*|NcclManager::LoopKernelLaunches)"
        r"|(tensorflow|tsl)::UnboundedWorkQueue::PooledThreadFunc|tensorflow::data::\w+::\w*Thread\w*$",
        "TensorFlow run-time; tsl/platform/default/unbounded_work_queue.cc, core/nccl/nccl_manager.cc",
    ),
    _pool(
        "xla-threads",
        r"xla::WorkerThread::WorkLoop$|(xla|tsl|tensorflow)::(\(anonymous namespace\)::)?CoordinationService\w*"
        r"::(StartSendingHeartbeats|StartCheckStaleness"
        r"|CheckStaleness|CheckHeartbeatTimeout|CheckBarrierTimeout|PollForErrorAsync|StartPollingForError)\b",
        "openxla xla/pjrt/worker_thread.cc, xla/tsl/distributed_runtime/coordination",
    ),
    _pool(
        "tensorpipe",
        r"(tensorpipe::|torch::distributed::rpc::\w+::(retryExpiredRpcs|pollTimeout\w*|listenLoop\w*|pollTimedOut\w*)"
        r"|torch::distributed::autograd::\w+::(poll|cleanup)\w*)",
        "TensorPipe and torch RPC loops",
        "RPC pool",
    ),
    _pool(
        "folly",
        r"folly::(\w*ThreadPoolExecutor|EventBase|HHWheelTimer|FunctionScheduler|LifoSem|UnboundedBlockingQueue"
        r"|UnboundedQueue)",
        "folly executors",
        under=r"folly::(\w*ThreadPoolExecutor|EventBase::loopForever|FunctionScheduler)",
    ),
    _pool(
        "pools",
        r"(triton::common::ThreadPool|tvm::runtime::(ThreadPool::RunWorker|SpscTaskQueue::Pop)|ctranslate2::(JobQueue::get|Worker::run)"
        r"|httplib::ThreadPool::worker|arrow::internal::(WorkerLoop|\w*ThreadPool)|cv::(WorkerThread|ThreadPool)"
        r"|spdlog::details::(periodic_worker|thread_pool)"
        r"|opentelemetry::.*(Background|PeriodicExporting)|triton::core::(RateLimiter::DequeuePayload|\w*Scheduler::\w+Thread)"
        r"|dnnl::\w*threadpool|sycl::_V\d+::detail::ThreadPool"
        r"|Aws::\w*Executor|rocksdb::ThreadPoolImpl|duckdb::TaskScheduler|velox::|PerfGraphLivePrint|dcgm::"
        r"|tbb_misc::|proxygen::)",
        "threads of common libraries that wait for work",
    ),
    _pool(
        "aws-loop",
        r"(aws_(event_loop|thread|\w*client_bootstrap)\w*|s_event_thread|curl_multi_(wait|poll)"
        r"|Curl_\w*poll\w*)$",
        "aws-c-io, libcurl",
        "event loop",
    ),
    _pool("dispatch", r"(_?start_wqthread|_pthread_wqthread|__workq_kernreturn)$", "Darwin: a worker without work"),
    _pool(
        "rocclr-queue",
        r"amd::(HostQueue::(loop|Thread::run|Thread::acceptor)|Thread::(main|entry)|Semaphore::|Monitor::)",
        "ROCclr commandqueue.cpp: the thread of a queue waits for commands",
        "GPU driver events",
        under=r"amd::(HostQueue::(loop|Thread::run)|Thread::(main|entry))",
    ),
    _pool(
        "hsa-events",
        r"(rocr::)?(core::)?(Signal::WaitAny|AMD::hsa_amd_signal_wait_any|hsaKmtWaitOnMultipleEvents\w*|hsakmt_ioctl)",
        "ROCr event thread",
        "GPU driver events",
        leaf=False,
        under=r"(rocr::)?(core::)?(Runtime::)?AsyncEventsLoop",
    ),
    _pool("nccl-ras", r"ncclRasThreadMain$|rasThreadMain", "NCCL ras.cc", "NCCL thread", leaf=False),
    _pool("autil", r"(autil::(ThreadPool|LoopThread|\w+ThreadPool)\w*::|alog::)", "RTP-LLM's base library"),
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
    ThreadName(r"(IO loop|IO thread|TCP-Executor|Profile|Dask-Offload)", "event loop", "dask.distributed utils.py"),
    ThreadName(
        r"(QueueFeederThread|AnyIO worker|asyncio_\d|ThreadPoolExecutor|tokio-|rayon|gc-|wandb|MsgRouterThr"
        r"|ChkStopThr|NetStatThr)",
        "thread pool",
        "Python and Rust pools",
    ),
)

TASK_POOLS = r"(?:AnyIO worker|asyncio_\d|ThreadPoolExecutor)"
"""Names of pools whose threads run tasks of the program: only without one are they helpers."""

ENTRIES = (
    r"(start_thread|clone3?|__clone3?|__GI___clone3?|pthread_create\w*|_?thread_start|_pthread_(start|body)|std::execute_native_thread_routine"
    r"|execute_native_thread_routine|std::\(anonymous namespace\)::execute_native_thread_routine"
    r"|(boost::\(anonymous namespace\)::)?thread_proxy"
    r"|std::thread::_\w+|_start"
    r"|std::error_code::default_error_condition|pthread_condattr_setpshared)$"
)
"""Where a thread begins: a public function called directly by these is the nearest name of something private. The last
two are the nearest exported names of the starts of threads in libstdc++ and glibc, where their symbols are stripped."""

POOL_SYMBOLS = ((r"thread_status(?:\+\d{1,6})?$", "OpenBLAS pool"),)
"""Variables, as debuggers name them, for which threads of a pool wait while they have no work: OpenBLAS
driver/others/blas_server.c, one element for each thread."""
