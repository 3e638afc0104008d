"""What to look at next where no cause was found, by what was read and what it waits in."""

from typing import Tuple

from gdbext.knowledge.causes.remedies.remedy_constants import (
    AFTER_HANG,
    ALLOCATES,
    APPLE,
    CHILD_WAITS,
    FOR_THE_GPU,
    GIL_HOLDER,
    GRPC_CALLS,
    GRPC_IN_PYTHON,
    LET_RUN,
    MUTEX_ADDRESS,
    OF_LOCKED,
    PARENTS,
    POLLS,
    RDMA_COMMANDS,
)
from gdbext.knowledge.causes.what_texts_show import TWICE
from gdbext.knowledge.device_code import DEVICE_FOCUS, WAVEFRONT
from gdbext.knowledge.frames.failures import DUMPED, HELD_FOR_DEBUGGERS
from gdbext.knowledge.frames.networks.fabrics import PMIX_GET
from gdbext.knowledge.frames.other_engines import BEGUN_IN_REALM, XRT_SERVERS
from gdbext.knowledge.frames.python.interpreter import LOCK_OF_PYTHON, THREADS_QUEUE
from gdbext.knowledge.frames.system.checkers import NOT_OF_CHECKERS, OF_CHECKERS
from gdbext.knowledge.frames.system.linux_kernel import KERNEL
from gdbext.knowledge.labels import WAIT_GROUPS
from gdbext.knowledge.log_lines.last_words import DEFUNCT, OF_ANOTHER, REPEATED_BY_RAY, SAVED, SENT_BY
from gdbext.knowledge.log_lines.timeouts_and_warnings import WATCHDOG_RAISED
from gdbext.knowledge.row_kinds import RemedyRule
from gdbext.knowledge.traces import COLLECTIVES

_OF_CORE_FILES, _NOT_OF_CORE_FILES = "text:coredump", "(?!text:coredump)"
"""What coredumpctl prints: the process has ended, and a second look at its file shows the same."""
_CHILDREN = (
    "Dump each child process (pgrep -P PARENT_PID lists them): {dump of each} > child1.txt (then child2.txt, ...); "
    "then gdbext diagnose child*.txt"
)

_OF_PEERS = (*FOR_THE_GPU, *ALLOCATES, "module-load", "cublas", "nccl-init", "mpi", "gloo", "store-wait", "ipc-queue")
_MAY_RUN = ("python-code", "native-compute", "unknown")
_RECORDER = (
    "Look for dumps of torch's flight recorder (~/.cache/torch/comm_lib_trace_rank_*, older torch "
    "/tmp/nccl_trace_rank_*); where there are none, set TORCH_FR_BUFFER_SIZE=2000 (older: "
    "TORCH_NCCL_TRACE_BUFFER_SIZE) and TORCH_NCCL_DUMP_ON_TIMEOUT=1 for the next run"
)
_EXCEPTION = ("unhandled", "nccl-returned")
"""Rows of log lines that are the exception itself."""
_NAMES_EXCEPTION = r"^\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Expired)\b: \S"
"""The last line of a traceback, of an exception that no row knows."""
_SYSRQ = "Linux Documentation/admin-guide/sysctl/kernel.rst, hung_task; admin-guide/sysrq.rst"
_NO_LOCK = tuple(kind for kind in WAIT_GROUPS if kind != "mutex")
_COLLECTIVE_ON_DEVICE = "|".join(row.name for row in COLLECTIVES if row.on == "device" and row.kind != "send-recv")
_NOT_DEAD = tuple(kind for kind, group in WAIT_GROUPS.items() if group != "fatal")

