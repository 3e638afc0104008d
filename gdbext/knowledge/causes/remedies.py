"""What to do about each cause. Conditions are data: advice that means nothing for this job is not given."""

from typing import Mapping, Tuple

from gdbext.knowledge.causes.held_by_frames import ENDS, EXITS, FILE_LOCKS
from gdbext.knowledge.causes.late_ranks import LATE_REMEDIES
from gdbext.knowledge.frames.system.linux_kernel import KERNEL
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.row_kinds import RemedyRule

_SANITIZER = "Compute Sanitizer manual, NVIDIA"
_ALLOCATES = ("pinned-host-alloc", "device-alloc", "device-free")

SHOWN_BY: Mapping[str, Tuple[str, ...]] = {
    "gil": ("gil-deadlock",),
    "mutex": ("lock-order-deadlock", "gil-deadlock"),
    "sigbus": ("shm-too-small",),
    "module-load": ("lazy-module-load-vs-collective",),
    "nccl-init": ("init-rendezvous",),
    "nccl-destroy-abort": ("destructor-or-teardown",),
    "cuda-error-throw": ("gpu-fault",),
}
"""Causes of which a wait is the sign, whatever the culprit's thread waits in."""

SELDOM = ("destructor-or-teardown",)
"""Causes of few of the waits that their advice names: `explain WAIT` gives that advice last."""

_FOR_THE_GPU = ("stream-sync", "event-sync", "device-sync", "kernel-launch", "memcpy-sync", "nccl-group-launch")
_TEARS_DOWN = ("nccl-destroy-abort", "nccl-init", "mpi", "gloo", *_ALLOCATES, *_FOR_THE_GPU)
_OUTSIDE = ("mutex", "condvar-idle", "io", "ipc-queue", "python-code")
_SHUTS_DOWN = f"(?:{ENDS})|(?:{EXITS})"
_JOINED = "a shutdown that joins a thread waits as long as that thread waits for something itself"
_OF_PEERS = (*_FOR_THE_GPU, *_ALLOCATES, "module-load", "cublas", "nccl-init", "mpi", "gloo", "store-wait", "ipc-queue")
_LOCK_FILE = (
    "a lock file whose existence is the lock outlives a process that was killed; one of flock or fcntl ends with its "
    "process, but not always on a network file system"
)
_MAY_RUN = ("python-code", "native-compute", "unknown")
_CORE_FILE = "its core file (coredumpctl gdb, then `thread apply all bt full`)"
APPLE = r"-\[|MTL|at::mps::"
"""Functions of Apple's GPU stack, where NCCL is not at hand."""
_NOT_DEAD = tuple(kind for kind, group in WAIT_GROUPS.items() if group != "fatal")


def _of_line(rule: str, action: str, reason: str, source: str) -> RemedyRule:
    return RemedyRule("other", action, reason, source, rules=(rule,), given=("text", "core", "log"))


_OF_LOG_LINES = (
    _of_line(
        "heap-broken",
        "Run it under AddressSanitizer or valgrind: the first invalid access that it reports is the fault",
        "the heap was damaged before the call that noticed it",
        "valgrind manual; AddressSanitizer",
    ),
    _of_line(
        "ended-by-its-runtime",
        "Read the exception's text, the what() of the next log line; in gdb `catch throw` stops where it is thrown",
        "the stack of abort() begins behind the throw",
        "std::terminate; gdb manual, catchpoints",
    ),
    _of_line(
        "failed-assertion",
        f"Read the condition in that line; for the values open {_CORE_FILE}",
        "the condition names what the program did not expect",
        "assert(3)",
    ),
    _of_line(
        "no-device-context",
        "Call cudaSetDevice in that thread before it uses the GPU (or cuCtxSetCurrent)",
        "a new thread has no current context until a call of the runtime sets one",
        "CUDA driver API, context management",
    ),
    _of_line(
        "programming-error",
        "Read the exception in the last line of the traceback, and your own innermost line above it",
        "the program raised it itself; nothing hangs",
        "Python documentation, errors",
    ),
    *(
        _of_line(
            rule,
            "Run once with num_workers=0: the error then comes in the main process, with its own traceback",
            "the loader only reports that its worker ended",
            "torch.utils.data documentation",
        )
        for rule in ("loader-worker-failed", "loader-worker-died")
    ),
    _of_line(
        "no-memory-left",
        "Look at which memory the line names: nvidia-smi for the GPU, free -m and the cgroup's memory.max for the host",
        "a smaller batch or cache helps against the first, a higher limit against the second",
        "kernel documentation, cgroup-v2",
    ),
    _of_line(
        "not-made-for-this-host",
        "Compare nvidia-smi (driver, GPU) with the build: python -m torch.utils.collect_env",
        "the driver must be as new as the CUDA of the build, and the build must have code for this GPU",
        "CUDA compatibility guide",
    ),
    _of_line(
        "duplicate-gpu",
        "Give each rank its own GPU: torch.cuda.set_device(local_rank), or CUDA_VISIBLE_DEVICES",
        "NCCL refuses two ranks of one communicator on one GPU",
        "NCCL user guide",
    ),
    _of_line(
        "version-mismatch",
        "Install the same NCCL for all ranks: python -c 'import torch; print(torch.cuda.nccl.version())' on each host",
        "NCCL speaks no other release's protocol",
        "NCCL user guide",
    ),
)

