"""Remedies of crashes, of causes without a label of their own, and of jobs that do not hang."""

from typing import Tuple

from gdbext.knowledge.causes.held_by_frames import FILE_LOCKS
from gdbext.knowledge.causes.remedies.remedy_constants import (
    BUILDS_EXTENSION,
    CHECK_OF_ENGINE,
    OF_GPU_MEMORY,
    SANITIZER,
)
from gdbext.knowledge.dump_tools import ERROR
from gdbext.knowledge.errors.checks import WATCHDOG_ENDED
from gdbext.knowledge.frames.failures import ASSERTS, OF_LINE
from gdbext.knowledge.labels import OWN_SLEEPS
from gdbext.knowledge.row_kinds import RemedyRule

_LOCK_FILE = (
    "a lock file whose existence is the lock outlives a process that was killed; one of flock or fcntl ends with its "
    "process, but not always on a network file system"
)


def _of_line(rule: str, action: str, reason: str, source: str) -> RemedyRule:
    return RemedyRule("other", action, reason, source, rules=(rule,), given=("text", "core", "log"))


def _of_checking_loop(command: str, source: str, *, python: bool) -> RemedyRule:
    return RemedyRule(
        "other",
        f"Find out what that loop checks and who was to change it: print the function's local variables ({command})",
        "the stack shows who checks, but not what for",
        source,
        rules=OWN_SLEEPS,
        given=("live",),
        python=python,
    )


