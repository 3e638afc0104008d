"""Log lines of NCCL, torch, the kernel and launchers that say what went wrong, the most telling first."""

from __future__ import annotations

from typing import Tuple

from gdbext.knowledge.schema import LogRule

_NCCL = "NCCL sources, 2.4-2.32"
_TORCH = "torch ProcessGroupNCCL.cpp, ProcessGroupGloo.cpp"

LOG_RULES: Tuple[LogRule, ...] = (
    LogRule(
        "xid",
        r"NVRM: Xid|\bXid \(",
        "the kernel's driver reported a fault of the GPU",
        "NVIDIA Xid catalogue",
        "gpu-fault",
        "medium",
    ),
    LogRule(
        "ecc",
        r"[Uu]ncorrectable (?:ECC|NVLink) error|CUDA_ERROR_ECC_UNCORRECTABLE",
        "the GPU's memory or link reported an error that cannot be corrected",
        "NVIDIA Xid catalogue",
        "gpu-fault",
        "medium",
    ),
    LogRule(
        "illegal-access",
        r"illegal memory access was encountered|misaligned address|unspecified launch failure"
        r"|Memory access fault by GPU|device-side assert(?:ion)? triggered"
        r"|CUDA_ERROR_(?:ILLEGAL|MISALIGNED|INVALID_PC|HARDWARE_STACK|LAUNCH_FAILED)",
        "a kernel failed on the device; the call that reports it is mostly not the one that caused it",
        "CUDA runtime API, error codes 700-719; ROCm",
        "gpu-fault",
        "medium",
    ),
    LogRule(
        "gpu-reset",
        r"amdgpu.{0,60}(?:GPU reset begin|ring \S+ timeout|\bpage fault\b)|amdkfd.{0,60}HW exception",
        "the kernel's driver found the GPU not answering and resets it",
        "Linux amdgpu_device.c, amdgpu_job.c",
        "gpu-fault",
        "medium",
    ),
    LogRule(
        "fork-after-cuda",
        r"Cannot re-?initialize (?:CUDA|HIP|NPU|XPU) in forked subprocess|initialization error.{0,60}fork",
        "torch found that the process was forked after its parent had initialised CUDA",
        "torch/cuda/__init__.py _lazy_init; vllm-project/vllm#12754",
        "fork-after-cuda",
        "high",
    ),
    LogRule(
        "missing-ranks",
        r"\[missing ranks: ?(?P<rank>\d+(?:, ?\d+)*)\]",
        "Horovod's coordinator waits for ranks that have not submitted the tensor",
        "horovod/common/stall_inspector.cc; horovod#1012",
        "missing-rank",
        "medium",
    ),
    LogRule(
        "shm-segment",
        r"shm\.(?:h|cc):\d+ NCCL WARN .{0,80}No space left|dev/shm.*(?:No space left|[Bb]us error)"
        r"|No space left on device.*shm"
        r"|(?:while creating|extend) shared memory segment|insufficient shared memory \(shm\)",
        "there is no room in /dev/shm",
        "NCCL shmutils.cc; torch data loader",
        "shm-too-small",
        "medium",
    ),
    LogRule(
        "mismatch",
        r"Detected mismatch between collectives on ranks",
        "torch compared the calls of the ranks (TORCH_DISTRIBUTED_DEBUG=DETAIL) and they differ",
        "torch ProcessGroupWrapper.cpp",
        "collective-mismatch",
        "high",
    ),
    LogRule(
        "monitored-barrier",
        r"[Rr]ank\(?s?\)? \[?(?P<rank>\d+(?:, ?\d+)*)\]? failed to pass monitoredBarrier"
        r"|waiting for send/recv from rank (?P<rank2>\d+)",
        "monitoredBarrier names the ranks that did not come",
        "torch.distributed.monitored_barrier",
        "missing-rank",
        "medium",
    ),
    LogRule(
        "killed",
        r"exitcode: -9\b.{0,40}local_rank: (?P<rank>\d+)|oom-kill|Out of memory: Kill(?:ed)? process"
        r"|is killed by signal: Killed",
        "a process of the job was killed, mostly for want of memory",
        "torchrun; Linux oom killer; torch data loader",
        "missing-rank",
        "medium",
    ),
    LogRule(
        "worker-died",
        r"(?:Worker|Engine core) proc \S{1,80} died unexpectedly"
        r"|Scheduler or DataParallelController \S{1,20} terminated with"
        r"|Rank \d+ scheduler is dead|actor died unexpectedly before finishing|Worker exit type: SYSTEM_ERROR"
        r"|srun: error: \S{1,120} task \d+: (?:Killed|Out Of Memory|Segmentation fault|Aborted|Bus error)",
        "a worker of the job ended while the others needed it",
        "vLLM multiproc_executor.py, core_client.py; SGLang engine.py; Ray; Slurm",
        "missing-rank",
        "medium",
    ),
    LogRule(
        "mpi-rank-died",
        r"noticed that process rank (?P<rank>\d+) with PID \d+ .{0,120}exited on signal",
        "the launcher saw a rank die of a signal",
        "Open MPI's mpirun, PRRTE",
        "missing-rank",
        "medium",
    ),
    LogRule(
        "duplicate-gpu",
        r"Duplicate GPU detected ?: ?rank \d+ and rank \d+ both on CUDA device",
        "two ranks were given the same GPU, which NCCL refuses",
        "NCCL init.cc",
        "other",
        "medium",
    ),
    LogRule(
        "version-mismatch",
        r"Mismatched NCCL version detected",
        "the ranks run different releases of NCCL",
        "NCCL init.cc",
        "other",
        "medium",
    ),
    LogRule(
        "no-interface",
        r"[Bb]ootstrap ?: no socket interface found|NET/Socket ?: ?[Nn]o (?:usable )?interface",
        "NCCL found no network interface to use: NCCL_SOCKET_IFNAME names none of this host",
        "NCCL bootstrap.cc, net_socket.cc",
        "network-transport",
        "medium",
    ),
    LogRule(
        "clients-joined",
        r"Timed out after .{0,60} waiting for clients\. \d+/\d+ clients joined",
        "not all ranks came to the store",
        "torch TCPStore.cpp",
        "init-rendezvous",
        "medium",
    ),
    LogRule(
        "gil-not-acquired",
        r"Could not acquire GIL within \d+ ms",
        "torch's monitor could not get the GIL",
        _TORCH,
        "gil-deadlock",
        "low",
    ),
    LogRule(
        "peer-access",
        r"NCCL WARN.*(?:enable peer access|cudaIpcOpenMemHandle|CUDA IPC|peer access is not supported)"
        r"|Could not enable P2P between dev|peer mapping resources exhausted",
        "direct access to another GPU's memory failed",
        _NCCL,
        "p2p-or-topology",
        "medium",
    ),
    LogRule(
        "infiniband",
        r"NET/IB ?: ?Got (?:completion|async event)|Call to (?:wrap_)?ibv_\w+ failed|IBV_WC_\w+ERR",
        "InfiniBand reported a transfer that failed",
        "NCCL transport/net_ib.cc",
        "network-transport",
        "medium",
    ),
    LogRule(
        "unreachable",
        r"NCCL WARN.*(?:No route to host|Connection timed out|Network is unreachable)",
        "a peer's address cannot be reached from here",
        "NCCL misc/socket.cc",
        "network-transport",
        "medium",
    ),
    LogRule(
        "refused",
        r"NCCL WARN.*Connection refused|[Cc]onnection refused.*(?:retry|attempt)",
        "a peer does not listen at its address: not started, gone, or another interface",
        "NCCL misc/socket.cc; NVIDIA/nccl#1324",
        "init-rendezvous",
        "low",
    ),
    LogRule(
        "peer-closed",
        r"NCCL WARN.*(?:[Cc]onnection closed by (?:remote )?peer|Connection reset by peer|remote process exited)"
        r"|Connection closed by peer \[",
        "a peer closed its connection: its process ended first",
        "NCCL misc/socket.cc; gloo transport/tcp/pair.cc",
        "missing-rank",
        "low",
    ),
    LogRule(
        "remote-error",
        r"ncclRemoteError|ncclSystemError|ncclInternalError|ncclUnhandledCudaError",
        "NCCL gave up; the first rank that says so is nearest to the cause",
        _NCCL,
    ),
    LogRule(
        "no-block",
        r"No available shared memory broadcast block found",
        "the writer waits for a reader of vLLM's message queue; the one that does not read is inside a step",
        "vllm-project/vllm#27313, #46611",
    ),
    LogRule(
        "device-runs-nccl",
        r"^\*?\s{1,8}\d{1,6}\s.{0,120}\bActive\b.{0,120}\bnccl(?:Dev)?Kernel\w*",
        "cuda-gdb lists a kernel of NCCL as running on the device",
        "cuda-gdb manual, info cuda kernels",
    ),
    LogRule("nccl-warning", r"NCCL WARN ", "NCCL warned", _NCCL),
    LogRule(
        "watchdog",
        r"[Ww]atchdog (?:caught|timeout)|WatchDog|Timeout at NCCL work|NCCL work .* timed out"
        r"|failure detected by watchdog",
        "a watchdog gave up waiting",
        _TORCH,
    ),
    LogRule(
        "rank-exit-code",
        r"failed \(exitcode: -?\d+\) local_rank: \d+ \(pid: \d+\)",
        "the launcher saw a rank end",
        "torch elastic multiprocessing/api.py",
    ),
    LogRule(
        "child-died",
        r"^Process \S*Process-\d+(?::\d+)*:$|terminated abnormally with signal \d+",
        "a process ended by an exception or a signal",
        "cpython multiprocessing/process.py; systemd-coredump",
    ),
    LogRule(
        "queue-eviction",
        r"amdgpu.{0,60}(?:Failed to evict queue|Failed to quiesce|sq_intr: error)",
        "the driver could not stop a queue of the GPU",
        "Linux kfd_device_queue_manager.c",
    ),
    LogRule(
        "failed-check",
        r"\[(?:FT|TM|TensorRT-LLM)\]\[(?:ERROR|FATAL)\].{0,400}?(?:(?:CUDA|NCCL) (?:runtime |[Dd]river )?error"
        r"|[Aa]ssertion fail|Check failed: |Must be non NULL)"
        r"|^F\d{4,8} [\d:.]{1,20} +\d{1,9} \S{1,500}:\d+\] Check failed: |\[ERROR\] .{0,400}?Assertion fail: ",
        "a check of the engine failed",
        "FasterTransformer cuda_utils.h; TurboMind core/check.cc, core/logger.cc; TensorRT-LLM assert.h; glog",
    ),
    LogRule("terminate", r"terminate called", "a C++ exception was not caught", "libstdc++"),
    LogRule(
        "memory", r"No space left on device|Cannot allocate memory|[Oo]ut of memory", "something is full", "Linux, CUDA"
    ),
    LogRule(
        "signal-of-core",
        r"^thread \d+ terminated by SIG[A-Z]+\b",
        "the core was written because a signal ended the process",
        "NT_PRSTATUS and NT_SIGINFO of the core (commands/cores.py)",
    ),
)

