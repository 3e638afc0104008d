"""Lines that are evidence and name no cause, or one that may have nothing to do with it; and what a process that says
so waits in, where no stack of it was read."""

from typing import Tuple

from gdbext.knowledge.device_code import LISTED_KERNEL
from gdbext.knowledge.log_lines.steps_reached import ANNOUNCED
from gdbext.knowledge.row_kinds import LogRule

_TORCH = "torch ProcessGroupNCCL.cpp, ProcessGroupGloo.cpp"
WATCHDOG_RAISED = (
    r"Exception raised from (?:ncclCommWatchdog|watchdogHandler|runLoop|(?P<timeout>checkTimeout)"
    r"|(?P<nccl>checkForNCCLErrors\w*))\b"
)
"""torch's NCCL watchdog ends the process: for a timeout, an error of NCCL, or one of these or of CUDA."""
_ENVELOPE = r"source=(?P<source>-?\d{1,9}), tag=(?P<tag>-?\d{1,10})\b"
PENDING_RECEIVE = rf"^\s{{0,8}}[0-9a-f]{{6,8}}: \w{{0,40}}(?:recv|Recv|RECV)\w{{0,20}}: {_ENVELOPE}"
UNMATCHED_MESSAGE = rf"^\s{{0,8}}[0-9a-f]{{6,8}}: \w{{0,40}}unexp\w{{0,20}}: {_ENVELOPE}"
ANY_SOURCE, ANY_TAG = "-2", "-1"
"""MPICH's list of pending requests, and its numbers of MPI_ANY_SOURCE and MPI_ANY_TAG (mpi.h)."""
_DEAD, _THROWS, _QUEUE = "exited-or-crashed", "cuda-error-throw", "ipc-queue"

HOLDER = (
    r"^(?P<holder>\d{1,9})(?:, (?P<name>[^,|]{1,120})| \((?P<title>[^()|]{1,120})\))?, (?P<memory>\d{1,7} MiB)"
    r"(?=$| {1,9}#)"
)
"""A row of nvidia-smi's list of processes: pid, name and memory, also with the name between parentheses."""