_OF_LOG_LINES = (
    _of_line(
        "mlx-ring-bad-address",
        "Look for the reason in this rank and not in its peers: before the next run enable core files (ulimit -c "
        "unlimited), and read in the core what the ring's threads send and receive",
        "EFAULT tells of the memory that was given to the call, not of the other end of the socket",
        "recv(2), send(2), EFAULT",
    ),
    _of_line(
        "heap-reported",
        "Read the checker's whole report: the first stack is the invalid access, the later ones show where the "
        "memory was allocated and freed",
        "the first report is the fault; all later ones may follow from it",
        "AddressSanitizer; valgrind manual, Memcheck",
    ),
    _of_line(
        "heap-broken",
        "Run the program under valgrind, or build its native code with -fsanitize=address (with CUDA set "
        "ASAN_OPTIONS=protect_shadow_gap=0): the first invalid access reported is the fault",
        "the heap was damaged before the call that noticed it",
        "valgrind manual; AddressSanitizer",
    ),
    _of_line(
        "data-race",
        "Read the report's two stacks: use one lock around the data that both access, or make it atomic",
        "what a race leaves in memory depends on the time, so its effects come and go",
        "ThreadSanitizer manual; Valgrind manual, Helgrind",
    ),
    _of_line(
        "uninitialised-value",
        "Find who should have written the value: the report's last stack shows where it was made (MemorySanitizer: "
        "-fsanitize-memory-track-origins; Valgrind: --track-origins=yes)",
        "the stack of the report is where it was used, not where it was left out",
        "LLVM MemorySanitizer; Valgrind manual, Memcheck",
    ),
    _of_line(
        "undefined-behaviour",
        "Mend the expression at the place in that line; with UBSAN_OPTIONS=print_stacktrace=1 the report has its stack",
        "a compiler may make anything of such an expression",
        "LLVM UndefinedBehaviorSanitizer",
    ),
    _of_line(
        "memory-leaked",
        "If the program failed, look for another error before the report; the leak itself: free what the report's "
        "stacks allocate",
        "the leak checker runs when the program has already ended",
        "LLVM LeakSanitizer",
    ),
    _of_line(
        "rust-panicked",
        "Read the source at the place that the panic line names; for a stack with names set RUST_BACKTRACE=1, and "
        "debug = 1 under [profile.release] in Cargo.toml",
        "the line has the place of the panic and what failed there",
        "Rust std::backtrace; The Cargo Book, profiles",
    ),
    RemedyRule(
        "other",
        f"Look up the call at that line of the source; `gdbext error {ERROR}` lists the usual causes",
        "the check names the source line of the call that failed, and its error",
        "FasterTransformer cuda_utils.h; TurboMind cuda_utils.h",
        line=CHECK_OF_ENGINE,
        given=("text", "log"),
    ),
    _of_line(
        "uncaught-in-cpp",
        "Run it under gdb with `catch throw`, which stops where the exception is thrown; its text is on the what() "
        "line of the log",
        "the stack of abort() begins after the throw",
        "std::terminate; gdb manual, catchpoints",
    ),
    _of_line(
        "ended-by-its-runtime",
        "Read the exception's text in that line, and the stack that the runtime prints after it",
        "the run time prints where it was thrown",
        "Go runtime/panic.go; OpenJDK; CoreCLR",
    ),
    _of_line(
        "nobody-can-wake-another",
        "Read the stacks that the runtime prints below that line: each shows what a goroutine or thread waits for, and "
        "at which line of the source",
        "one of them should have woken the others, or has ended too early",
        "Go runtime/proc.go checkdead; Ruby thread.c rb_check_deadlock",
    ),
    _of_line(
        "failed-assertion",
        "Look up the assertion in the source; the values of its variables are in {core}",
        "the condition names what the program did not expect",
        "assert(3)",
    ),
    _of_line(
        "failed-assert-of-python",
        "Log the tested values just before the assert; if it is in a library, search the library's issues for it",
        "the condition names what the program did not expect; a Python exception leaves no core file",
        "Python documentation, assert",
    ),
    _of_line(
        "no-device-context",
        "Call cuCtxSetCurrent, or cudaSetDevice (before CUDA 12 also cudaFree(0)), in that thread before it uses the "
        "GPU",
        "a new thread has no current context until a call of the runtime sets one",
        "CUDA driver API, context management; CUDA programming guide, initialization",
    ),
    _of_line(
        "gpu-memory-taken",
        "Stop or move what holds the memory (nvidia-smi --query-compute-apps=pid,process_name,used_memory "
        "--format=csv), take another GPU, or lower --gpu-memory-utilization below free / total",
        "vLLM takes that share of the whole GPU, whatever others use of it",
        "vLLM engine arguments, --gpu-memory-utilization",
    ),
    RemedyRule(
        "other",
        "Read the exception in the last line of the traceback, and your own innermost line above it",
        "the program raised it itself; nothing hangs",
        "Python documentation, errors",
        rules=("programming-error",),
        given=("text", "core"),
    ),
    RemedyRule(
        "other",
        "Find the traceback above that line in the full log: its last frames show where the program raised the error",
        "the program raised it itself; nothing hangs",
        "Python documentation, errors",
        rules=("programming-error",),
        given=("log",),
    ),
    *(
        _of_line(
            rule,
            "Run once with num_workers=0 and python -X faulthandler: the failure then happens in the main process, "
            "which prints a traceback",
            "the loader only reports that its worker ended",
            "torch.utils.data documentation",
        )
        for rule in ("loader-worker-failed", "loader-worker-died")
    ),
    RemedyRule(
        "other",
        "See who uses the GPU's memory: nvidia-smi (AMD: amd-smi process); take smaller batches, or let fewer tasks "
        "run on that GPU at a time",
        "the line tells of memory of the GPU, not of the host",
        "RMM documentation; NVIDIA/spark-rapids, DeviceMemoryEventHandler",
        rules=("no-memory-left",),
        line=OF_GPU_MEMORY,
        given=("text", "core", "log"),
    ),
    RemedyRule(
        "other",
        "See what uses the memory that ran out: nvidia-smi (GPU), free -m and the cgroup's memory.max (host)",
        "a smaller batch or cache helps against the first, a higher limit against the second",
        "kernel documentation, cgroup-v2",
        rules=("no-memory-left",),
        not_line=OF_GPU_MEMORY,
        given=("text", "core", "log"),
    ),
    _of_line(
        "not-made-for-this-host",
        "If the line names CUDA or a GPU: compare nvidia-smi (driver, GPU) with the build (python -m "
        "torch.utils.collect_env); if it names a library or a symbol: `ldd FILE.so` lists what is missing",
        "the driver must be as new as the CUDA of the build, and the build must have code for this GPU",
        "CUDA compatibility guide; ldd(1)",
    ),
    _of_line(
        "mpi-not-started",
        "Start the program with mpirun, and check that mpirun, orted (PATH) and libmpi (LD_LIBRARY_PATH) are of one "
        "install: which -a mpirun orted; ldd PROGRAM | grep mpi",
        "a program that is started without mpirun must find and start orted itself",
        "Open MPI FAQ, running MPI jobs",
    ),
    _of_line(
        "port-in-use",
        "See who has the port: ss -ltnp 'sport = :PORT' as root; end it if it is left of an earlier run, else take "
        "another port (MASTER_PORT, --port)",
        "only one process of a host can listen on a port",
        "bind(2), EADDRINUSE; ss(8)",
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
        "other",
        "Put a barrier between the two accesses of the report: __syncthreads(), or __syncwarp() within a warp",
        "without a barrier the order of the accesses, and so the result, changes from run to run",
        SANITIZER,
        reported=("race",),
    ),
    RemedyRule(
        "other",
        "Find the code that should have written the buffer before this kernel, or fill it (cudaMemsetAsync on the "
        "same stream)",
        "memory that was not written holds old data, so the numbers change from run to run",
        SANITIZER,
        reported=("uninitialized",),
    ),
    RemedyRule(
        "other",
        "Check that all threads that the barrier waits for reach it; ignore the report if warps have different work "
        "by design",
        "synccheck takes a barrier of some warps for a barrier of the whole block",
        SANITIZER,
        reported=("barrier",),
    ),
    RemedyRule(
        "other",
        "Free the buffer, or stop allocating it: the report has the stack of the allocation; build with -g for its "
        "source line",
        "memory that is never freed or never used is not a hang, but it can exhaust the device",
        SANITIZER,
        reported=("leak", "unused"),
    ),
    RemedyRule(
        "other",
        "Run memcheck with --report-api-errors no when the calls are probes whose error the program expects",
        "runtimes probe for functions that an older driver lacks, and continue without them",
        SANITIZER,
        reported=("api-error",),
    ),
    RemedyRule(
        "other",
        "Use less memory or start fewer workers on that host; `ray logs raylet.out -ip IP` shows what used the "
        "memory (RAY_memory_usage_threshold sets the threshold)",
        "Ray's memory monitor ends workers before the kernel would; the kernel's log does not show it",
        "Ray documentation, Out-Of-Memory Prevention",
        rules=("ray-killed-for-memory",),
    ),
    RemedyRule(
        "other",
        "Check for the OOM killer on that host: dmesg -T | grep -iE 'oom|killed process' (Kubernetes: kubectl "
        "describe pod POD; Slurm: sacct -j JOB -o JobID,State,MaxRSS); raise the limit or use less memory",
        "the kernel or the cluster kills a process that exceeds the memory of the host or of its container",
        "Linux oom killer; Kubernetes and Slurm documentation",
        rules=("killed", "killed-for-memory"),
    ),
    RemedyRule(
        "other",
        "Look for the request in the log of the process that owes the answer, and see what the tasks of its event loop "
        "wait for (gdbext stacks lists them below the threads)",
        "the request may have been dropped, its task may have failed, or it may wait for an event that another request "
        "has taken",
        "Kludex/uvicorn#748",
        request=True,
    ),
    RemedyRule(
        "other",
        "Do not block the event loop: await the request (httpx.AsyncClient, aiohttp), or send it from a thread "
        "(asyncio.to_thread)",
        "while the thread of a loop is in a call that blocks, no other request is accepted or answered",
        "CPython documentation, Developing with asyncio: Running Blocking Code",
        rules=("python-socket",),
        through=r"(\w+\.)?(run_forever|run_until_complete|run)$",
    ),
    RemedyRule(
        "other",
        "Find out what killed the child: its own log to the last line, and dmesg -T | grep -iE 'oom|killed process'; "
        "restart the server, and let it watch its children (Process.sentinel, SIGCHLD)",
        "a process that is killed cannot tell its parent, which waits on until it asks for the exit status",
        "wait(2); proc_pid_stat(5), exit_code",
        killed_child=True,
    ),
    RemedyRule(
        "other",
        "Read what the workers print on standard error before they end; or use concurrent.futures.ProcessPoolExecutor, "
        "which raises BrokenProcessPool where a worker ends",
        "multiprocessing.Pool starts a new worker for each that ends, and tells nobody",
        "CPython multiprocessing/pool.py _maintain_pool; concurrent.futures documentation, BrokenProcessPool",
        replaced=True,
    ),
    RemedyRule(
        "other",
        "Use lock guards (std::lock_guard; in Python `with`), and make mutexes in shared memory robust",
        "a thread that ends while holding a lock leaves it locked; a robust mutex reports that to the next owner "
        "(EOWNERDEAD)",
        "pthread_mutexattr_setrobust(3)",
        kinds=("mutex",),
        pasted_from=r"(?!text:go$)",
    ),
    RemedyRule(
        "other",
        "Unlock with `defer mu.Unlock()`, and do not lock a mutex that the same goroutine already holds",
        "Go's mutexes are not recursive, and a goroutine that returns without unlocking leaves them locked",
        "Go documentation, package sync",
        kinds=("mutex",),
        pasted_from=r"text:go$",
    ),
    RemedyRule(
        "other",
        "Put the lock file's folder (a cache, a dataset) on a local disk, or start the NFS lock service (rpc.statd, "
        "lockd); the mount option local_lock=all is enough only if a single host uses the folder",
        "the file system refused the lock: no other process needs to hold it",
        "fcntl(2), ENOLCK; nfs(5), local_lock",
        rules=("no-locks-there",),
    ),
    RemedyRule(
        "other",
        "List the lock files on every host and container that shares the cache, and delete those that no process has "
        "open: find ~/.cache/torch_extensions -name lock -print -exec fuser -v {} \\;",
        "torch's lock while it builds an extension outlives a process that was killed",
        "torch/utils/file_baton.py, cpp_extension.py",
        through=BUILDS_EXTENSION,
        rules=(*FILE_LOCKS, "waits-for-lock-file"),
        given=("text", "log"),
    ),
    RemedyRule(
        "other",
        "See who has the lock file open, as root, on each host and in each container that shares it; delete it if "
        "nobody has and no job uses it: fuser -v {lock}",
        _LOCK_FILE,
        "flock(2), fcntl(2)",
        rules=(*FILE_LOCKS, "waits-for-lock-file"),
        given=("text", "log"),
    ),
    RemedyRule(
        "other",
        "Find who has the lock file: `gdbext locks` on each host and in each container that uses it; only where "
        "nobody has it, remove it and start again",
        _LOCK_FILE,
        "torch/utils/file_baton.py; flock(2), fcntl(2)",
        given=("live", "core"),
        rules=(*FILE_LOCKS, "waits-for-lock-file"),
    ),
    RemedyRule(
        "not-a-hang",
        "No action needed if requests are answered; if not, dump the processes that were not read, and check the "
        "client and its request timeout",
        "the ranks wait for work",
        "vllm-project/vllm#16226",
        idle=True,
    ),
    RemedyRule(
        "not-a-hang",
        "Let it finish; if it takes longer than usual, diagnose it again",
        "it works, or it was seen to go on",
        "vllm-project/vllm#12664, #20264",
        idle=False,
    ),
    RemedyRule(
        "not-a-hang",
        "Where the ranks that wait may run into their timeout, set a longer one: init_process_group(timeout=...)",
        "torch's watchdog ends a job whose collective takes longer than that",
        "pytorch/pytorch distributed_c10d.py, init_process_group",
        kinds=("gloo", "nccl-group-launch", "stream-sync", "event-sync"),
        python=True,
        idle=False,
    ),
    *_OF_LOG_LINES,
    RemedyRule(
        "other",
        "Look up the error (gdbext error {error}); read the log before it and dmesg -T | grep -iE 'xid|nvrm|amdgpu'; "
        "to find the call, run the job again with CUDA_LAUNCH_BLOCKING=1",
        "the watchdog's thread learns of an error that another thread's call or kernel has made",
        "torch ProcessGroupNCCL.cpp; CUDA programming guide, asynchronous errors",
        kinds=("cuda-error-throw",),
        line=WATCHDOG_ENDED,
    ),
    RemedyRule(
        "other",
        "Look up the error: gdbext error {error}; then read the code of the call that failed",
        "the page has the usual causes of this error and what to check",
        "CUDA runtime API, error types",
        kinds=("cuda-error-throw",),
        not_line=WATCHDOG_ENDED,
    ),
    RemedyRule(
        "other",
        "Run again with NCCL_DEBUG=WARN: the process crashed while it set up a communicator, and NCCL's first WARN "
        "may say what had failed",
        "where the set-up fails, NCCL frees what it has made, and a fault there hides the first failure",
        "NCCL init.cc, error paths",
        kinds=("exited-or-crashed",),
        through=r"p?ncclCommInit\w*",
        given=("text", "core"),
    ),
    RemedyRule(
        "other",
        "In the gdb that printed this stack, or with the core file open (coredumpctl gdb), run `bt full`: the "
        "variables of the assertion are in the frame that called it",
        "the stack names the condition that failed; its variables say why",
        "glibc assert.c; coredumpctl(1)",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:gdb",
        given=("text",),
        knows=(ASSERTS, OF_LINE),
    ),
    RemedyRule(
        "other",
        "In the gdb that printed this stack, or with the core file open (coredumpctl gdb), run `thread apply all bt "
        "full`; the error text is in the log just before the crash",
        "the log has the condition that failed or the signal; the stack only shows where",
        "abort(3); coredumpctl(1)",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:gdb",
        given=("text",),
        lacks=(ASSERTS, OF_LINE),
    ),
    RemedyRule(
        "other",
        "In the lldb session that printed this stack, run `bt all` and `frame variable`; the error text is in the log "
        "just before the crash",
        "the log has the condition that failed or the signal; the stack only shows where",
        "LLDB command map",
        kinds=("exited-or-crashed",),
        pasted_from=r"text:lldb",
        given=("text",),
    ),
    RemedyRule(
        "other",
        "Read the log lines just before the crash; to see all threads and variables, open {core}",
        "the log has the condition that failed or the signal; the stack only shows where",
        "abort(3); coredumpctl(1)",
        kinds=("exited-or-crashed",),
        pasted_from=r"(?!text:(?:gdb|lldb))",
        given=("text", "core", "log"),
    ),
    _of_checking_loop("py-spy dump --locals --pid PID", "py-spy README", python=True),
    _of_checking_loop("in gdb: frame N, then info locals", "GDB manual, Frame Info", python=False),
    RemedyRule(
        "other",
        "Read the evidence: gdbext diagnose -v prints it",
        "`other` covers rare causes, so there is no general advice; the first sentence of the answer names the cause",
        "horovod/horovod#2601",
        last=True,
    ),
)