TIMED_OUT = (
    r"WorkNCCL\(SeqNum=(?P<seq>\d{1,12}), OpType=(?P<op>\w{1,40})"
    r"(?:, NumelIn=(?P<count>\d{1,20}))?"
)
"""The collective that torch's watchdog gave up, with its number in the order of its process group."""

LAUNCHER_SAW = r"noticed that process rank (?P<rank>\d{1,6}) with PID (?P<pid>\d{1,9}) "
"""Open MPI's mpirun names rank and pid of the first process that died."""

PROGRESS = r"last enqueued work: (?P<enqueued>-?\d{1,12}), last completed work: (?P<completed>-?\d{1,12})"
"""How far a rank got in its process group."""

GROUP = r"PG(?: ID \S{1,20})? GUID (?P<group>[^\s\])]{1,80})"
"""Name of the process group; lines without it are of the default one."""

RANK = r"(?:\[|GUID [^\]]{1,80} )Rank (?P<rank>\d{1,6})\]"
"""Whose line it is. Within another group than the default it is the number in that group."""

UNEVEN = ("ALLTOALL", "ALLTOALL_BASE", "SEND", "RECV", "GATHER", "SCATTER", "BROADCAST", "COALESCED", "UNKNOWN")
"""Operations whose sizes may differ between ranks, or whose number means something else on the two sides."""
