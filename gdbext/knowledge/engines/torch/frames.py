"""libtorch: process groups, stores, autograd and its thread pools."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.engines.frame_rows import EXCHANGES_ID, step
from gdbext.knowledge.frame_precedence import API, LOCK, OUTER, STEP
from gdbext.knowledge.row_kinds import FrameRule

_CALLS = (
    (r"allreduce(_sparse|_coalesced|_impl)?", "all_reduce"),
    (r"_?allgather\w*", "all_gather"),
    (r"_?broadcast\w*", "broadcast"),
    (r"_?reduce_scatter\w*", "reduce_scatter"),
    (r"_?reduce(_oop)?", "reduce"),
    (r"alltoall(_base)?", "all_to_all"),
    (r"gather", "gather"),
    (r"scatter", "scatter"),
    (r"barrier|monitoredBarrier", "barrier"),
    (r"send", "send"),
    (r"recv(Anysource)?", "recv"),
)


_BACKWARD = r"torch::autograd::(python::)?(Python)?Engine::execute\w*"


def _calls() -> Tuple[FrameRule, ...]:
    return tuple(
        FrameRule(
            f"torch-{collective}",
            "nccl-group-launch",
            rf"c10d::ProcessGroup(NCCL)?::{EXCHANGES_ID}({names})$",
            "torch ProcessGroupNCCL.cpp",
            rank=STEP,
            collective=collective,
        )
        for names, collective in _CALLS
    )


RULES = (
    *_calls(),
    FrameRule(
        "torch-store",
        "store-wait",
        r"c10d::(TCPStore|PrefixStore|FileStore|HashStore|Store|detail::(TCPClient|Socket(Impl)?|UvTcp\w*)|tcputil"
        r"|(detail::)?\(anonymous namespace\)::(storeWait|Socket(Connect|Listen)Op)|symmetric_memory::StoreExchange)::",
        "torch TCPStore.cpp, socket.cpp, symm_mem/CUDASymmetricMemoryUtils.hpp",
        rank=API,
    ),
    step(
        "torch-init-comm",
        "nccl-init",
        r"c10d::(ProcessGroupNCCL::(initNCCLComm|getNCCLComm|broadcastUniqueNCCLID|allgatherUniqueNCCLIDs|eagerConnectSingleDevice)"
        r"|NCCLComm::(create|split|waitReady|getNcclComm|waitUntilInitialized)"
        r"|ProcessGroupXCCL::(initXCCLComm|getXCCLComm)|ProcessGroupUCC::(initComm|CommPG::ucc_create_team))",
        "torch ProcessGroupNCCL.cpp, NCCLUtils.cpp, ProcessGroupXCCL.cpp; NVIDIA/nccl#1774",
    ),
    FrameRule(
        "torch-abort",
        "nccl-destroy-abort",
        r"c10d::(ProcessGroupNCCL::(abort\w*|shutdown|~ProcessGroupNCCL|waitForFutureOrTimeout|waitForPendingWorks)"
        r"|NCCLComm::(ncclCommAbort|abort|finalize|destroy|~NCCLComm))",
        "NVIDIA/nccl#1013, #1777",
        rank=OUTER,
    ),
    FrameRule(
        "torch-group-end",
        "nccl-destroy-abort",
        r"c10d::(ProcessGroup(MPI|Gloo|UCC|XCCL|HCCL|CNCL)::(destroy|shutdown|abort\w*|~ProcessGroup\w+)"
        r"|ProcessGroup::~ProcessGroup)",
        "torch ProcessGroupMPI.cpp; pytorch#76760: joins a thread that waits for a collective",
        rank=OUTER,
    ),
    step(
        "torch-work-wait",
        "nccl-group-launch",
        r"c10d::(ProcessGroup(NCCL|XCCL|UCC)::((Work(NCCL|XCCL|UCC)|CoalescedWorkNCCL)::(wait|synchronize\w*)|groupEnd\w*)|Work::wait"
        r"|Reducer::(finalize_backward|finalize_bucket_dense)|wait_tensor|\(anonymous namespace\)::wait_tensor)",
        "torch Work.cpp, ProcessGroupNCCL.cpp, reducer.cpp, Functional.cpp",
    ),
    FrameRule(
        "torch-symmetric-memory",
        "nccl-init",
        r"c10d::(symmetric_memory::(\w*SymmetricMemoryAllocator::rendezvous|IpcChannel::\w+|\w*rendezvous\w*)"
        r"|intra_node_comm::IntraNodeComm::rendezvous)",
        "torch c10d/symm_mem: the members of a group exchange handles of their memory",
        rank=OUTER,
    ),
    step(
        "torch-checked-group",
        "gloo",
        r"c10d::(ProcessGroupWrapper::runCollectiveChecks|\(anonymous namespace\)::CollectiveFingerPrint::verify)",
        "torch ProcessGroupWrapper.cpp: TORCH_DISTRIBUTED_DEBUG compares every collective over Gloo first",
    ),
    step(
        "torch-stream-sync", "stream-sync", r"c10::cuda::(CUDAStream::(synchronize|query)|stream_synchronize)", "torch"
    ),
    step("torch-event-sync", "event-sync", r"at::cuda::CUDAEvent::(synchronize|query)", "torch"),
    step(
        "torch-model-done",
        "event-sync",
        r"torch::aot_inductor::AOTInductorModelBase<.*>::wait_for_completion$",
        "torch inductor/aoti_runtime/model_base.h",
    ),
    step(
        "torch-graph-replay",
        "kernel-launch",
        r"at::cuda::CUDAGraph::(replay|instantiate|capture_end)",
        "torch CUDAGraph.cpp",
    ),
    step("torch-item", "stream-sync", r"at::native::_local_scalar_dense_cuda", "`.item()` reads one value back"),
    FrameRule(
        "torch-cublas",
        "cublas",
        r"at::cuda::(getCurrentCUDABlas(Lt)?Handle|getCUDABlasLtWorkspace\w*|blas::\w+)|at::native::getCudnnHandle",
        "libtorch makes the handle at the first use, by calls into nameless cuBLAS",
        rank=LOCK + 1,
    ),
    FrameRule(
        "torch-copy",
        "memcpy-sync",
        r"at::native::copy_(kernel_cuda|device_to_device|requires_temporaries)",
        "torch Copy.cu",
        rank=LOCK,
    ),
    FrameRule(
        "torch-watchdog",
        "condvar-idle",
        r"c10d::ProcessGroup(NCCL|XCCL)::(ncclCommWatchdog|workCleanupLoop|watchdogHandler|heartbeatMonitor|runHookLoop|HeartbeatMonitor\w*::\w+"
        r"|Watchdog::\w+)",
        "torch ProcessGroupNCCL.cpp, ProcessGroupXCCL.cpp",
        helper="NCCL watchdog",
    ),
    FrameRule(
        "torch-mpi-worker",
        "condvar-idle",
        r"c10d::(ProcessGroupMPI::runLoop|CommPG::progress_loop)$",
        "torch ProcessGroupMPI.cpp, ProcessGroupUCC.cpp: the thread that carries out what was queued",
        helper="thread pool",
        leaf=True,
    ),
    FrameRule(
        "torch-profiler",
        "condvar-idle",
        r"libkineto::(ConfigLoader::updateConfigThread|\w*ProfilerController::\w*[lL]oop|\w*ConfigLoader::\w+|CuptiRangeProfiler\w*::\w+)$",
        "pytorch/kineto libkineto/src: threads of the profiler",
        helper="profiler",
        leaf=True,
    ),
    FrameRule(
        "torch-tcpstore-daemon",
        "condvar-idle",
        r"c10d::detail::(TCPStoreMasterDaemon|LibUVStoreDaemon|BackgroundThread)::",
        "torch TCPStoreBackend.cpp",
        helper="TCPStore server",
    ),
    FrameRule(
        "torch-autograd-idle",
        "condvar-idle",
        r"torch::autograd::(ReadyQueue::pop|Engine::(thread_main|reentrant_thread_init))",
        "waits for backward work; the thread that calls backward() does the CPU's share of it in the same function",
        helper="autograd",
        leaf=True,
        not_under=_BACKWARD,
    ),
    FrameRule(
        "torch-autograd-caller",
        "condvar-idle",
        _BACKWARD,
        "the caller of backward() waits for the autograd threads",
        rank=LOCK,
    ),
    FrameRule(
        "torch-pool",
        "condvar-idle",
        r"(c10::(TaskThreadPool|ThreadPool)::main_loop|at::\w*[Tt]hread[Pp]ool|caffe2::ThreadPool|pthreadpool_thread\w*|thread_main"
        r"|thread_worker|wait_for_new_command)",
        "c10 pools and pthreadpool",
        helper="thread pool",
        leaf=True,
    ),
    FrameRule(
        "torch-pin-memory",
        "condvar-idle",
        r"torch::(data|monitor)::",
        "loader and monitor threads",
        helper="torch background",
        leaf=True,
    ),
)
