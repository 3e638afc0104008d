"""Remedies where ranks wait for each other: collectives, communicators, launches, the rendezvous."""

from typing import Tuple

from gdbext.knowledge.causes.remedies.remedy_constants import ADDRESS, CONNECTS_TO_STORE, PEER
from gdbext.knowledge.frames.python.interpreter import LEADER_FIRST
from gdbext.knowledge.row_kinds import RemedyRule

_LATE = (
    *("io", "ipc-queue", "condvar-idle", "python-code", "native-compute", "mutex", "gil", "store-wait", "mpi"),
    *("stream-sync", "event-sync", "device-sync", "unknown"),
)
"""What a rank is in that does not come to a collective."""

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
        "then kernels are loaded at start (which costs time and GPU memory), not at their first call behind a "
        "collective",
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
        "then all kernels are loaded at start (which costs time and GPU memory); loading one later may wait for the "
        "device, which a collective keeps busy",
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
        "Find out why the missing rank's process ended: read its log, and dmesg -T on its host (out of memory?); then "
        "restart the whole job",
        "a collective cannot complete without a member; the others wait for ever, or until the watchdog's timeout",
        "NVIDIA/nccl#585",
        kinds=("exited-or-crashed",),
    ),
    RemedyRule(
        "missing-rank",
        "Read the dead rank's log to its end: what it died of is usually the cause of all the rest; then restart the "
        "whole job",
        "the launcher ends the other ranks, or they wait for ever",
        "Open MPI's mpirun; MPICH's hydra",
        rules=("mpi-rank-died",),
        given=("text", "log"),
    ),
    RemedyRule(
        "missing-rank",
        "Read the log of each missing rank; if its process is still alive, dump it: py-spy dump --native --pid PID > "
        "rankN.txt",
        "the lines of the others name the rank, but not what it does instead",
        "pytorch/pytorch#87995",
        named=True,
        given=("log",),
    ),
    RemedyRule(
        "missing-rank",
        "Read the dead worker's log from before that line; if it ends without an error, the kernel may have killed it: "
        "dmesg -T | grep -i 'killed process'",
        "the worker's own last error is the cause; what the other processes report afterwards follows from it",
        "vLLM multiproc_executor.py; Linux oom killer",
        rules=("worker-died",),
    ),
    RemedyRule(
        "missing-rank",
        "Read the stack of each suspect (gdbext stacks): it may wait for something else, be slow, or be in another "
        "branch of the code",
        "every rank must reach every collective, in the same order",
        "pytorch/pytorch#87995",
        kinds=_LATE,
        not_rules=("mpi-rank-died", "worker-died"),
        named=True,
        given=("live", "core"),
    ),
    RemedyRule(
        "missing-rank",
        "Dump all threads of this process and its DataLoader workers (pgrep -P PID): {dump of each} > dump1.txt (then "
        "dump2.txt, ...); then gdbext diagnose dump*.txt",
        "another thread of the process fills that queue.Queue, and that thread may wait for a worker",
        "CPython queue.py; torch/utils/data/dataloader.py; fairseq data/iterators.py, BufferedIterator",
        rules=("python-queue",),
        through=r"(?:.*\.)?__next__$",
        named=True,
        given=("text",),
    ),
    RemedyRule(
        "missing-rank",
        "Dump each suspect twice, 30 s apart ({dump of each} > dump1.txt, then dump2.txt): it may wait for something "
        "else, be slow, or be in another branch",
        "every rank must reach every collective, in the same order",
        "pytorch/pytorch#87995",
        kinds=_LATE,
        not_rules=("mpi-rank-died", "worker-died"),
        named=True,
        given=("text", "log"),
    ),
    RemedyRule(
        "missing-rank",
        "Check that all ranks run the same number of steps and read data of the same length (torch: drop_last=True, or "
        "the Join context manager)",
        "a rank that leaves the loop early never reaches the next collective",
        "mlcommons/storage#172; torch.distributed.algorithms.join",
        kinds=("io", "ipc-queue", "condvar-idle", "python-code", "exited-or-crashed"),
        python=True,
    ),
    RemedyRule(
        "missing-rank",
        "Find out why the missing rank's process ended: read its log, and dmesg -T on its host (out of memory?); then "
        "restart the whole job",
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
        "Read the log and the stack of rank 0 first: if it still loads or prepares data, let it finish and raise the "
        "process group's timeout",
        "the others wait, by design, until rank 0 has prepared the data",
        "NVIDIA/nccl#865",
        through=LEADER_FIRST,
        named=False,
    ),
    RemedyRule(
        "missing-rank",
        "Read the log of each rank that is not listed as ready, and dump its stack: py-spy dump --native --pid PID > "
        "rankN.txt",
        "the listed ranks wait; the others have not submitted the tensor",
        "horovod/common/stall_inspector.cc",
        rules=("ready-ranks",),
        given=("text", "log"),
    ),
    RemedyRule(
        "missing-rank",
        "Read the other ranks' logs around the same moment, starting with any peer that the line names: the process "
        "that failed or ended first explains the rest",
        "who reports a lost or late peer is usually its victim",
        "gloo transport/tcp/pair.cc; torch monitoredBarrier",
        not_rules=("ready-ranks",),
        named=False,
        given=("text", "log"),
    ),
    RemedyRule(
        "collective-mismatch",
        "Run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL, and compare each rank's last calls before that "
        "warning: opCount, count and datatype",
        "NCCL names only the ranks that noticed the difference",
        "NCCL init.cc; NCCL user guide, NCCL_DEBUG_SUBSYS",
        rules=("mismatch-at-rank",),
        given=("text", "log"),
    ),
    RemedyRule(
        "collective-mismatch",
        "Find the first collective that differs between ranks, and look in the code around it for conditions on "
        "rank, batch or shape",
        "all ranks must call the same collectives of a communicator in the same order, with the same count and type",
        "NCCL user guide; NVIDIA/nccl#857",
    ),
    RemedyRule(
        "collective-mismatch",
        "Run once with TORCH_DISTRIBUTED_DEBUG=DETAIL (slow; it covers torch.distributed, not an engine's own calls of "
        "NCCL)",
        "torch then compares operation and shapes before every collective, and prints the ranks that differ",
        "torch ProcessGroupWrapper.cpp",
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
        "Set NCCL_LAUNCH_ORDER_IMPLICIT=1, and launch in the same order on every rank, from one thread per GPU",
        "NCCL then runs the collectives of all communicators in the order in which the host launched them",
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
        "Compare MASTER_ADDR and MASTER_PORT of all ranks (tr '\\0' '\\n' < /proc/PID/environ), and test them from the "
        "host of each rank that connects: nc -vz MASTER_ADDR MASTER_PORT",
        "a rank that is still in TCPClient::connect has not reached the store",
        "torch TCPStore.cpp, TCPClient::connect",
        through=CONNECTS_TO_STORE,
    ),
    RemedyRule(
        "init-rendezvous",
        "See in the suspect's stack what it does instead; do that before or after the set-up on all ranks, or raise "
        "the process group's timeout",
        "a rank that loads weights first, for example, keeps the others waiting for minutes",
        "torch.distributed.init_process_group",
        absent=False,
        named=True,
        not_through=CONNECTS_TO_STORE,
    ),
    RemedyRule(
        "init-rendezvous",
        "Check each rank that has not joined: whether it was started, its log, its stack (py-spy dump --native --pid "
        "PID), and whether it can reach the store (nc -vz MASTER_ADDR MASTER_PORT)",
        "a restart destroys what shows why a rank did not come",
        "torch distributed_c10d.py, _store_based_barrier",
        rules=("store-barrier", "store-barrier-timeout"),
        crowded=False,
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that all ranks were started with the same world size; kill any processes left from earlier runs, and "
        "restart all ranks together on another MASTER_PORT",
        "the store counts who has joined, also members of an earlier run that used the same port",
        "torch distributed_c10d.py, _store_based_barrier",
        rules=("store-barrier", "store-barrier-timeout"),
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that the store's host (MASTER_ADDR, --rdzv_endpoint, or JAX's coordinator_address) can be reached "
        "from each node: nc -vz HOST PORT",
        "a rank that cannot reach the store never joins",
        "torch.distributed.run, rendezvous",
        rules=("store-connect",),
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that the peer that the log line names is running and can be reached from the host that logged it: nc "
        "-vz HOST PORT",
        "the peer has not started yet, has ended, or a firewall is between the two",
        "connect(2), ECONNREFUSED",
        rules=("refused", "no-connection", "socket-of-rank"),
        line=ADDRESS,
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that the rank in that line is running, and read its log; then test its port from the host that logged "
        "the line: nc -vz HOST PORT",
        "the peer has not started yet, has ended, or a firewall is between the two",
        "connect(2), ECONNREFUSED",
        rules=("no-connection", "socket-of-rank"),
        line=PEER,
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Find the serving host in a rank's environment (tr '\\0' '\\n' < /proc/PID/environ: MASTER_ADDR or similar), "
        "since the line has no address; check that its process still runs, and read its log",
        "the process that serves the connection has often ended first, and its log says why",
        "connect(2), ECONNREFUSED",
        rules=("refused", "no-connection", "socket-of-rank"),
        not_line=f"{ADDRESS}|{PEER}",
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Find a participant that no such line names: check whether its process was started and reached this program, "
        "read its log, and dump its stack (py-spy dump --native --pid PID)",
        "a thread that says that it waits has arrived; the participants that say nothing may not have",
        "xla/service/rendezvous.cc",
        rules=("expected-threads",),
        given=("text", "log"),
    ),
    RemedyRule(
        "init-rendezvous",
        "Check that all ranks were started and that the launch command gives the right world size and rank numbers",
        "the set-up returns only when every member has joined",
        "NVIDIA/nccl#1260",
        absent=False,
        named=False,
        not_through=CONNECTS_TO_STORE,
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
        "these releases start network transfers only after the launch has returned",
        "NVIDIA/nccl#750, PR#774",
        nccl=("2.13.0", "2.13.3"),
    ),
    RemedyRule(
        "launch-serialisation",
        "Raise CUDA_DEVICE_MAX_CONNECTIONS, unless the engine needs 1 (Megatron-LM with tensor or context parallelism)",
        "streams that share a hardware queue wait for each other",
        "CUDA programming guide, environment variables",
        set_in="CUDA_DEVICE_MAX_CONNECTIONS=1",
    ),
)