REMEDIES: Tuple[RemedyRule, ...] = (
    RemedyRule(
        "implicit-sync-vs-collective",
        "Allocate page-locked buffers once at start (or take them from a pool), never between collectives",
        "cudaMallocHost, cudaHostAlloc and cudaFreeHost wait until the device is idle, and a collective that "
        "waits for a peer keeps it busy",
        "NVIDIA/nccl#48; CUDA programming guide, implicit synchronization",
        kinds=("pinned-host-alloc",),
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "Free device memory only where no collective is in flight, or use cudaMallocAsync and cudaFreeAsync; "
        "torch.cuda.empty_cache calls cudaFree too",
        "cudaFree waits for all work on the device, including a collective in another stream, and cudaMalloc may",
        "CUDA programming guide, stream ordered allocator",
        kinds=("device-alloc", "device-free"),
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "Use every cuBLAS handle once (and set its workspace) before the first collective",
        "the first call allocates memory and loads kernels, and both wait for the device",
        "triton-inference-server/fastertransformer_backend#28; cuBLAS documentation, cublasSetWorkspace",
        kinds=("cublas",),
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "Set CUDA_MODULE_LOADING=EAGER",
        "then kernels are loaded at start, not at their first call behind a collective",
        "CUDA programming guide, lazy loading",
        kinds=("cublas",),
        unset_in="CUDA_MODULE_LOADING=EAGER",
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "Put the calls of all ranks of the process between ncclGroupStart and ncclGroupEnd, or set "
        "NCCL_LAUNCH_MODE=GROUP",
        "in group mode this NCCL launches the ranks of one process together, so no rank is caught between two launches",
        "NCCL 2.7-2.12 sources; FasterTransformer documentation",
        threads_as_ranks=True,
        nccl=("2.7.0", "2.12.999"),
        unset_in="NCCL_LAUNCH_MODE=GROUP",
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "On all ranks, launch the collectives of a step before any call that waits for the device, in the same "
        "stream order",
        "a collective completes only when every rank has launched its part, so no rank may wait before its launch",
        "NCCL user guide, using multiple communicators concurrently",
    ),
    RemedyRule(
        "lazy-module-load-vs-collective",
        "Set CUDA_MODULE_LOADING=EAGER",
        "then all kernels are loaded at start; loading one later may wait for the device, which a collective keeps "
        "busy",
        "CUDA programming guide, lazy loading; torchcomms PR#2334",
        unset_in="CUDA_MODULE_LOADING=EAGER",
    ),
    RemedyRule(
        "lazy-module-load-vs-collective",
        "Run every kernel once before the first collective (warm-up), including those for rare sizes",
        "a kernel stays loaded after its first call",
        "CUDA programming guide, lazy loading",
    ),
    RemedyRule(
        "missing-rank",
        "Find out why its process is gone: read the rank's log, and dmesg (out of memory?); then restart the whole job",
        "a collective cannot complete without a member; the others wait for ever, or until the watchdog's timeout",
        "NVIDIA/nccl#585",
        kinds=("exited-or-crashed",),
    ),
    RemedyRule(
        "missing-rank",
        "Read the log of the missing rank; if it is alive, dump its stack: py-spy dump --native --pid PID > dump.txt",
        "the lines of the others name the rank, but not what it does instead",
        "pytorch/pytorch#87995",
        named=True,
        given=("log",),
    ),
    RemedyRule(
        "missing-rank",
        "Look at what the missing rank waits for; give that a timeout, or let all ranks skip the step",
        "every rank must reach every collective, in the same order",
        "pytorch/pytorch#87995",
        kinds=(
            *("io", "ipc-queue", "condvar-idle", "python-code", "native-compute", "mutex", "gil", "store-wait", "mpi"),
            *("stream-sync", "event-sync", "device-sync", "unknown"),
        ),
        named=True,
    ),
    RemedyRule(
        "missing-rank",
        "Check that all ranks run the same number of steps and read data of the same length",
        "a rank that leaves the loop early never reaches the next collective",
        "mlcommons/storage#172",
        kinds=("io", "ipc-queue", "condvar-idle", "python-code", "exited-or-crashed"),
        python=True,
    ),
    RemedyRule(
        "missing-rank",
        "Find out why its process is gone: read the rank's log, and dmesg (out of memory?); then restart the whole job",
        "the communicator has more ranks than there are processes; a collective cannot complete without a member",
        "NVIDIA/nccl#585",
        absent=True,
    ),
    RemedyRule(
        "missing-rank",
        "Use one thread for each GPU of the process; or, if one thread uses several GPUs, put its calls between "
        "ncclGroupStart and ncclGroupEnd",
        "before a launch the ranks of one process wait for each other on the CPU, and one thread cannot be in two "
        "calls",
        "NCCL user guide, group calls; h2oai/h2o4gpu#773",
        rules=("nccl-cpu-barrier",),
    ),
    RemedyRule(
        "missing-rank",
        "Read the logs of the other ranks around that time: the rank that failed or ended first explains the rest",
        "who reports a lost or late peer is usually its victim",
        "gloo transport/tcp/pair.cc; torch monitoredBarrier",
        named=False,
        given=("log",),
    ),
    RemedyRule(
        "missing-rank",
        "Read the log and the stack of the rank that the others wait for, usually rank 0; if it still works there, "
        "raise the process group's timeout",
        "often the others wait by design until rank 0 has prepared the data",
        "NVIDIA/nccl#865",
        kinds=("store-wait", "nccl-group-launch", "gloo"),
        python=True,
        named=False,
    ),
    RemedyRule(
        "collective-mismatch",
        "Compare the code of the ranks around these collectives: look for conditions on rank, batch or shape",
        "all ranks must call the same collectives of a communicator in the same order, with the same count and type",
        "NCCL user guide; NVIDIA/nccl#857",
    ),
    RemedyRule(
        "collective-mismatch",
        "Run once with TORCH_DISTRIBUTED_DEBUG=DETAIL",
        "torch then checks name and shape of every collective, and names the rank that differs",
        "torch.distributed documentation",
        python=True,
        unset_in="TORCH_DISTRIBUTED_DEBUG=DETAIL",
    ),
    RemedyRule(
        "multi-comm-ordering",
        "Use the communicators in the same order on every rank, from one thread or under one lock",
        "a collective may keep the stream or the SMs that the next one needs to start; if the order differs, ranks "
        "block each other",
        "NCCL user guide, using multiple communicators concurrently; NVIDIA/nccl#1766",
    ),
    RemedyRule(
        "multi-comm-ordering",
        "Set NCCL_LAUNCH_ORDER_IMPLICIT=1",
        "NCCL then keeps the launch order within a process",
        "NCCL 2.26 release notes",
        nccl=("2.26.0", ""),
        unset_in="NCCL_LAUNCH_ORDER_IMPLICIT=1",
    ),
    RemedyRule(
        "init-rendezvous",
        "Start the missing rank; check the world size and the rank numbers of the launch command",
        "the set-up returns only when every member has joined",
        "NVIDIA/nccl#1260",
        absent=True,
    ),
    RemedyRule(
        "init-rendezvous",
        "See in the suspect's stack what it does instead; do that before or after the set-up on all ranks, or raise "
        "the process group's timeout",
        "a rank that loads weights first, for example, keeps the others waiting for minutes",
        "torch.distributed.init_process_group",
        absent=False,
        named=True,
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that all ranks were started with the same world size; restart them together on another MASTER_PORT, so "
        "that no earlier run's store is reused",
        "the store counts who has joined, also members of an earlier run that used the same port",
        "torch distributed_c10d.py, _store_based_barrier",
        rules=("store-barrier",),
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that the store's host (MASTER_ADDR, or --rdzv_endpoint) answers from each node: nc -vz HOST PORT",
        "a rank that cannot reach the store never joins",
        "torch.distributed.run, rendezvous",
        rules=("store-connect",),
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that the process at the address in that line runs and can be reached from here: nc -vz HOST PORT",
        "the peer has not started yet, has ended, or a firewall is between the two",
        "connect(2), ECONNREFUSED",
        rules=("refused", "no-connection", "socket-of-rank"),
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that all ranks were started, and the world size and rank numbers of the launch command",
        "the set-up returns only when every member has joined",
        "NVIDIA/nccl#1260",
        absent=False,
        named=False,
    ),
    RemedyRule(
        "init-rendezvous",
        "Set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) to the interface that all hosts share; check firewalls "
        "and MASTER_ADDR",
        "members find each other by address; a wrong interface looks like a missing rank",
        "NVIDIA/nccl#1324",
        absent=False,
    ),
    RemedyRule(
        "launch-serialisation",
        "Unset CUDA_LAUNCH_BLOCKING",
        "with it each launch waits for its kernel, and the kernel of a collective waits for the peers",
        "NVIDIA/nccl#750",
        set_in="CUDA_LAUNCH_BLOCKING=1",
    ),
    RemedyRule(
        "launch-serialisation",
        "Check for CUDA_LAUNCH_BLOCKING=1 (tr '\\0' '\\n' < /proc/PID/environ | grep CUDA_LAUNCH) and unset it; if it "
        "is not set, synchronise more often",
        "with it each launch waits for its kernel, and the kernel of a collective waits for the peers; a pasted stack "
        "does not show the environment",
        "NVIDIA/nccl#750",
        kinds=("kernel-launch",),
        given=("text",),
    ),
    RemedyRule(
        "launch-serialisation",
        "Synchronise more often, or launch fewer kernels behind a collective",
        "the launch queue holds about a thousand kernels; when it is full, the thread that should launch the next "
        "collective blocks",
        "NVIDIA/nccl#750, #1766",
    ),
    RemedyRule(
        "launch-serialisation",
        "Run once with CUDA_MODULE_LOADING=EAGER: if the hang is gone, the launch was loading its kernel",
        "a launch that loads its kernel looks like one with a full queue, because the driver's frames have no names",
        "CUDA programming guide, lazy loading",
        kinds=("kernel-launch",),
        unset_in="CUDA_MODULE_LOADING=EAGER",
    ),
    RemedyRule(
        "launch-serialisation",
        "Update NCCL to 2.13.4 or newer",
        "NCCL 2.13.2 starts network transfers only after the launch has returned",
        "NVIDIA/nccl#750, PR#774",
        nccl=("2.13.0", "2.13.3"),
    ),
    RemedyRule(
        "launch-serialisation",
        "Raise CUDA_DEVICE_MAX_CONNECTIONS",
        "streams that share a hardware queue wait for each other",
        "CUDA programming guide, environment variables",
        set_in="CUDA_DEVICE_MAX_CONNECTIONS=1",
    ),
    RemedyRule(
        "gil-deadlock",
        "Find the thread that holds the GIL: `py-spy dump --native --pid PID > dump.txt` marks it `+gil`; then "
        "gdbext diagnose dump.txt",
        "what that thread waits for is the cause; a thread that waits for the GIL is its victim",
        "py-spy documentation, dump",
        named=False,
    ),
    RemedyRule(
        "gil-deadlock",
        "Release the GIL around the native call (py::call_guard<py::gil_scoped_release>, Py_BEGIN_ALLOW_THREADS)",
        "a thread that waits for a lock or the device while holding the GIL blocks every thread that needs the GIL, "
        "also the one that it waits for",
        "rapidsai/ucx-py#187",
    ),
    RemedyRule(
        "gil-deadlock",
        "Do not call Python from callbacks of the driver or the loader (stream callbacks, dl_iterate_phdr)",
        "they run while the driver or the loader holds its lock",
        "auto-round#1701",
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Read the report below that line: it names the threads and their locks; take these locks in the same order",
        "the detector knows who holds what",
        "OpenJDK vframe.cpp; ThreadSanitizer; Linux lockdep",
        rules=("circle-found-by-its-runtime", "opposite-orders-seen", "locked-twice", "rows-in-a-circle"),
        given=("text", "log"),
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Take locks in the same order everywhere, and none twice in one thread",
        "in a deadlock each thread holds what another waits for, or one thread what it waits for itself",
        "pthread_mutex_lock(3)",
        itself=False,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Do not call a library (CUDA, an allocator) while holding a lock that its hooks or callbacks also take",
        "the library holds its own lock while it calls them",
        "ofiwg/libfabric#9003",
        kinds=("mutex",),
        itself=False,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Release the lock before the call, callback or signal handler that takes it again; a signal handler must not "
        "allocate memory either",
        "a lock that is not recursive blocks its own owner; the allocator has such locks",
        "pthread_mutex_lock(3); signal-safety(7)",
        itself=True,
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Do not join or wait for a thread while holding a lock that it needs (in a library's constructor: the "
        "loader's lock)",
        "the other thread cannot end before it gets the lock",
        "pthread_join(3); dlopen(3), initialisation functions",
        kinds=("mutex", "condvar-idle"),
        itself=False,
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the thread that holds the lock: {dump} > dump.txt; then gdbext diagnose dump.txt",
        "a shutdown that needs a lock waits as long as another thread keeps it",
        "pthread_mutex_lock(3), atexit(3)",
        kinds=("mutex",),
        through=_SHUTS_DOWN,
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the thread that has not ended ({dump}), and tell it to stop before the join",
        _JOINED,
        "std::thread, atexit(3), threading._shutdown",
        kinds=_OUTSIDE[1:],
        given=("text",),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Find the thread or process that the shutdown waits for (gdbext stacks), and tell it to stop before the join",
        _JOINED,
        "std::thread, atexit(3), threading._shutdown",
        kinds=_OUTSIDE,
        given=("live", "core"),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Abort the communicator on all ranks at the same time, each communicator from its own thread; if it still "
        "hangs, end the process",
        "an abort waits for kernels that wait for a peer; these end once the peer aborts too",
        "NCCL user guide, ncclCommAbort",
        through=r"(?:\w+::)*\w*Comm\w*Abort$|(?:\w+::)+abort$",
        kinds=_TEARS_DOWN,
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Wait until all work of a communicator has finished before you destroy it; abort several communicators in "
        "the order of their launches, or from separate threads",
        "the teardown waits for kernels and threads, and these wait for a peer or for another communicator's work",
        "NVIDIA/nccl#1013, #1777",
        kinds=_TEARS_DOWN,
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Stop threads and free CUDA objects before main() returns (in Python: before the script ends), not in static "
        "destructors or exit handlers",
        "during exit the driver or the interpreter may already be shut down",
        "NVIDIA/nccl#829",
        kinds=(*_ALLOCATES, "stream-sync", "device-sync", "cuda-error-throw", "exited-or-crashed", "mutex"),
    ),
    RemedyRule(
        "shm-too-small",
        "Give the container more shared memory: docker run --shm-size=1g (in Kubernetes: an emptyDir of medium "
        "Memory at /dev/shm)",
        "NCCL needs about 10 MB per connection there, data loaders more; docker's default is 64 MB",
        "NCCL user guide, troubleshooting",
        not_said="shm-room",
    ),
    RemedyRule(
        "shm-too-small",
        "Check whether the rank's cgroup reached its limit (memory.events, memory.max), and whether a mapped file "
        "was truncated or removed: ls -lL /proc/PID/map_files",
        "the page may be missing because the container reached its memory limit, or because the mapped file ends "
        "before the page",
        "mmap(2), SIGBUS; kernel documentation, cgroup-v2 memory.max",
        said="shm-room",
    ),
    RemedyRule(
        "shm-too-small",
        "Check the RAM of the host: dmesg | grep -i 'memory failure'",
        "the kernel also sends SIGBUS for access to a page that the hardware reported as broken",
        "sigaction(2), BUS_MCEERR_AR",
        said="shm-room",
    ),
    RemedyRule(
        "gpu-fault",
        "Run it under compute-sanitizer, which names the kernel and the line: gdbext run --sanitizer -- COMMAND",
        "the call that reports an illegal access is usually not the one that made it",
        _SANITIZER,
        rules=("illegal-access",),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Read the first GPU error before that line: dmesg -T | grep -iE 'amdgpu|nvrm|xid'",
        "the first error names what failed; a reset is its effect",
        "Linux drivers/gpu/drm; NVIDIA Xid catalogue",
        rules=(
            "xid",
            "ecc",
            "gpu-reset",
            "gpu-page-fault",
            "queue-aborted",
            "gpu-does-not-go-on",
            "gpu-lost",
            "gsp-silent",
        ),
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Read the driver's error (dmesg -T | grep -iE 'xid|nvrm|amdgpu'); for an illegal access on an NVIDIA GPU run "
        "gdbext run --sanitizer -- COMMAND",
        "the driver's error tells whether the program, the memory or the bus failed",
        "NVIDIA Xid catalogue",
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Check the index of the access at the line of the first report; if it names no line, build with -lineinfo",
        "the first report shows the invalid access; errors of the API and of other ranks follow from it",
        _SANITIZER,
        reported=("invalid-access", "device-fault"),
    ),
    RemedyRule(
        "other",
        "Put a barrier between the two accesses of the report: __syncthreads(), or __syncwarp() within a warp",
        "without a barrier the order of the accesses, and so the result, changes from run to run",
        _SANITIZER,
        reported=("race",),
    ),
    RemedyRule(
        "other",
        "Find the code that should have written the buffer before this kernel, or fill it (cudaMemsetAsync on the "
        "same stream)",
        "memory that was not written holds old data, so the numbers change from run to run",
        _SANITIZER,
        reported=("uninitialized",),
    ),
    RemedyRule(
        "other",
        "Check that all threads that the barrier waits for reach it; ignore the report if warps have different work "
        "by design",
        "synccheck takes a barrier of some warps for a barrier of the whole block",
        _SANITIZER,
        reported=("barrier",),
    ),
    RemedyRule(
        "other",
        "Free the buffer, or stop allocating it: the report has the stack of the allocation; build with -g for its "
        "source line",
        "memory that is never freed or never used is not a hang, but it can exhaust the device",
        _SANITIZER,
        reported=("leak", "unused"),
    ),
    RemedyRule(
        "other",
        "Run memcheck with --report-api-errors no when the calls are probes whose error the program expects",
        "runtimes probe for functions that an older driver lacks, and continue without them",
        _SANITIZER,
        reported=("api-error",),
    ),
    RemedyRule(
        "driver-bug",
        "Read the kernel's log (dmesg) from before this stack: the first line of the GPU's driver (an Xid, a ring "
        "timeout, a reset) names what failed",
        "a thread that sleeps inside the driver cannot be ended by a signal; a reset of the GPU or a reboot ends it",
        "Linux kernel/hung_task.c; NVIDIA Xid catalogue",
        module=KERNEL,
    ),
    RemedyRule(
        "driver-bug",
        "Update the driver, or run without the profiler",
        "the locks belong to the driver and to CUPTI",
        "pytorch/pytorch#60158",
        kinds=("mutex",),
    ),
    RemedyRule(
        "other",
        "Check for the out-of-memory killer: dmesg -T | grep -iE 'oom|killed process' on that host (Kubernetes: "
        "kubectl describe pod; Slurm: sacct -o MaxRSS); then raise the memory limit or use less",
        "the kernel or the cluster kills a process that exceeds the memory of the host or of its container",
        "Linux oom killer; Kubernetes and Slurm documentation",
        rules=("killed",),
    ),
    RemedyRule(
        "other",
        "Use lock guards (std::lock_guard; in Python `with`), and make mutexes in shared memory robust",
        "a thread that ends while holding a lock leaves it locked; a robust mutex reports that to the next owner "
        "(EOWNERDEAD)",
        "pthread_mutexattr_setrobust(3)",
        kinds=("mutex",),
    ),
    RemedyRule(
        "other",
        "Put the folder of the lock file (a cache, a dataset) on a local disk, or mount the network file system with "
        "working locks (NFS: rpc.lockd, or the option local_lock=all)",
        "the file system refused the lock: no other process needs to hold it",
        "fcntl(2), ENOLCK; nfs(5), local_lock",
        rules=("no-locks-there",),
    ),
    RemedyRule(
        "other",
        "Look for a lock file that no process has open, and remove it: find ~/.cache/torch_extensions -name lock -exec "
        "fuser -v {} +",
        "torch's lock while it builds an extension outlives a process that was killed",
        "torch/utils/file_baton.py, cpp_extension.py",
        through=r"(?:_jit_compile|load_inline|.*file_baton)",
        rules=(*FILE_LOCKS, "waits-for-lock-file"),
        given=("text", "log"),
    ),
    RemedyRule(
        "other",
        "Run fuser -v {lock}: if nobody has it open, remove it",
        _LOCK_FILE,
        "flock(2), fcntl(2)",
        rules=(*FILE_LOCKS, "waits-for-lock-file"),
        given=("text", "log"),
    ),
    RemedyRule(
        "other",
        "Find who has the lock file: `gdbext locks` on this host; where nobody has it, remove it and start again",
        _LOCK_FILE,
        "torch/utils/file_baton.py; flock(2), fcntl(2)",
        given=("live", "core"),
        rules=(*FILE_LOCKS, "waits-for-lock-file"),
    ),
    RemedyRule(
        "fork-after-cuda",
        "Start workers with spawn before CUDA is first used: multiprocessing.set_start_method('spawn') (vLLM: "
        "VLLM_WORKER_MULTIPROC_METHOD=spawn)",
        "a forked child has its parent's locks, but not the threads that would release them",
        "torch.multiprocessing notes",
    ),
    RemedyRule(
        "network-transport",
        "Look at the devices of this host (ibv_devinfo) and leave out the one that fails: NCCL_IB_HCA=^DEVICE",
        "NCCL uses every device that it finds, unless it is told otherwise",
        "NCCL user guide, NCCL_IB_HCA",
        rules=("network-device",),
    ),
    RemedyRule(
        "network-transport",
        "List the interfaces of each host (ip -br addr) and set NCCL_SOCKET_IFNAME to one that all of them share",
        "a wrong interface has no route to the peers",
        "NCCL user guide, NCCL_SOCKET_IFNAME",
        rules=("no-interface", "unreachable"),
    ),
    RemedyRule(
        "network-transport",
        "Check the ports and the cable on both ends (ibstat, perfquery, ibv_rc_pingpong PEER) and read the peer's log; "
        "then restart the job",
        "NCCL does not repeat a failed transfer: every member of the communicator stays blocked",
        "NCCL user guide, troubleshooting",
    ),
    RemedyRule(
        "network-transport",
        "Run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET, and choose the interface with "
        "NCCL_SOCKET_IFNAME and NCCL_IB_HCA",
        "NCCL then logs the interface and the network card of each rank",
        "NCCL user guide, environment variables",
    ),
    RemedyRule(
        "p2p-or-topology",
        "Run once with NCCL_P2P_DISABLE=1: if the job then works, disable the IOMMU and ACS on the PCIe bridges, or "
        "give the container all GPUs of the job",
        "data then goes through host memory, so the run shows whether the direct path is the problem",
        "NCCL user guide, troubleshooting",
        unset_in="NCCL_P2P_DISABLE=1",
    ),
    RemedyRule(
        "p2p-or-topology",
        "Test the path alone: p2pBandwidthLatencyTest, nvidia-smi topo -p2p r",
        "these commands show for each pair of GPUs whether direct access works",
        "CUDA samples; nvidia-smi manual",
    ),
    RemedyRule(
        "not-a-hang",
        "No action needed; if requests are not answered, check the front end or raise its timeout",
        "the ranks wait for work, or are working",
        "vllm-project/vllm#16226",
    ),
    *_OF_LOG_LINES,
    RemedyRule(
        "other",
        "Look up the error: gdbext error {error}; then read the code of the call that failed",
        "the page has the usual causes of this error and what to check",
        "CUDA runtime API, error types",
        kinds=("cuda-error-throw",),
    ),
    RemedyRule(
        "other",
        "In that gdb, or on the core file (coredumpctl gdb), type `thread apply all bt full`; the error text is in the "
        "log just before the crash",
        "the log has the condition that failed or the signal; the stack only shows where",
        "abort(3); coredumpctl(1)",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:gdb",
        given=("text",),
    ),
    RemedyRule(
        "other",
        f"Read the lines of the log just before this stack; for all threads and values open {_CORE_FILE}",
        "the log has the condition that failed or the signal; the stack only shows where",
        "abort(3); coredumpctl(1)",
        kinds=("exited-or-crashed",),
        given=("text", "core", "log"),
    ),
    RemedyRule(
        "other",
        "Read the evidence: gdbext diagnose -v prints it",
        "`other` covers rare causes, so there is no general advice; the first sentence of the answer names the cause",
        "horovod/horovod#2601",
    ),
    RemedyRule(
        "unknown",
        "Read the kernel's log around the time of these stacks: dmesg -T",
        "an error of the driver, device or file system usually precedes a task that hangs in the kernel",
        "Linux Documentation/admin-guide/sysctl/kernel.rst, hung_task",
        module=KERNEL,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Read the exception in the last line of the traceback; if it reports another process, read that one's log",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:traceback",
    ),
    RemedyRule(
        "unknown",
        f"Read the lines of the log just before this stack; for all threads and values open {_CORE_FILE}",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205; coredumpctl(1)",
        kinds=("exited-or-crashed",),
        given=("text", "core"),
    ),
    RemedyRule(
        "unknown",
        "Read the log of the process up to the crash (signal, error text), and keep a core file (ulimit -c unlimited)",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
        given=("live", "log"),
    ),
    RemedyRule(
        "unknown",
        "Diagnose all ranks together: gdbext diagnose --hosts LIST, or with a file for each rank gdbext diagnose "
        "rank*.txt",
        "one rank usually differs: that is the suspect; ranks with equal stacks are its victims",
        "NVIDIA/nccl#719",
        alone=True,
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        "Dump all threads, the main thread too: {dump} > dump.txt; then gdbext diagnose dump.txt",
        "background threads look the same in a hung job and in a healthy one",
        "NVIDIA/nccl#1730",
        helpers=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump every process of the job at the same time: {dump} > rank0.txt; then gdbext diagnose rank*.txt",
        "of several ranks one usually differs: that is the suspect",
        "NVIDIA/nccl#719",
        kinds=(*_OF_PEERS, "nccl-destroy-abort"),
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump all threads twice, 30 s apart: {dump} > dump.txt; equal frames in both mean that it is stuck",
        "a thread that moves between two dumps is slow, not stuck; one dump cannot show that",
        "NVIDIA/nccl#1730",
        kinds=_MAY_RUN,
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump all threads of the process: {dump} > dump.txt; then gdbext diagnose dump.txt",
        "another thread may hold what this one waits for",
        "NVIDIA/nccl#719",
        kinds=("gil", "mutex", "condvar-idle", "io", "sigbus", "cuda-error-throw"),
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Add the core files or stacks of the other ranks: gdbext diagnose core.* rank*.txt, or name their folder",
        "one rank usually differs: that is the suspect; ranks with equal stacks are its victims",
        "NVIDIA/nccl#719",
        alone=True,
        given=("core",),
    ),
    RemedyRule(
        "unknown",
        "Take two samples: gdbext diagnose --samples 2 --interval 10",
        "a thread that moves between two samples is slow, not stuck",
        "NVIDIA/nccl#1730",
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        "Dump the same processes again 30 s later ({dump}) and compare: threads with the same frames in both dumps are "
        "stuck",
        "a thread that moves between two dumps is slow, not stuck; one dump cannot show that",
        "NVIDIA/nccl#1730",
        kinds=_NOT_DEAD,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Read the kernel's log from the first line of the GPU's driver on: journalctl -k | grep -iE "
        "'amdgpu|nvrm|xid|i915|xe '",
        "the first error names what failed; what follows are its effects",
        "NVIDIA Xid catalogue; Linux drivers/gpu/drm/amd",
        rules=("queue-eviction", "driver-failed-itself", "hung-task", "cpu-stuck", "crash-in-kernel-log"),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Read the log from before that line for the first error; of a job with several ranks diagnose all logs "
        "together: gdbext diagnose FOLDER",
        "the first error is the cause; a rank whose log ends early is the suspect",
        "NVIDIA/nccl#928; pytorch/pytorch#20630",
        alone=True,
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Diagnose the logs of all ranks and hosts together, starting before the first error: gdbext diagnose FOLDER",
        "the suspect is the rank whose log ends early, or has no timeout where all others have one",
        "NVIDIA/nccl#928; pytorch/pytorch#20630",
        alone=False,
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "At the next hang, dump the stacks of every rank before the watchdog ends the job: py-spy dump --native "
        "--pid PID",
        "log lines name the ranks that waited, but not the place of the missing rank",
        "pytorch/pytorch#54818",
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Run `ncclras` (NCCL 2.24 and newer), or set TORCH_FR_BUFFER_SIZE=2000 (older torch: "
        "TORCH_NCCL_TRACE_BUFFER_SIZE) and TORCH_NCCL_DUMP_ON_TIMEOUT=1 for the next run",
        "the stack of a thread that waits for the GPU does not show the collective; NCCL's counters and torch's "
        "flight recorder do",
        "NCCL RAS documentation; torch flight recorder",
        kinds=_FOR_THE_GPU,
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        "For the next run set TORCH_FR_BUFFER_SIZE=2000 (older torch: TORCH_NCCL_TRACE_BUFFER_SIZE) and "
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1, and keep the dump files",
        "the stack of a thread that waits for the GPU does not show the collective; NCCL's counters and torch's "
        "flight recorder do",
        "torch flight recorder",
        kinds=_FOR_THE_GPU,
        not_through=APPLE,
        given=("text", "core"),
    ),
    *LATE_REMEDIES,
)
