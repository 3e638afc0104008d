"""What to do about each cause. Conditions are data: advice that means nothing for this job is not given."""

from typing import Mapping, Tuple

from gdbext.knowledge.causes.late_ranks import LATE_REMEDIES
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.row_kinds import RemedyRule

_SANITIZER = "Compute Sanitizer manual, NVIDIA"
_ALLOCATES = ("pinned-host-alloc", "device-alloc", "device-free")

SHOWN_BY: Mapping[str, Tuple[str, ...]] = {
    "gil": ("gil-deadlock",),
    "mutex": ("lock-order-deadlock", "gil-deadlock"),
    "sigbus": ("shm-too-small",),
}
"""Causes of which a wait is the sign, whatever the culprit's thread waits in."""

_FOR_THE_GPU = ("stream-sync", "event-sync", "device-sync", "kernel-launch", "memcpy-sync", "nccl-group-launch")
_NOT_DEAD = tuple(kind for kind, group in WAIT_GROUPS.items() if group != "fatal")

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
        "Free device memory only where no collective is in flight, or use cudaMallocAsync and cudaFreeAsync or a "
        "caching allocator",
        "cudaFree waits for all work of the device, the collective of another stream included",
        "NVIDIA/nccl#239; CUDA programming guide, stream ordered allocator",
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
        "kernels are then loaded at start and not at their first call behind a collective",
        "CUDA programming guide, lazy loading",
        kinds=("cublas",),
        unset_in="CUDA_MODULE_LOADING=EAGER",
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "Put the calls of all ranks of the process between ncclGroupStart and ncclGroupEnd, or set "
        "NCCL_LAUNCH_MODE=GROUP",
        "this NCCL launches the ranks of one process together in group mode, so that none is caught between two "
        "launches",
        "NCCL 2.7-2.12 sources; FasterTransformer documentation",
        threads_as_ranks=True,
        nccl=("2.7.0", "2.12.999"),
        unset_in="NCCL_LAUNCH_MODE=GROUP",
    ),
    RemedyRule(
        "implicit-sync-vs-collective",
        "Launch the collectives of a step on all ranks before any call that waits for the device, in the same "
        "stream order on every rank",
        "a collective completes as soon as every rank has launched its part, so nothing may wait in between",
        "NCCL user guide, using multiple communicators concurrently",
    ),
    RemedyRule(
        "lazy-module-load-vs-collective",
        "Set CUDA_MODULE_LOADING=EAGER",
        "all kernels are then loaded at start; loading one later may wait for the device, which a collective "
        "keeps busy",
        "CUDA programming guide, lazy loading; torchcomms PR#2334",
        unset_in="CUDA_MODULE_LOADING=EAGER",
    ),
    RemedyRule(
        "lazy-module-load-vs-collective",
        "Run every kernel once before the first collective (warm-up), also those for rare sizes",
        "a kernel that was called once is loaded",
        "CUDA programming guide, lazy loading",
    ),
    RemedyRule(
        "missing-rank",
        "Find out in the rank's log, and in dmesg (killed for lack of memory?), why its process is gone; then restart "
        "the whole job",
        "a collective cannot complete without a member; the others wait for ever or until the watchdog's timeout",
        "NVIDIA/nccl#585",
        kinds=("exited-or-crashed",),
    ),
    RemedyRule(
        "missing-rank",
        "Look at what the missing rank waits for; give that wait a timeout, or let all ranks skip the step together",
        "every rank must reach every collective, in the same order",
        "pytorch/pytorch#87995",
        kinds=("io", "ipc-queue", "condvar-idle", "python-code", "mutex", "gil", "store-wait", "unknown"),
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
        "Find out in the rank's log, and in dmesg (killed for lack of memory?), why its process is gone; then restart "
        "the whole job",
        "the communicator was made for more ranks than exist; a collective cannot complete without a member",
        "NVIDIA/nccl#585",
        absent=True,
    ),
    RemedyRule(
        "missing-rank",
        "Drive every GPU of the process from its own thread, or put the calls of one thread for several GPUs "
        "between "
        "ncclGroupStart and ncclGroupEnd",
        "NCCL lets the ranks of one process meet on the CPU before a launch; one thread cannot be in two calls",
        "NCCL user guide, group calls; dmlc/xgboost#4523",
        rules=("nccl-cpu-barrier",),
    ),
    RemedyRule(
        "missing-rank",
        "Look at the first rank's stack; set the process group's timeout above the time that its work takes",
        "the others wait on purpose until it has prepared the data",
        "NVIDIA/nccl#865",
        kinds=("store-wait", "nccl-group-launch", "gloo"),
        python=True,
        named=False,
    ),
    RemedyRule(
        "collective-mismatch",
        "Compare the code path of the rank that differs (the suspect) with that of the others: conditions on rank, "
        "batch or shape around the collectives",
        "all ranks must call the same collectives of a communicator in the same order, with the same count and type",
        "NCCL user guide; NVIDIA/nccl#857",
    ),
    RemedyRule(
        "collective-mismatch",
        "Run once with TORCH_DISTRIBUTED_DEBUG=DETAIL",
        "torch then checks name and shape of every collective and says which rank differs",
        "torch.distributed documentation",
        python=True,
        unset_in="TORCH_DISTRIBUTED_DEBUG=DETAIL",
    ),
    RemedyRule(
        "multi-comm-ordering",
        "Use the communicators in the same order on every rank, from one thread or under one lock",
        "a collective may hold what the next one needs to start, so two orders block each other",
        "NCCL user guide, using multiple communicators concurrently; NVIDIA/nccl#1766",
    ),
    RemedyRule(
        "multi-comm-ordering",
        "Set NCCL_LAUNCH_ORDER_IMPLICIT=1",
        "NCCL then keeps the order of launches of one process itself",
        "NCCL 2.26 release notes",
        nccl=("2.26.0", ""),
        unset_in="NCCL_LAUNCH_ORDER_IMPLICIT=1",
    ),
    RemedyRule(
        "init-rendezvous",
        "Start the missing rank, or see what it does instead; check the world size and rank numbers of the launch "
        "command",
        "the set-up returns only when every member has joined",
        "NVIDIA/nccl#1260",
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
        "init-rendezvous",
        "Load weights before or after the set-up on all ranks alike, or raise the timeout of the process group",
        "a rank that comes minutes later keeps the others waiting",
        "torch.distributed.init_process_group",
        absent=False,
    ),
    RemedyRule(
        "launch-serialisation",
        "Unset CUDA_LAUNCH_BLOCKING",
        "each launch then waits for its kernel, and a collective's kernel waits for the peers",
        "NVIDIA/nccl#750",
        set_in="CUDA_LAUNCH_BLOCKING=1",
    ),
    RemedyRule(
        "launch-serialisation",
        "Synchronise more often, or launch fewer kernels behind a collective",
        "the launch queue holds about a thousand kernels; a full one blocks the thread that should launch the "
        "next collective",
        "NVIDIA/nccl#750, #1766",
    ),
    RemedyRule(
        "launch-serialisation",
        "Run once with CUDA_MODULE_LOADING=EAGER: if the hang is gone, the launch had to load its kernel first",
        "a launch that loads code looks like one with a full queue, because the driver's frames have no names",
        "CUDA programming guide, lazy loading",
        kinds=("kernel-launch",),
        unset_in="CUDA_MODULE_LOADING=EAGER",
    ),
    RemedyRule(
        "launch-serialisation",
        "Update NCCL to 2.13.4 or newer",
        "2.13.2 posts network work only after the launch has returned",
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
        "Release the GIL around the native call (py::call_guard<py::gil_scoped_release>, Py_BEGIN_ALLOW_THREADS)",
        "a thread that waits for a lock or the device while holding the GIL blocks every thread that needs "
        "Python first",
        "rapidsai/ucx-py#187; NVIDIA/Fuser#3055",
    ),
    RemedyRule(
        "gil-deadlock",
        "Do not call Python from callbacks of the driver or the loader (stream callbacks, dl_iterate_phdr)",
        "they run while the caller holds its lock",
        "auto-round#1701",
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Take the two locks in one order everywhere; do not call CUDA while holding a lock that a hook or "
        "callback takes as well",
        "each thread holds what the other waits for",
        "ofiwg/libfabric#9003",
    ),
    RemedyRule(
        "lock-order-deadlock",
        "Do not join a thread, and do not wait for one, while holding a lock that it needs (the loader's in a "
        "constructor of a library)",
        "the other thread cannot end before it gets the lock",
        "pthread_join(3); dlopen(3), initialisation functions",
        kinds=("mutex", "condvar-idle"),
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Let all work of a communicator finish before it is destroyed; abort several communicators in the order "
        "in which their work was launched, or from separate threads",
        "the teardown waits for kernels and threads that wait for a peer, or for another communicator's work",
        "NVIDIA/nccl#1013, #1777",
    ),
    RemedyRule(
        "destructor-or-teardown",
        "Free CUDA objects explicitly before main ends, not in static destructors",
        "during exit the driver may already be gone, and no thread launches the rest of a collective",
        "NVIDIA/nccl#829",
        kinds=(*_ALLOCATES, "stream-sync", "device-sync"),
    ),
    RemedyRule(
        "shm-too-small",
        "Give the container more shared memory: docker run --shm-size=1g (or an emptyDir of medium Memory at /dev/shm)",
        "NCCL keeps about 10 MB per connection there, data loaders more; docker's default is 64 MB",
        "NCCL user guide, troubleshooting",
        not_said="shm-room",
    ),
    RemedyRule(
        "shm-too-small",
        "Compare memory.max and memory.events of the rank's cgroup (was its limit reached?), and look for a file that "
        "was cut or removed while it was mapped: ls -lL /proc/PID/map_files",
        "where /dev/shm is not full, a page is also missing when the container reaches its memory limit, or when the "
        "file ends before it",
        "mmap(2), SIGBUS; kernel documentation, cgroup-v2 memory.max",
        said="shm-room",
    ),
    RemedyRule(
        "shm-too-small",
        "Look for failing memory: dmesg | grep -i 'memory failure'",
        "the kernel also sends SIGBUS for an access to a page that the hardware reported as broken",
        "sigaction(2), BUS_MCEERR_AR",
        said="shm-room",
    ),
    RemedyRule(
        "gpu-fault",
        "Look up the Xid number (`dmesg | grep -i xid`); for an illegal access run compute-sanitizer",
        "the Xid says whether the program, the memory or the bus is at fault",
        "NVIDIA Xid catalogue",
        reported=(),
    ),
    RemedyRule(
        "gpu-fault",
        "Check the index of the access at the line of the first report; build with -lineinfo where it names no line",
        "the first report is the access that left its memory; errors of the API and of other ranks follow from it",
        _SANITIZER,
        reported=("invalid-access", "device-fault"),
    ),
    RemedyRule(
        "other",
        "Put a barrier between the two accesses of the report: __syncthreads(), or __syncwarp() within a warp",
        "without one the order of the accesses changes from run to run, and so do the numbers",
        _SANITIZER,
        reported=("race",),
    ),
    RemedyRule(
        "other",
        "Find who should have written the buffer before this kernel, or fill it (cudaMemsetAsync on the same stream)",
        "what was not written holds what lay there before, another run has other numbers",
        _SANITIZER,
        reported=("uninitialized",),
    ),
    RemedyRule(
        "other",
        "Look whether all threads that the barrier waits for reach it; where warps have different work on purpose, "
        "ignore it",
        "synccheck takes a barrier of some warps of a block for one of all",
        _SANITIZER,
        reported=("barrier",),
    ),
    RemedyRule(
        "other",
        "Run memcheck with --report-api-errors no when the calls are probes whose error the program expects",
        "runtimes ask for functions that an older driver lacks, and go on without them",
        _SANITIZER,
        reported=("api-error",),
    ),
    RemedyRule(
        "driver-bug",
        "Update the driver, or remove the profiler",
        "the locks belong to the driver and CUPTI",
        "pytorch/pytorch#60158",
        kinds=("mutex",),
    ),
    RemedyRule(
        "other",
        "Release locks by guards (std::lock_guard, with), and make those in shared memory robust",
        "a thread that ends while holding a lock leaves it locked; a robust mutex tells the next owner (EOWNERDEAD)",
        "pthread_mutexattr_setrobust(3)",
        kinds=("mutex",),
    ),
    RemedyRule(
        "fork-after-cuda",
        "Start workers with spawn or forkserver, before CUDA is first used",
        "a forked child has its parent's locks but not the threads that would release them",
        "torch.multiprocessing notes",
    ),
    RemedyRule(
        "network-transport",
        "Check the link that the line names (ibstat, ibv_rc_pingpong, ping with the full packet size) and the peer's "
        "own log, then restart the job",
        "a transfer that failed once is not repeated: every member of the communicator stays blocked",
        "NCCL user guide, troubleshooting",
    ),
    RemedyRule(
        "network-transport",
        "Run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET, and choose the interface by "
        "NCCL_SOCKET_IFNAME and "
        "NCCL_IB_HCA",
        "the lines say which interface and which card each rank took",
        "NCCL user guide, environment variables",
    ),
    RemedyRule(
        "p2p-or-topology",
        "Run once with NCCL_P2P_DISABLE=1: when the job then works, switch off ACS on the PCIe bridges and the "
        "IOMMU, or "
        "give the container all GPUs of the job",
        "data then goes through host memory, so only the direct path is excluded",
        "NCCL user guide, troubleshooting",
        unset_in="NCCL_P2P_DISABLE=1",
    ),
    RemedyRule(
        "p2p-or-topology",
        "Test the path alone: p2pBandwidthLatencyTest, nvidia-smi topo -p2p r",
        "it says for each pair of GPUs whether direct access works",
        "CUDA samples; nvidia-smi manual",
    ),
    RemedyRule(
        "not-a-hang",
        "No action needed here; if requests are not answered, look at the front end or raise its timeout",
        "the ranks wait for work or are doing it",
        "vllm-project/vllm#46611",
    ),
    RemedyRule(
        "other",
        "Follow the evidence above: the cause is recognised, but there is no general advice for it",
        "the label has no cause-specific advice",
        "horovod/horovod#2601",
    ),
    RemedyRule(
        "unknown",
        "Read the lines before the stack (the signal, the error's text) and take a core: a crash is not a "
        "hang, and the other ranks only wait for this one",
        "the first error of the first rank is the cause, all later ones follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
    ),
    RemedyRule(
        "unknown",
        "Look at all ranks, not at one: gdbext diagnose on each host, or one file for each rank: gdbext diagnose "
        "rank*.txt",
        "the rank that differs from the others is the finding; N-1 equal stacks are its victims",
        "field practice: NVIDIA/nccl#719, #857",
        alone=True,
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        "This text has helper threads only; add the main thread: `thread apply all bt` of the whole process, then the "
        "other ranks",
        "helper threads look the same in a job that hangs and in one that works",
        "field practice: NVIDIA/nccl#1730",
        helpers=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Add the other ranks, a file or a core for each: gdbext diagnose rank*.txt, or the folder that they are in",
        "the rank that differs from the others is the finding; N-1 equal stacks are its victims",
        "field practice: NVIDIA/nccl#719, #857",
        alone=True,
        given=("text", "core"),
    ),
    RemedyRule(
        "unknown",
        "Take two samples: gdbext diagnose --samples 2 --interval 10",
        "what moves between two samples is slow, not stuck",
        "field practice: NVIDIA/nccl#1730",
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        "Take a second dump of the same processes half a minute after the first, and compare the two",
        "what moves between two dumps is slow, not stuck; one dump cannot tell",
        "field practice: NVIDIA/nccl#1730",
        kinds=_NOT_DEAD,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Give the logs of all ranks and hosts together: gdbext diagnose FOLDER, with the lines before the first error",
        "the rank whose log ends early, or has no line where all others time out, is the suspect",
        "field practice: NVIDIA/nccl#928; pytorch/pytorch#20630",
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "The next time it hangs, take stacks before the watchdog ends it: py-spy dump --native --pid PID of every rank",
        "log lines name the ranks that waited, but do not show where the missing rank was",
        "field practice: pytorch/pytorch#54818",
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Ask NCCL itself: ncclras (2.24 and newer), or TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
        "before the "
        "next run",
        "a wait for the GPU does not show on the stack which collective it is; NCCL's counters or the flight "
        "recorder do",
        "NCCL RAS documentation; torch flight recorder",
        kinds=_FOR_THE_GPU,
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        "For the next run set TORCH_FR_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, and keep the files it writes",
        "a wait for the GPU does not show on the stack which collective it is; NCCL's counters or the flight "
        "recorder do",
        "torch flight recorder",
        kinds=_FOR_THE_GPU,
        given=("text", "core"),
    ),
    *LATE_REMEDIES,
)
