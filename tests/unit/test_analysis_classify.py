"""What one stack says: the deciding frame, helpers, lies, Python."""

import pytest

from gdbext.analysis.stacks.frame_facts import FrameBook
from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.knowledge.engines.all_profiles import PROFILES
from gdbext.knowledge.log_lines.last_words import CURRENT
from gdbext.model.codes import StackEnd
from gdbext.model.missing import Missing
from gdbext.model.stack import ThreadStack
from gdbext.model.text.patterns import literal_prefixes
from tests.unit.stacks import DRIVER, ENGINE, ENTRY, frame, stack

C10D = "torch/distributed/distributed_c10d.py"

ABORT = ("raise@libc.so.6", "abort@libc.so.6")
KINDS = [
    # The first public name decides, however deep the driver is.
    ("pinned-host-alloc", [*DRIVER, "__pthread_once_slow@libc.so.6", "cudaMallocHost@libcudart.so.12", *ENGINE]),
    ("pinned-host-alloc", ["pthread_rwlock_wrlock@libc.so.6", "??@libcuda.so.1", "cuMemFreeHost@libcuda.so.1"]),
    ("device-free", [*DRIVER, "cudaFree@libcudart.so.12", *ENGINE]),
    ("device-alloc", [*DRIVER, "cuMemAlloc_v2@libcuda.so.1", *ENGINE]),
    ("module-load", [*DRIVER, "cuModuleLoadData@libcuda.so.1", "cudaLaunchKernel@libcudart.so.12", *ENGINE]),
    (
        "kernel-launch",
        [*DRIVER, "cudaLaunchKernelExC@libnccl.so.2", "ncclLaunchKernel@libnccl.so.2", "ncclGroupEnd@libnccl.so.2"],
    ),
    (
        "stream-sync",
        [
            "clock_gettime@[vdso]",
            "??@libcuda.so.1",
            "cuStreamSynchronize@libcuda.so.1",
            "cudaStreamSynchronize@libx.so",
        ],
    ),
    ("event-sync", ["poll@libc.so.6", "??@libcuda.so.1", "cudaEventSynchronize@libcudart.so.12"]),
    ("memcpy-sync", [*DRIVER, "cudaMemcpyAsync@libcudart.so.12", "at::native::copy_kernel_cuda@libtorch_cuda.so"]),
    # An outer call that says more.
    ("cublas", [*DRIVER, "cudaMalloc@libcudart.so.12", "cublasCreate_v2@libcublas.so.12", *ENGINE]),
    (
        "nccl-destroy-abort",
        [*DRIVER, "cudaFree@libcudart.so.12", "commFree@libnccl.so.2", "pncclCommDestroy@libnccl.so.2"],
    ),
    (
        "nccl-init",
        [
            "usleep@libc.so.6",
            "??@libnccl.so.2",
            "pncclCommInitRankConfig@libnccl.so.2",
            "c10d::NCCLComm::create@libtorch_cuda.so",
        ],
    ),
    (
        "nccl-group-launch",
        ["pthread_rwlock_wrlock@libc.so.6", "??@libcuda.so", "??@libnccl.so.2", "ncclGroupEnd@libnccl.so.2"],
    ),
    # An interposed library has the same names once more.
    (
        "stream-sync",
        [*DRIVER, "cudaStreamSynchronize@libcudart.so.12", "cudaStreamSynchronize@libxpu_timer.so", *ENGINE],
    ),
    # Names that say nothing.
    ("stream-sync", ["libcudart_static_7304beb15f17907bccdc6b7603b23d2a2951bc68@libx.so", "cudaStreamQuery@libx.so"]),
    ("device-free", ["cuVDPAUCtxCreate@libcuda.so.1", "__cudart803@engine", "cudaFree@engine", *ENGINE]),
    ("event-sync", ["___lldb_unnamed_symbol9$$libcuda.so.1@libcuda.so.1", "cuEventSynchronize@libcuda.so.1"]),
    # MPI, Gloo, stores.
    (
        "mpi",
        ["poll@libc.so.6", "opal_progress@libopen-pal.so.40", "PMPI_Bcast@libmpi.so.40", "MPI_Allreduce@libmpi.so.40"],
    ),
    ("gloo", ["pthread_cond_timedwait@libc.so.6", "gloo::transport::tcp::UnboundBuffer::waitRecv@libtorch_cpu.so"]),
    (
        "store-wait",
        ["poll@libc.so.6", "c10d::TCPStore::doWait@libtorch_cpu.so", "rendezvous@torch/distributed/rendezvous.py:9"],
    ),
    # Python, with and without native frames.
    (
        "gil",
        [
            "futex_wait@libc.so.6",
            "pthread_cond_timedwait@libc.so.6",
            "take_gil@python3.11",
            "PyEval_RestoreThread@python3.11",
        ],
    ),
    ("python-code", ["clock_nanosleep@libc.so.6", "load@serve.py:3"]),
    ("condvar-idle", ["clock_nanosleep@libc.so.6", *ENGINE]),
    ("ipc-queue", ["wait@threading.py:302", "Queue.get@queue.py:170", "__next__@data/iterators.py:6"]),
    ("nccl-group-launch", [f"all_gather_into_tensor@{C10D}:2709", "wrapper@torch/distributed/c10d_logger.py:72"]),
    ("nccl-init", [f"init_process_group@{C10D}:1", "main@train.py:2"]),
    ("device-sync", ["synchronize@torch/cuda/__init__.py:9", "step@train.py:2"]),
    ("io", ["select@selectors.py:415", "_communicate@subprocess.py:2115", "run@subprocess.py:550", "build@train.py:7"]),
    ("python-code", ["_apply@penaltylib/min_new_tokens.py:78", "verify@eagle_worker.py:2"]),
    # The C library alone.
    ("mutex", ["__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", *ENGINE]),
    ("mutex", ["dl_iterate_phdr@libc.so.6", "_Unwind_Find_FDE@libgcc_s.so.1"]),
    ("io", ["read@libc.so.6", *ENGINE]),
    (
        "condvar-idle",
        ["pthread_cond_wait@@GLIBC_2.17@libc.so.6", "std::condition_variable::wait@libstdc++.so.6", *ENGINE],
    ),
    ("native-compute", [*ENGINE]),
    ("unknown", ["clock_gettime@libc.so.6", "??@libcuda.so.1", "??@libcuda.so.1"]),
    ("unknown", []),
    # Dying.
    ("mpi", ["PMIx_Init@libpmix.so.2", "ompi_mpi_init@libmpi.so.40", "MPI_Init@libmpi.so.40", "main"]),
    ("mpi", ["poll@libc.so.6", "??@libmpi.so.40", "main"]),
    ("mpi", ["who_knows@libfabric.so.1", "main"]),
    ("unknown", ["who_knows@libcudnn.so.8", "main"]),
    ("mutex", ["SpinLock::Lock", "on_signal", "<signal handler called>", "exit@libc.so.6"]),
    ("mutex", ["pthread_mutex_lock@libc.so.6", "on_signal", "<signal handler called>", "raise@libc.so.6", "work"]),
    ("exited-or-crashed", ["waitpid@libc.so.6", "on_signal", "<signal handler called>", "raise@libc.so.6", "work"]),
    ("exited-or-crashed", ["waitpid@libc.so.6", "print_stack", "<signal handler called>", "work"]),
    # A handler of a signal that came while the thread waited goes on.
    ("io", ["epoll_wait@libc.so.6", "WalWriterMain@postgres", "__restore_rt@libc.so.6", "__GI___select@libc.so.6"]),
    ("io", ["epoll_wait@libc.so.6", "WaitLatch@postgres", "ProcSleep@postgres", "PortalRun@postgres"]),
    ("mutex", ["schedule@[kernel]", "odd_lock_of_mine@[kernel]", "do_exit@[kernel]"]),
    ("exited-or-crashed", ["schedule@[kernel]", "do_exit@[kernel]"]),
    ("io", ["schedule@[kernel]", "netfs_who_knows@[kernel]", "ksys_read@[kernel]"]),
    ("sigbus", ["pause@libc.so.6", "<signal handler called>", "__memset_avx2@libc.so.6", "ncclShmOpen@libnccl.so.2"]),
    (
        "sigbus",
        ["<signal handler called>", "__memset_avx2@libc.so.6", "??@libnccl.so.2", "ncclCommInitRank@libnccl.so.2"],
    ),
    ("exited-or-crashed", ["raise@libc.so.6", "abort@libc.so.6", *ENGINE]),
    ("cuda-error-throw", ["__cxa_throw@libstdc++.so.6", "fastertransformer::check<cudaError>@engine", *ENGINE]),
    ("cuda-error-throw", [*ABORT, "??@libstdc++.so.6", "fastertransformer::syncAndCheck@engine", *ENGINE]),
    (
        "cuda-error-throw",
        [*ABORT, "turbomind::core::Logger::LogFatalImpl@tm", "turbomind::ReportCudaError@tm", *ENGINE],
    ),
    ("exited-or-crashed", [*ABORT, "turbomind::core::CheckErrorStream::Report@tm", *ENGINE]),
    ("exited-or-crashed", ["fastertransformer::throwRuntimeError@engine", *ENGINE]),
    (
        "device-sync",
        ["??@libcuda.so.1", "cudaDeviceSynchronize@cudart", "fastertransformer::syncAndCheck@engine", *ENGINE],
    ),
    ("device-sync", ["??@libcuda.so.1", "??@libcudart.so.12", "fastertransformer::syncAndCheck@engine", *ENGINE]),
]