REMEDIES: Tuple[RemedyRule, ...] = (
    RemedyRule(
        "unknown",
        "Look for a rank that has not started this collective: dump every rank's host threads ({dump of each} > "
        "rank0.txt, then rank1.txt, ...); then gdbext diagnose rank*.txt",
        "a kernel of a collective spins until every other rank has launched its own",
        "NCCL device/prims_simple.h; cuda-gdb manual, kernel focus",
        line=DEVICE_FOCUS,
        through=_COLLECTIVE_ON_DEVICE,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Let the program run for some seconds, stop it and print the kernel's stack again in cuda-gdb (`bt`): at the "
        "same place for the same grid it is probably stuck",
        "the stack of one GPU thread at one moment does not show whether the kernel is stuck",
        "cuda-gdb manual, kernel focus",
        line=DEVICE_FOCUS,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Look in dmesg -T for other blocked tasks at the same time (echo w > /proc/sysrq-trigger prints all of them): "
        "one of them, or what it waits for, holds the lock",
        "a task that holds a kernel lock and sleeps stops everybody who wants that lock",
        _SYSRQ,
        kinds=("mutex",),
        module=KERNEL,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Look in dmesg -T for errors before this stack, and for other blocked tasks at the same time (echo w > "
        "/proc/sysrq-trigger prints all of them)",
        "an error of the driver, device or file system usually precedes a task that hangs in the kernel",
        _SYSRQ,
        kinds=_NO_LOCK,
        module=KERNEL,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Run the job again with NCCL_DEBUG=WARN: NCCL then prints which call failed and why; check the free space in "
        "/dev/shm (df -h /dev/shm) and, if there are several hosts, NCCL_SOCKET_IFNAME",
        "NCCL's error code does not tell which system call or CUDA call failed; its own warning does",
        "NCCL user guide, troubleshooting",
        rules=("nccl-returned",),
        given=("text", "log"),
    ),
    RemedyRule(
        "unknown",
        "In the full log, read the exception on the line after this traceback; if it is about another process (peer "
        "lost, connection reset), read that process's log",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:traceback",
        not_rules=_EXCEPTION,
        not_line=_NAMES_EXCEPTION,
    ),
    RemedyRule(
        "unknown",
        "Find the first error of the engine or worker process in the log above this traceback: it ended first",
        "the process of the traceback only heard of it",
        "vLLM v1/engine/exceptions.py; ray/exceptions.py",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:traceback",
        line=OF_ANOTHER,
    ),
    RemedyRule(
        "unknown",
        "Find the first error in the log above this traceback; if the exception points to another process (peer "
        "lost, connection reset, a file that it did not create), read that process's log",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:traceback",
        not_rules=_EXCEPTION,
        line=_NAMES_EXCEPTION,
    ),
    RemedyRule(
        "unknown",
        "Find the first error in the log above this traceback; if the exception is about another process (peer "
        "lost, connection reset), read that process's log",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:traceback",
        rules=_EXCEPTION,
    ),
    RemedyRule(
        "unknown",
        "Put the logs of all ranks, from before the first error on, into one folder: gdbext diagnose FOLDER",
        "the process has ended; the logs of the others show which rank failed or was missing first",
        "NVIDIA/nccl#928; pytorch/pytorch#20630",
        kinds=("exited-or-crashed",),
        helpers=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "At the next hang, dump the stacks of every rank before the watchdog ends the job: py-spy dump --native "
        "--pid PID",
        "the stack of a watchdog does not show where the main thread was",
        "pytorch/pytorch#54818",
        kinds=("exited-or-crashed",),
        helpers=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Print the wavefronts of every rank in rocgdb (`info threads`, `thread apply all bt`), twice, some seconds "
        "apart: one that stays at its place probably waits for what another one should write",
        "plain gdb does not show wavefronts, and one look does not show whether this one moves",
        "ROCgdb manual, AMD GPU",
        line=WAVEFRONT,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Find out what the process is that sent the signal (the launcher, the scheduler, another rank), and read in "
        "its log why it did so",
        "who sends SIGTERM has a reason; the stack only shows what the signal interrupted",
        "sigaction(2), si_pid",
        kinds=("exited-or-crashed",),
        rules=("ended-from-outside",),
        line=f"{SENT_BY}|^Signal Received: 15 ",
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Find who sent the signal: read the launcher's log and the logs of the other ranks from before that time "
        "(Slurm: sacct -j JOB; Kubernetes: kubectl describe pod POD)",
        "a launcher ends all ranks when one has failed, a scheduler when the time is up; SIGTERM leaves no core file",
        "signal(7); torch elastic, Slurm and Kubernetes documentation",
        kinds=("exited-or-crashed",),
        rules=("ended-from-outside",),
    ),
    RemedyRule(
        "unknown",
        "Find in the lines above who stopped the launcher; if a person did so because it hung, dump every worker "
        "before that next time: py-spy dump --native --pid PID",
        "the launcher passes on SIGINT, SIGHUP and SIGQUIT; after a failed rank it sends SIGTERM",
        "torch elastic multiprocessing/api.py, agent/server/api.py",
        rules=("launcher-interrupted",),
        not_rules=("rank-exit-code", "killed"),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Read {log} to the last line (traceback, error, signal); if a signal killed the process, enable core files for "
        "the next run (ulimit -c unlimited)",
        "the launcher only reports that the process ended",
        "paddle/distributed/launch/controllers/controller.py",
        rules=("container-failed",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "On each host, read the last lines of every worker's own log, from which Ray left nothing out "
        "(/tmp/ray/session_latest/logs/worker-*); for the next run set RAY_DEDUP_LOGS=0",
        "the driver prints a line that several workers have printed once, with a count behind it",
        "Ray documentation, Log deduplication",
        kinds=("exited-or-crashed", "sigbus", "cuda-error-throw"),
        line=REPEATED_BY_RAY,
    ),
    RemedyRule(
        "unknown",
        "In the log of every rank, read the line above `Exception raised` (`Watchdog caught collective operation "
        "timeout`, or the error): a rank that has another one, or none, is the suspect",
        "the watchdog of torch ends a rank when others did not come, or an error was found",
        "torch ProcessGroupNCCL.cpp, ncclCommWatchdog",
        kinds=("exited-or-crashed",),
        line=WATCHDOG_RAISED,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Read the log lines just before the crash; to see all threads and variables, open {core}",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205; coredumpctl(1)",
        kinds=("exited-or-crashed", "sigbus", "cuda-error-throw"),
        not_rules=("ended-from-outside", "kernel-exit"),
        not_through=HELD_FOR_DEBUGGERS,
        given=("text", "core"),
    ),
    RemedyRule(
        "unknown",
        "Print all threads of the process that its handler holds: {dump} > dump.txt, or `thread apply all bt` in the "
        "debugger that is attached; then gdbext diagnose dump.txt; the first error is in the log above",
        "the thread that failed has the function that reports the error on its stack; the others were only stopped",
        "UCX debug.c, ucs_debug_freeze",
        kinds=("exited-or-crashed", "sigbus", "cuda-error-throw"),
        through=HELD_FOR_DEBUGGERS,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Read the lines before the first `FILE:LINE -> NUMBER`: the NCCL WARN or CUDA error there is the cause; if "
        "there is neither, run again with NCCL_DEBUG=WARN",
        "each function of NCCL that passes an error on logs a line, the innermost first",
        "NCCL checks.h, NCCLCHECK",
        rules=("nccl-call-failed",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "If the child hangs, dump its threads, and start workers with spawn instead of fork; "
        "TOKENIZERS_PARALLELISM=false only stops the warning",
        "a child of a process with threads may wait for a lock that no thread of its own will release",
        "tokenizers bindings/python/src/lib.rs; torch.multiprocessing notes",
        rules=("forked-with-threads",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Read the log of the process that died to its last line (traceback, error, signal); if a signal killed it, "
        "enable core files for the next run (ulimit -c unlimited)",
        "the first error of the first rank that died is the cause; all later errors follow from it",
        "sgl-project/sglang#4205",
        kinds=("exited-or-crashed",),
        not_rules=("ended-from-outside", "container-failed", "launcher-interrupted"),
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
        "Dump all threads, the main thread too, of each process of the job: {dump of each} > dump1.txt (then "
        "dump2.txt, ...); then gdbext diagnose dump*.txt",
        "background threads look the same in a hung job and in a healthy one",
        "NVIDIA/nccl#1730",
        not_kinds=("exited-or-crashed",),
        helpers=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Read the whole dump, of which the text has only a part: gdbext diagnose {saved}",
        "the text names the file; it has the threads that are missing here",
        "triton-inference-server/server#5310",
        kinds=_NOT_DEAD,
        line=SAVED.format(path=""),
        alone=True,
        whole=False,
        pasted_from=r"text:(?:gdb|eu-stack)$",
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Find out why the defunct processes ended: read their logs to the last line, and look for them in dmesg -T "
        "(the kernel kills processes when memory runs out)",
        "a defunct process has ended; whoever waits for its result waits in vain",
        "ps(1), state Z; agronholm/pythonfutures#52",
        line=DEFUNCT,
        given=("text", "log"),
    ),
    RemedyRule(
        "unknown",
        "Dump the Python stacks too; they show which thread waits where: py-spy dump --pid {pid} > dump.txt (on macOS: "
        "sudo py-spy); then gdbext diagnose dump.txt",
        "the frames of the interpreter do not show which Python function they run",
        "py-spy documentation, dump",
        kinds=("mutex",),
        through=LOCK_OF_PYTHON,
        python=False,
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Check that the XRT servers run and can be reached: nc -vz HOST PORT, with the addresses in XRT_TPU_CONFIG or "
        "XRT_WORKERS; then read their logs",
        "the client waits until each server has answered",
        "pytorch/xla third_party/xla_client/computation_client.cc",
        kinds=("condvar-idle",),
        through=XRT_SERVERS,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump every process on every node into its own file: {dump of each} > dump1.txt (then dump2.txt, ...); then "
        "gdbext diagnose dump*.txt",
        "an event of Realm is triggered by a task, a copy or a message, which may be on another node",
        "Legion runtime/realm/event_impl.cc",
        kinds=("condvar-idle",),
        through=BEGUN_IN_REALM,
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        GIL_HOLDER,
        "what that thread waits for is the cause; a thread that waits for the GIL is its victim",
        "py-spy documentation, dump",
        kinds=("gil",),
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump the loader's workers (child processes): py-spy dump --subprocesses --pid {pid} > dump.txt; then "
        "gdbext diagnose dump.txt",
        "a DataLoader waits as long as one of its workers has not delivered its batch",
        "torch/utils/data/dataloader.py; py-spy documentation, --subprocesses",
        rules=("python-loader",),
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump the launcher's daemon on this host too (orted, prted, slurmstepd, hydra_pmi_proxy or mpirun): {dump of "
        "each} > launcher.txt; check that its PMIx version fits that of the program",
        "that daemon is the PMIx or PMI server that has not answered; the dumps of the ranks do not show it",
        "pmix.h, PMIx_Get; Open MPI and Slurm documentation, PMIx",
        kinds=("mpi",),
        through=PMIX_GET,
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Find the threads at the other end of that queue ({dump}): they have ended, or wait for something themselves",
        "a queue.Queue connects threads of one process: no other process takes from it or puts into it",
        "CPython Lib/queue.py",
        rules=(THREADS_QUEUE,),
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump every process of the job into its own file: {dump of each} > rank0.txt (then "
        "rank1.txt, ...); then gdbext diagnose rank*.txt",
        "of several ranks one usually differs: that is the suspect",
        "NVIDIA/nccl#719",
        kinds=(*_OF_PEERS, "nccl-destroy-abort"),
        not_rules=("python-loader", THREADS_QUEUE),
        alone=True,
        not_through=APPLE,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Save the whole report, from its first line on, to a file: gdbext diagnose FILE",
        "the first lines of a report name the error and the access; the stacks below them only show who called",
        "Compute Sanitizer manual; LLVM sanitizers; Valgrind manual",
        pasted_from=OF_CHECKERS,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Print all threads of the core file: coredumpctl debug {pid} -A \"-batch -ex 'thread apply all bt'\" > "
        "dump.txt; then gdbext diagnose dump.txt",
        "a core file shows one moment; its other threads may tell what the process waited for",
        "coredumpctl(1)",
        kinds=_NOT_DEAD,
        pasted_from=_OF_CORE_FILES,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Print all threads of the core file: gdb PROGRAM CORE -batch -ex 'thread apply all bt' > dump.txt; then gdbext "
        "diagnose dump.txt",
        "a core file shows one moment; its other threads may tell what the process waited for",
        "gdb manual, core-file",
        kinds=_NOT_DEAD,
        line=DUMPED,
        pasted_from=r"text:gdb$",
        whole=False,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        f"Dump all threads twice{TWICE} the program's own frames, not the innermost ones, which change while it polls",
        "a thread that polls runs all the time, also where what it asks for never comes",
        "MPI 4.1, MPI_Test; libevent event.c",
        through=POLLS,
        alone=True,
        pasted_from=_NOT_OF_CORE_FILES,
        not_line=DUMPED,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        f"Dump all threads twice{TWICE}: a thread with the same frames in both is stuck or idle",
        "one dump cannot show whether a thread moves; an idle worker of a pool has the same frames in both, too",
        "NVIDIA/nccl#1730",
        kinds=_MAY_RUN,
        alone=True,
        pasted_from=f"{NOT_OF_CHECKERS}{_NOT_OF_CORE_FILES}",
        not_through=POLLS,
        not_line=DUMPED,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        _CHILDREN,
        "a launcher, or a parent that joins its children, always waits; what the children wait for is the cause",
        "torch elastic/agent/server/api.py; multiprocessing documentation",
        rules=PARENTS,
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        _CHILDREN,
        "the process only waits for its child; what the child waits for is the cause",
        "wait(2); pgrep(1)",
        kinds=("io",),
        through=CHILD_WAITS,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "As root, print the kernel stacks twice, a minute apart at most: cat /proc/PID/task/*/stack; check dmesg -T "
        "for errors from the network driver (mlx5, bnxt_re, irdma, cxi, ...)",
        "the call is a command to the kernel driver: no other thread of the process can end it, and unmapping much "
        "memory takes a while",
        "rdma-core libibverbs/cmd.c, cmd_mr.c; proc(5)",
        kinds=("io",),
        through=RDMA_COMMANDS,
        given=("text", "core"),
    ),
    RemedyRule(
        "unknown",
        "Check the server of that call (does it run? what does its log say?) and the connection to it: ss -tnpo | grep "
        "pid={pid}; give the call a deadline, so that it fails instead of waiting forever",
        "a synchronous gRPC call returns when its server has answered, its connection fails or its deadline is over",
        "gRPC documentation, Deadlines; ss(8)",
        kinds=("io",),
        through=GRPC_CALLS,
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Check the server of that call (does it run? what does its log say?) and the connection to it: ss -tnpo | grep "
        "pid={pid}; give the call a deadline, so that it fails instead of waiting forever",
        "a synchronous gRPC call returns when its server has answered, its connection fails or its deadline is over",
        "gRPC documentation, Deadlines; ss(8)",
        kinds=("io",),
        rules=(GRPC_IN_PYTHON,),
        alone=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Dump all threads of the process: {dump} > dump.txt; then gdbext diagnose dump.txt",
        "another thread may hold what this one waits for",
        "NVIDIA/nccl#719",
        kinds=("gil", "mutex", "condvar-idle", "io"),
        alone=True,
        whole=False,
        pasted_from=f"{NOT_OF_CHECKERS}{_NOT_OF_CORE_FILES}",
        not_through=f"{RDMA_COMMANDS}|{CHILD_WAITS}",
        not_line=DUMPED,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Run kill -QUIT PID where the program does not serve net/http/pprof: Go then prints all goroutines, and ends "
        "the program",
        "another goroutine may hold what this one waits for",
        "Go os/signal, net/http/pprof",
        kinds=("mutex", "condvar-idle", "io"),
        alone=True,
        whole=False,
        pasted_from=r"text:go$",
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "See who holds the lock: gdb -p {pid} -batch -ex 'x/3dw {mutex}'; the third number is the LWP of its holder",
        "__data.__owner of a pthread mutex, its third word, is the thread id (LWP) of its holder",
        "glibc nptl, pthread_mutex_t",
        kinds=("mutex",),
        alone=True,
        knows=MUTEX_ADDRESS,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Ask gdb who holds the lock: in the frame that called pthread_mutex_lock, p NAME.__data.__owner with the name "
        "of the mutex there; compare it with this thread's LWP",
        "__data.__owner of a pthread mutex is the thread id (LWP) of its holder",
        "glibc nptl, pthread_mutex_t",
        kinds=("mutex",),
        alone=True,
        whole=False,
        lacks=MUTEX_ADDRESS,
        given=("text",),
        through=OF_LOCKED,
    ),
    RemedyRule(
        "unknown",
        "Ask gdb who holds the lock: select the waiting thread and the frame of pthread_mutex_lock, then `p *mutex` "
        "(x86-64 without glibc's debug information: `x/4dw $rdi` in frame 0)",
        "__data.__owner of a pthread mutex, its third word, is the thread id (LWP) of its holder",
        "glibc nptl, pthread_mutex_t",
        kinds=("mutex",),
        alone=True,
        whole=True,
        given=("text",),
        pasted_from=r"text:gdb",
        through=MUTEX_ADDRESS[0],
        lacks=MUTEX_ADDRESS,
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
        held=False,
    ),
    RemedyRule(
        "unknown",
        f"Let the ranks run for a longer look: {LET_RUN}",
        "it takes several samples, and a thread that moves between two of them is slow, not stuck",
        "NVIDIA/nccl#1730",
        given=("live",),
        held=True,
    ),
    RemedyRule(
        "unknown",
        "Dump the ranks that are not in the text, too: {dump of each} > rank0.txt (then rank1.txt, ...), or `bt` for "
        "all of them in a parallel debugger; then gdbext diagnose rank*.txt",
        "ranks with equal stacks are victims of one that stands elsewhere",
        "NVIDIA/nccl#719",
        kinds=_OF_PEERS,
        alone=False,
        gaps=True,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        f"Take two dumps{TWICE}: a thread with the same frames in both is stuck or idle",
        "one dump cannot show whether a thread moves; an idle worker of a pool has the same frames in both, too",
        "NVIDIA/nccl#1730",
        kinds=_NOT_DEAD,
        not_kinds=_MAY_RUN,
        pasted_from=f"{NOT_OF_CHECKERS}{_NOT_OF_CORE_FILES}",
        not_through=POLLS,
        not_line=DUMPED,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        "Run it once with MTL_DEBUG_LAYER=1 in the environment",
        "Metal then checks its calls, and reports command buffers that failed",
        "MetalValidation(1)",
        kinds=FOR_THE_GPU,
        through=APPLE,
        given=("text",),
    ),
    RemedyRule(
        "unknown",
        AFTER_HANG,
        "a queue that the driver cannot stop usually means that the GPU hangs, and a reset follows",
        "Linux kfd_device_queue_manager.c, amdgpu_device.c",
        rules=("queue-eviction",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Read the kernel log, starting at the GPU driver's first message: journalctl -k | grep -iE "
        "'amdgpu|nvrm|xid|i915|xe '",
        "the first error names what failed; what follows are its effects",
        "NVIDIA Xid catalogue; Linux drivers/gpu/drm/amd",
        rules=("driver-failed-itself", "hung-task", "cpu-stuck", "crash-in-kernel-log"),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "While the job hangs, dump the engine process and each worker into its own file: py-spy dump --native --pid "
        "PID > dump1.txt (then dump2.txt, ...); then gdbext diagnose dump*.txt",
        "the stack of the process that does not come to the queue shows what it does instead",
        "vLLM troubleshooting guide",
        rules=("no-block",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "If the job hangs, dump every rank, the lowest collective number first: py-spy dump --native --pid PID > "
        "rank0.txt (then rank1.txt, ...); then gdbext diagnose rank*.txt",
        "the stack of a rank that is behind shows what it does instead of the collective",
        "torch ProcessGroupWrapper.cpp",
        rules=("collective-announced",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "See in cuda-gdb where the listed kernel is (`info cuda warps`, `bt`), and dump the host threads of every "
        "rank: {dump of each} > rank0.txt (then rank1.txt, ...)",
        "a kernel that waits for another rank, or for memory that a host thread must write, never ends by itself",
        "cuda-gdb manual, info cuda",
        rules=("device-runs-kernel", "device-runs-nccl"),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "If no later line says how long the operation took, it still runs or hangs: dump all threads of the process "
        "twice, 30 s apart, and compare",
        "the line is a warning; a second one follows when the operation has ended",
        "xla/service/slow_operation_alarm.cc",
        rules=("xla-slow-operation",),
        not_rules=("xla-operation-ended",),
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Find the first error in the log above that line; if the job has several ranks, put all their logs into one "
        "folder: gdbext diagnose FOLDER",
        "the first error is the cause; a rank whose log ends early is the suspect",
        "NVIDIA/nccl#928; pytorch/pytorch#20630",
        alone=True,
        given=("log",),
    ),
    RemedyRule(
        "unknown",
        "Put the logs of all ranks and hosts, from before the first error on, into one folder: gdbext diagnose FOLDER",
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
        line=r"(?i)watchdog|time[ds]?[ -]?out|stall|stuck|\bhangs?\b|not responding|heartbeat",
    ),
    RemedyRule(
        "unknown",
        "Ask NCCL 2.24 or newer which ranks are behind: ncclras -v (without that program: echo verbose status | nc "
        "localhost 28028)",
        "the stack of a thread that waits for the GPU does not show the collective; NCCL's counters do",
        "NCCL user guide, RAS",
        kinds=FOR_THE_GPU,
        given=("live",),
    ),
    RemedyRule(
        "unknown",
        _RECORDER,
        "the stack of a thread that waits for the GPU does not show the collective; torch's flight recorder does",
        "torch FlightRecorder.hpp, FlightRecorder.cpp, ProcessGroupNCCL.cpp",
        kinds=FOR_THE_GPU,
        not_through=APPLE,
        given=("live", "text", "core"),
    ),
)