RULES: Tuple[LogRule, ...] = (
    LogRule(
        "nccl-returned",
        r"\bunhandled (?:system|cuda) error\b|^\s{0,20}nccl[A-Z]\w{2,40}\(\) at \S",
        "a call of NCCL failed and returned its error to the program",
        "NCCL init.cc, ncclGetErrorString; HugeCTR common.hpp",
        wait=_DEAD,
    ),
    LogRule(
        "remote-error",
        r"ncclRemoteError|remote process exited or there was a network error"
        r"|ncclSystemError|ncclInternalError|ncclUnhandledCudaError",
        "NCCL gave up; the first rank that says so is nearest to the cause",
        "NCCL sources, 2.4-2.32",
    ),
    LogRule(
        "no-block",
        r"No available (?:shared memory broadcast )?block found",
        "a process waits at vLLM's shared-memory queue for another one, which may hang, have ended or be busy with "
        "something slow",
        "vLLM shm_broadcast.py: acquire_write and acquire_read print the same sentence; vllm-project/vllm#7454",
        wait=_QUEUE,
        by_writer=(
            (
                r"(?i).*worker",
                "this worker waits for the engine process, which may hang, have ended, be busy with something slow, or "
                "have nothing to send",
            ),
            (
                r"(?i).*engine_?core",
                "the engine process waits for its workers: at least one of them hangs, has ended, or is busy with "
                "something slow, such as compilation",
            ),
        ),
    ),
    LogRule(
        "engine-not-started",
        r"[Ww]aiting for \d+ (?:local, \d+ remote )?core engine proc",
        "the front end still waits for an engine core process to start",
        "vLLM v1/utils.py, v1/engine/core_client.py",
        wait=_QUEUE,
    ),
    LogRule(
        "rpc-timeout",
        r"RPC call to \w{1,60} timed out|Health check failed\. Server couldn't get a response"
        r"|Timed out waiting for engine|[Ee]xecute_?[Mm]odel timed? ?out"
        r"|Losing connection with prefill instance|kvcache from prefill instance, it might"
        r"|Timed out waiting for KV cache transfer|have not registered within the timeout"
        r"|waiting for GCS to become available|No available node types can fulfill"
        r"|Ray Compiled (?:Graph|DAG).{0,80}timed? ?out|RayChannelTimeoutError|GetTimeoutError",
        "a process of the engine waited for another one and got no answer",
        "vLLM multiproc_executor.py, v1/utils.py; SGLang http_server.py, disaggregation/*/conn.py; Ray compiled graphs",
        wait=_QUEUE,
    ),
    LogRule(
        "notify-timeout",
        r"wait execution of the Notify register times out|fftsplus (?:task )?timeout|stuck notify (?:wait|num)"
        r"|(?:StreamSynchronize|DeviceSynchronize)(?:WithTimeout)? execute failed"
        r"|synchronize (?:stream|device)(?: with timeout)? failed"
        r"|error code is 507048|ACL stream synchronize failed",
        "a collective on the NPU timed out",
        "CANN error code EI0002, 507048",
        wait="stream-sync",
    ),
    LogRule(
        "device-runs-nccl",
        LISTED_KERNEL,
        "cuda-gdb lists a kernel of NCCL as running on the device",
        "cuda-gdb manual, info cuda kernels",
    ),
    LogRule(
        "device-runs-kernel",
        r"^\*?\s{1,8}\d{1,6}\s{1,8}(?:-|\d{1,6})\s{1,8}\d{1,4}\s{1,12}-?\d{1,12}\s{1,8}Active\s.{10,300}\(",
        "the debugger lists a kernel as running on the device; the text does not show why it has not finished",
        "cuda-gdb manual, info cuda kernels",
    ),
    LogRule(
        "nccl-call-failed",
        r"\bNCCL INFO (?:[\w./-]{1,60}/)?\w{1,40}\.(?:cc|cu|h|cpp):\d{1,6} -> (?P<nccl>[1-68])\b",
        "a call inside NCCL failed and returned its error to the program",
        "NCCL checks.h, NCCLCHECK; nccl.h: 7 is no failure",
        wait=_DEAD,
    ),
    LogRule(
        "nccl-warning",
        r"NCCL WARN |RCCL WARN |\|CCL_ERROR\|",
        "the collective library (NCCL, RCCL, oneCCL) printed a warning",
        "NCCL, oneCCL",
    ),
    LogRule(
        "deepep-timeout",
        r"DeepEP (?:timeout check failed|timeout|dispatch.{0,40}timeout|combine.{0,40}timeout)",
        "a kernel of DeepEP gave up waiting for another rank",
        "DeepEP csrc/kernels",
        wait="unknown",
    ),
    LogRule(
        "watchdog-stuck",
        r"watchdog got stuck for \d+ seconds",
        "torch's watchdog thread is stuck, either in a CUDA call that does not return or waiting for the GIL",
        _TORCH,
    ),
    LogRule(
        "watchdog",
        r"[Ww]atchdog (?:caught|[Tt]imeout)|WatchDog|Timeout at (?:NCCL|HCCL|XCCL) work|(?:N|H|X)CCL work .* timed out"
        r"|ProcessGroup\w{1,12}\.cpp:\d{1,6}\] Work ran time out after"
        r"|failure detected by watchdog|Heartbeat monitor timed out|Hang detected (?:on rank|after)"
        r"|Received a dump signal due to a collective timeout|raised the following async exception"
        r"|Some (?:NCCL|HCCL|XCCL) operations have failed or timed out|we are taking the entire process down"
        r"|Terminating the process after attempting to dump debug info",
        "a watchdog gave up waiting",
        f"{_TORCH}; SGLang watchdog; TensorRT-LLM hang_detector.py",
        wait="unknown",
    ),
    LogRule(
        "hung-task",
        r"task \S{1,40}:\d{1,9} blocked for more than \d{1,6} seconds",
        "the kernel found a thread that has slept uninterruptibly for minutes",
        "Linux kernel/hung_task.c",
        wait="unknown",
    ),
    LogRule(
        "cpu-stuck",
        r"soft lockup - CPU#\d|self-detected stall on CPU|hard LOCKUP on cpu",
        "the kernel found a CPU that has not left kernel code for many seconds",
        "Linux kernel/watchdog.c, kernel/rcu/tree_stall.h",
        wait="unknown",
    ),
    LogRule(
        "forked-with-threads",
        r"current process just got forked, after parallelism has already been used",
        "this is only a warning: after a fork the tokenizers library has switched off its own threads to avoid a "
        "deadlock; a lock of another library that was held at the fork can still block the child",
        "tokenizers bindings/python/src/lib.rs",
        wait="unknown",
    ),
    LogRule(
        "coordination-error",
        r"Failed to disconnect from coordination service|Polled an error from coordination service",
        "the coordination service of XLA reported an error, of this task or of another one",
        "tsl coordination_service_agent.cc",
        wait="store-wait",
    ),
    LogRule(
        "participant-waits",
        r"This thread has been waiting for (?:\d{1,9} ?ms for|.{1,600} for \d{1,9} seconds and may be stuck)",
        "XLA waits in a collective for other participants",
        "xla/service/collective_ops_utils.h",
        wait="nccl-group-launch",
    ),
    LogRule(
        "queue-eviction",
        r"amdgpu.{0,60}(?:Failed to (?:evict (?:process )?queue|suspend process)|Failed to quiesce|sq_intr: error"
        r"|MES failed to respond"
        r"|qcm fence wait loop timeout|cp might be in an unrecoverable state)",
        "the driver could not stop a GPU queue, so the GPU probably hangs",
        "Linux kfd_device_queue_manager.c, amdgpu mes_v*.c",
    ),
    LogRule(
        "failed-check",
        r"\[(?:FT|TM|TensorRT-LLM)\]\[(?:ERROR|FATAL)\].{0,400}?(?:(?:CUDA|NCCL) (?:runtime |[Dd]river )?error"
        r"|[Aa]ssertion fail|Check failed: |Must be non NULL)"
        r"|^F\d{4,8} [\d:.]{1,20} +\d{1,9} \S{1,500}:\d+\] Check failed: |\[ERROR\] .{0,400}?Assertion fail: ",
        "a check of the engine failed",
        "FasterTransformer cuda_utils.h; TurboMind core/check.cc, core/logger.cc; TensorRT-LLM assert.h; glog",
    ),
    LogRule(
        "call-failed",
        r"ERR\d{5} (?:PTA|OPS|DIST|RPC|GRAPH|PROF) call|ERR\d{5}.{0,40}call acl api failed|musa(?:rt)? error"
        r"|MUSA error",
        "a call of the runtime failed",
        "torch_npu NPUException.h; torch_musa",
        wait=_THROWS,
    ),
    LogRule("terminate", r"terminate called", "a C++ exception was not caught", "libstdc++", wait=_DEAD),
    LogRule(
        "memory",
        r"No space left on device|Cannot allocate memory|[Oo]ut of memory",
        "memory, a disk or /dev/shm is full",
        "Linux, CUDA",
    ),
    LogRule(
        "device-memory",
        r"Lack of device memory",
        "the memory of the device is full",
        "RBLN, SYS_EBUSY",
    ),
    LogRule(
        "signal-of-core",
        r"^thread \d+ terminated by SIG[A-Z]+\b",
        "the core was written because a signal ended the process",
        "NT_PRSTATUS and NT_SIGINFO of the core (snapshot_builder/core_job.py)",
        wait=_DEAD,
    ),
    LogRule(
        "watchdog-raised",
        rf"{WATCHDOG_RAISED}|Exception raised from heartbeatMonitor\b",
        "torch's NCCL watchdog thread ended with an exception",
        _TORCH,
        wait=_DEAD,
    ),
    LogRule(
        "unhandled",
        r"^Unhandled exception|^fatal error: unexpected signal|Fatal error in (?:P?MPI|internal)_\w+: "
        r"|SIGSEGV: segmentation violation|signal \(\d{1,2}(?:\.\d)?\): [A-Z]|Uncaught exception"
        r"|Segfault encountered|Fatal Python error|Windows fatal exception: |Exception Code: 0x|Caught signal \d"
        r"|\*{3} (?:SIG(?!TERM)[A-Z]{2,6}|Process) received|^(?:[\w.]{1,120}\.)?\w{1,80}(?:Error|Exception|Failed): \S"
        r"|\(core dumped\)|\bRayTaskError\(|UCX +FATAL |\*{3} An error occurred in P?MPI_|MPI_ERRORS_ARE_FATAL"
        r"|\*{3} Aborted at \d{1,12} \(unix time\)"
        r"|^\[[^\]\s]{1,80}:\d{1,9}:\d{1,6}:\d{1,9}\] (?:invalid permissions for|address not mapped to) ",
        "a process ended with this error or signal",
        "CPython, Ray, UCX, abseil, glog, Open MPI, the shell",
        wait=_DEAD,
    ),
    LogRule(
        "iommu-fault",
        r"AMD-Vi: .{0,40}\[IO_PAGE_FAULT |\bDMAR: \[(?:DMA|INTR)[^\]]{1,20}\].{0,80}fault",
        "the IOMMU blocked memory accesses by a PCIe device; if that is a GPU or a network card, this breaks its "
        "direct transfers to other devices",
        "Linux drivers/iommu/amd, drivers/iommu/intel; NCCL user guide, PCI access control services",
        "p2p-or-topology",
        "low",
    ),
    LogRule(
        "mpich-pending-receive",
        PENDING_RECEIVE,
        "MPICH lists a receive that has been pending for a while: the rank behind `source=` has not sent yet",
        "MPICH mpir_progress_hook.c, MPIR_CVAR_DEBUG_PROGRESS_TIMEOUT; mpidig_recv.h",
        wait="mpi",
    ),
    LogRule(
        "mpich-unmatched-message",
        UNMATCHED_MESSAGE,
        "MPICH lists a message that has come from the rank behind `source=` and that no receive has matched",
        "MPICH mpidig_recvq.h, create_unexp_rreq",
        wait="mpi",
    ),
    LogRule(
        "mpich-pending-requests",
        r"^\s{0,8}\d{1,9} pending requests in pool \d",
        "MPICH lists requests that have been pending for a while; where one of them shows `source=`, that rank has not "
        "sent yet",
        "MPICH mpir_progress_hook.c, MPIR_CVAR_DEBUG_PROGRESS_TIMEOUT",
        wait="mpi",
    ),
    LogRule(
        "xla-operation-ended",
        r"slow_operation_alarm\.cc:\d{1,5}\] The operation took [\dhms.]{1,40}",
        "XLA's slow compilation has finished",
        "xla/service/slow_operation_alarm.cc",
        "not-a-hang",
        "low",
        wait="native-compute",
    ),
    LogRule(
        "xla-slow-operation",
        r"Very slow compile\?|slow_operation_alarm\.cc:\d{1,5}\] \w",
        "XLA warns of a slow compilation, and logs how long it took once it has finished",
        "xla/service/slow_operation_alarm.cc",
        wait="native-compute",
    ),
    LogRule(
        "collective-announced",
        ANNOUNCED,
        "torch announces each collective before it checks and runs it (TORCH_DISTRIBUTED_DEBUG=DETAIL)",
        "torch ProcessGroupWrapper.cpp",
    ),
    LogRule(
        "uses-gpu-memory",
        HOLDER,
        "a process that uses memory of a GPU",
        "nvidia-smi --query-compute-apps",
    ),
)