@pytest.mark.parametrize(("kind", "frames"), KINDS)
def test_kind_of_a_stack(kind, frames):
    assert judge_thread(stack(*frames)).kind == kind


HELPERS = [
    ("CUDA driver events", ["poll@libc.so.6", "??@libcuda.so.1", "??@libcuda.so.1", *ENTRY]),
    ("CUDA driver events", ["??@libcudadebugger.so.1", "??@libcuda.so.1", *ENTRY]),
    ("NCCL proxy", ["sched_yield@libc.so.6", "ncclProxyProgress@libnccl.so.2 proxy.cc:8", *ENTRY]),
    ("NCCL proxy service", ["poll@libc.so.6", "ncclProxyService@libnccl.so.2", *ENTRY]),
    ("NCCL RAS", ["poll@libc.so.6", "rasThreadMain@libnccl.so.2", *ENTRY]),
    ("NCCL thread", ["poll@libc.so.6", "??@libnccl.so.2", *ENTRY]),
    ("OpenMP pool", ["gomp_barrier_wait_end@libgomp.so.1", "gomp_thread_start@libgomp.so.1", *ENTRY]),
    ("BLAS pool", ["pthread_cond_wait@libc.so.6", "blas_thread_server@libopenblas.so", *ENTRY]),
    ("autograd", ["std::condition_variable::wait@libstdc++.so.6", "torch::autograd::ReadyQueue::pop@libtorch_cpu.so",
                  "torch::autograd::Engine::thread_main@libtorch_cpu.so", *ENTRY]),
    ("InfiniBand events", ["read@libc.so.6", "ibv_get_async_event@libibverbs.so.1", "??@libnccl.so.2", *ENTRY]),
    ("tqdm monitor", ["wait@threading.py:359", "run@tqdm/_monitor.py:60"]),
    ("thread pool", ["get@queue.py:3", "_worker@concurrent/futures/thread.py:81"]),
]  # fmt: skip


@pytest.mark.parametrize(("helper", "frames"), HELPERS)
def test_helpers_are_recognised_by_frames(helper, frames):
    judged = judge_thread(stack(*frames))
    assert judged.helper == helper


def test_a_helper_that_is_blocked_says_in_what():
    judged = judge_thread(
        stack("pthread_mutex_lock@libc.so.6", "c10d::ProcessGroupNCCL::ncclCommWatchdog@libtorch_cuda.so", *ENTRY)
    )
    assert (judged.helper, judged.kind) == ("NCCL watchdog", "mutex")


def test_an_autograd_thread_at_work_is_no_helper():
    judged = judge_thread(
        stack(
            *DRIVER,
            "cudaLaunchKernel@libcudart.so.12",
            "torch::autograd::Engine::thread_main@libtorch_cpu.so",
            name="pt_autograd_0",
        )
    )
    assert (judged.helper, judged.kind) == (None, "kernel-launch")


def test_a_task_of_std_async_at_work_joins_nothing():
    runs = ("std::__future_base::_Task_setter<int>::operator()@engine", "__pthread_once_slow@libc.so.6",
            "std::__future_base::_State_baseV2::_M_set_result@engine")  # fmt: skip
    working = judge_thread(stack("contract@engine", *runs, *ENTRY, state="R", cpu=0.9))
    assert (working.rule, working.kind) != ("os-join", "condvar-idle") and working.kind == "native-compute"
    waits = judge_thread(stack("syscall@libc.so.6", "std::__future_base::_State_baseV2::wait@engine", "main@engine"))
    assert waits.rule == "os-join"


def test_the_caller_of_backward_does_the_share_of_the_cpu_and_is_no_helper():
    works = ("torch::autograd::Engine::thread_main@libtorch_cpu.so", "torch::autograd::Engine::execute@libtorch_cpu.so")
    judged = judge_thread(stack(*works, "THPEngine_run_backward@libtorch_python.so", "backward@train.py:3"))
    assert judged.helper is None


def test_a_name_is_a_hint_only():
    assert (
        judge_thread(stack("poll@libc.so.6", "??@somewhere.so", name="cuda-EvtHandlr")).helper == "CUDA driver events"
    )
    busy = judge_thread(stack(*DRIVER, "cudaFree@libcudart.so.12", name="cuda-EvtHandlr"))
    assert (busy.helper, busy.kind) == (None, "device-free")


def test_no_thread_begins_in_a_public_function():
    """Nearest symbols of a stripped NCCL; the same frames under an engine are believed."""
    lie = judge_thread(stack("poll@libc.so.6", "ncclGroupEnd@libnccl.so.2", "ncclGroupEnd@libnccl.so.2", *ENTRY))
    assert (lie.kind, lie.helper) == ("condvar-idle", "NCCL thread")
    assert judge_thread(stack("poll@libc.so.6", "ncclGroupEnd@libnccl.so.2", *ENGINE)).kind == "nccl-group-launch"


def test_a_collective_is_what_the_program_called():
    judged = judge_thread(
        stack("poll@libc.so.6", "ncclAllReduce@libnccl.so.2", "c10d::ProcessGroupNCCL::barrier@libtorch_cuda.so")
    )
    assert judged.collective == "barrier"


def test_captures_and_the_communicator():
    inner = frame("ncclAllReduce@libnccl.so.2", comm=0x55, count=Missing("optimized out"))
    outer = frame("ncclAllReduce@libxpu_timer.so", comm=0x99, count=8)
    judged = judge_thread(stack(inner, outer, *ENGINE))
    assert judged.communicator == "0x55"
    assert judged.captures["count"] == 8


def test_the_first_frame_of_the_engine():
    profile = next(one for one in PROFILES if one.name == "fastertransformer")
    thread = stack(*DRIVER, "cudaFree@libcudart.so.12", "Pool::free@libpool.so", *ENGINE)
    assert thread.frames[judge_thread(thread, profile).engine_frame].function.startswith("fastertransformer::")
    assert thread.frames[judge_thread(thread).engine_frame].function == "Pool::free"
    python = stack("synchronize@torch/cuda/__init__.py:9", "run@/usr/lib/python3.11/threading.py:3", "serve@app.py:1")
    assert judge_thread(python).engine_frame == 2


def test_cpu_time_tells_running_from_waiting():
    spins = judge_thread(stack("sched_yield@libc.so.6", "Engine::poll@engine", cpu=0.99, state="R"))
    assert (spins.kind, spins.running) == ("native-compute", True)
    sleeps = judge_thread(stack("some_work@engine", "Engine::step@engine", cpu=0.0, state="S"))
    assert (sleeps.kind, sleeps.running) == ("unknown", False)


def test_idle_workers_are_idle():
    follower = stack(
        "poll@libc.so.6",
        "acquire_read@vllm/distributed/device_communicators/shm_broadcast.py:5",
        "dequeue@shm_broadcast.py:9",
    )
    assert judge_thread(follower).idle
    scheduler = stack(
        "pthread_cond_timedwait@libc.so.6",
        "gloo::transport::tcp::UnboundBuffer::waitRecv@libtorch_cpu.so",
        f"broadcast@{C10D}:1",
        "broadcast_pyobj@sglang/srt/utils/common.py:9",
        "recv_requests@sglang/srt/managers/scheduler.py:1",
    )
    assert judge_thread(scheduler).idle


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Caught signal 7 (Bus error: nonexistent physical address)", "sigbus"),
        ("Fatal Python error: Segmentation fault", "exited-or-crashed"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda-error-throw"),
        ("but store->get('0') got error: Socket Timeout", "store-wait"),
    ],
)
def test_an_error_line_beside_the_stack_decides(message, kind):
    thread = stack(f"barrier@{C10D}:3328", "main@train.py:3")
    assert judge_thread(thread, messages=(message,)).kind == kind
    assert judge_thread(thread).kind == "nccl-group-launch"


def test_a_deep_recursion_is_read():
    deep = stack("read@libc.so.6", *["walk@engine"] * 5000, *ENGINE)
    assert judge_thread(deep).kind == "io"


@pytest.mark.parametrize(
    ("state", "wchan", "kind"),
    [("D", "rpc_wait_bit_killable", "io"), ("D", "who_knows", "unknown"), ("S", "rpc_wait_bit_killable", "unknown")],
)
def test_a_sleep_that_nothing_interrupts_says_in_what(state, wchan, kind):
    thread = ThreadStack(id="1", frames=(), state=state, wchan=wchan, end=StackEnd.OUTLINE)
    assert judge_thread(thread).kind == kind


def test_the_index_leaves_out_no_rule_that_matches():
    index = FrameBook()._native
    names = sorted({text for row in index.rows for text in literal_prefixes(row.rule.function)})
    assert names
    for name in ("", "x", "??", *names[::7]):
        for library in ("", "libc.so.6", "libcuda.so.1", "[kernel]"):
            matching = [one for one in index.rows if one.matches(name, library) and one.module.match(library)]
            assert [one for one in index.candidates(name, library) if one.matches(name, library)] == matching, name


def test_a_helper_that_took_a_signal_and_has_no_frames_stays_one():
    found = judge_thread(stack(name="pt_autograd_0", problems=(CURRENT,)))
    assert found.helper is not None and found.kind == "condvar-idle"
