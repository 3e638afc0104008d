"""How each cause looks on the stacks and why it comes about; `found_by` names the rows and patterns that find it."""

from typing import Tuple

from gdbext.knowledge.causes.late_ranks import LATE_SIGNATURES
from gdbext.knowledge.row_kinds import Signature

SIGNATURES: Tuple[Signature, ...] = (
    Signature(
        "implicit-sync-vs-collective",
        "a few ranks are in cudaMallocHost, cudaHostAlloc, cudaFreeHost, cudaMalloc, cudaFree or a first call of "
        "cuBLAS; "
        "the others wait in a collective or for the GPU",
        "these calls wait until the device is idle, or for the driver's lock; meanwhile the kernel of a collective "
        "keeps the device busy until this rank launches its part",
        "NVIDIA/nccl#48, #70, #829; pytorch/pytorch#880",
        ("implicit",),
    ),
    Signature(
        "lazy-module-load-vs-collective",
        "a few ranks are in cuModuleLoad*, cuLibraryLoad* or cudaFuncSetAttribute, or in the first launch of a kernel "
        "under CUDA_MODULE_LOADING=LAZY; the others wait in a collective or for the GPU",
        "a kernel that is loaded at its first launch takes the context's lock and may wait until the device is idle",
        "torchcomms PR#2334; NVIDIA/nvbench#136; CUDA programming guide, lazy loading",
        ("lazy", "lazy-launch"),
    ),
    Signature(
        "missing-rank",
        "ranks wait in a collective or for the GPU; another rank is dead, stopped by a signal, not started, or busy "
        "elsewhere: in a read, a queue, a lock, Python code",
        "a collective completes only when every member has launched it",
        "NVIDIA/nccl#585, #857; vllm-project/vllm#48720; pytorch/pytorch#87995",
        ("gone", "elsewhere", "key", "local", "leader", "starved", "stopped-member", "message-for-missing"),
    ),
    Signature(
        "missing-rank",
        "workers wait in shm_broadcast's dequeue (or the front end says `No available shared memory broadcast block`) "
        "while another rank is inside a step",
        "workers in dequeue only wait: the engine core or the rank inside the step is stuck",
        "vllm-project/vllm#27313, #7454, #51986",
        ("idle-peer",),
    ),
    Signature(
        "missing-rank",
        "torch's watchdog says `last enqueued work` of a rank is behind the sequence number at which the others timed "
        "out, or monitoredBarrier names a rank",
        "a rank that is behind never reached the collective; its own stack shows where it is instead",
        "torch ProcessGroupNCCL.cpp; torch.distributed.monitored_barrier",
        ("told_by_watchdog", "told_by_log"),
    ),
    Signature(
        "missing-rank",
        "all ranks wait for the GPU, none makes progress, and by the counters of NCCL's communicators "
        "(ncclComm::seqNumber) a few ranks have launched fewer collectives than the others",
        "on the GPU, the collective of the other ranks waits for the members that have not launched it",
        "NCCL 2.23.4+ comm.h, plugin/profiler.cc; ras/collectives.cc publishes the same counts",
        ("launched_less",),
    ),
    Signature(
        "collective-mismatch",
        "ranks are in different collectives, or in the same one with different sizes",
        "every rank must make the same calls on a communicator, in the same order; if they differ, none completes",
        "NVIDIA/nccl#857; vllm-project/vllm#46097 (three in all-reduce, one a block ahead)",
        (
            "mismatch",
            "no_rank_served",
            "several_at_once",
            "one_beside",
            "different_launches",
            "told_by_watchdog",
            "told_by_coordinator",
            "told_by_log",
        ),
    ),
    Signature(
        "multi-comm-ordering",
        "two threads (or two ranks) are in calls on two communicators, for example send/receive and all-reduce",
        "a launched collective can hold the launch queue or the SMs that the next one needs; if the order differs, "
        "ranks block each other",
        "NVIDIA/nccl#1766, #899; NCCL user guide, using multiple communicators concurrently",
        ("order", "crossed_order"),
    ),
    Signature(
        "init-rendezvous",
        "ranks are in ncclCommInit*, bootstrap or the store; a member has not joined, or waits elsewhere",
        "the set-up needs a connection to every member: a missing rank, a wrong network interface and a firewall "
        "look the same",
        "NVIDIA/nccl#1260, #1324",
        ("set-up", "set-up-elsewhere", "set-up-alone", "told_by_log", "greeting_lost"),
    ),
    Signature(
        "network-transport",
        "NCCL warns of a failed InfiniBand completion, an unreachable address or a connection timeout while ranks "
        "wait in a collective",
        "a helper thread sends the data of a collective, so the stacks of the waiting threads do not show the network",
        "NVIDIA/nccl#394, #1324; NCCL user guide, troubleshooting",
        ("told_by_log",),
    ),
    Signature(
        "p2p-or-topology",
        "a rank that sets up a communicator is in cudaIpcOpenMemHandle, cudaDeviceEnablePeerAccess or an import of a "
        "peer's memory and does not return, or NCCL warns that peer access failed",
        "the driver reports direct access between the GPUs, but it does not work: because of the IOMMU, PCIe ACS, a "
        "container without the peer's device, or a virtual machine",
        "NCCL user guide, troubleshooting (GPU direct, PCI access control services)",
        ("peer-memory", "told_by_log"),
    ),
    Signature(
        "launch-serialisation",
        "every rank is in a launch, with CUDA_LAUNCH_BLOCKING=1 or a full launch queue; or a few are, and the others "
        "wait for the GPU",
        "NCCL needs its launches to return: a launch that waits for its kernel waits for a peer, and the peer waits "
        "for this rank",
        "NVIDIA/nccl#750, PR#774, #1766",
        ("launches", "launch"),
    ),
    Signature(
        "gil-deadlock",
        "one thread waits for the GIL (take_gil) inside a callback, a destructor or the loader; the GIL's owner "
        "waits for "
        "a lock of the driver, the loader or another library",
        "the thread that waits for the GIL holds the lock that the GIL's owner waits for",
        "rapidsai/ucx-py#187; auto-round#1701; numba-cuda#317",
        ("gil",),
    ),
    Signature(
        "gil-deadlock",
        "the GIL's owner is in a CUDA call (cudaEventDestroy, cudaFree, a synchronisation) and NCCL's watchdog waits "
        "for "
        "the "
        "GIL, or torch says `Could not acquire GIL`",
        "the CUDA call waits for work that only another thread can complete, and that thread needs the GIL",
        "NVIDIA/Fuser#3055; torch ProcessGroupNCCL.cpp (pt_nccl_gil_chk)",
        ("gil", "told_by_log"),
    ),
    Signature(
        "gil-deadlock",
        "every thread that was read waits for the GIL, and none runs Python code",
        "a thread that was not read holds the GIL and waits for something without releasing it",
        "CPython ceval_gil.c",
        ("gil-kept",),
    ),
    Signature(
        "gil-deadlock",
        "memory shows a cycle of owners: the thread that holds the GIL waits for a mutex, and the mutex's owner "
        "waits for the GIL",
        "each thread holds the lock that the other needs",
        "CPython ceval_gil.c; glibc nptl (owner fields)",
        ("gil",),
    ),
    Signature(
        "lock-order-deadlock",
        "memory shows a cycle of owners of mutexes, reader-writer locks, joins or the loader's lock, or a thread "
        "waits for a lock that it holds itself",
        "every thread of the cycle waits for the next one",
        "glibc nptl (owner fields)",
        ("locks", "joins"),
    ),
    Signature(
        "lock-order-deadlock",
        "every thread of a process waits without a timeout for a lock, a join, a condition or a semaphore that only "
        "another thread of the same process could release or signal",
        "all threads wait, so none can wake another one",
        "futex(2); glibc nptl; signal-safety(7)",
        ("left",),
    ),
    Signature(
        "lock-order-deadlock",
        "a thread waits for a lock of Python in a function that stands further out on the same stack, too, past the "
        "line that takes the lock; no other thread of the process acts",
        "a signal handler, a callback or a finaliser has called the function again before it let the lock go",
        "Python documentation, signal, Note on Signal Handlers and Exceptions; Delgan/loguru#390",
        ("taken_further_out",),
    ),
    Signature(
        "lock-order-deadlock",
        "threads wait for mutexes and no thread makes progress; or a hook that the CUDA driver has called waits for "
        "a lock of another library",
        "each thread holds what the other waits for",
        "ofiwg/libfabric#9003",
        ("locks",),
    ),
    Signature(
        "gil-deadlock",
        "in all samples one thread has the GIL and sleeps for moments, or calls sched_yield, in native code, and "
        "another thread waits for the GIL at one place; or one thread waits with the GIL, and a thread that native "
        "code has started needs it to call back into Python",
        "native code waits for something that only Python code does, and has not released the GIL",
        "CPython C API, PyEval_SaveThread; ctypes.PyDLL",
        (
            "keeps_gil",
            "keeps_gil_for_itself",
            "keeps_gil_from_callback",
            "keeps_gil_in_collective",
        ),
    ),
    Signature(
        "lock-order-deadlock",
        "the thread of an asyncio loop waits for events; its tasks, read from memory, wait for locks of asyncio that "
        "other waiting tasks hold, or for a lock, a full queue or each other while no task waits for a reply",
        "each task waits for what another one should do; or the task that should do it has ended, often by an error "
        "that nobody retrieved",
        "CPython asyncio documentation, synchronization primitives",
        ("tasks_in_circle", "no_task_left"),
    ),
    Signature(
        "lock-order-deadlock",
        "all threads of an executor wait inside of tasks for results, and the event loop waits for clients alone",
        "the tasks whose results they wait for are in the queue of the same executor",
        "CPython concurrent.futures documentation, ThreadPoolExecutor: deadlocks",
        ("starved",),
    ),
    Signature(
        "fork-after-cuda",
        "a thread waits for a lock, and memory names a thread of the parent process as the owner",
        "a thread held the lock at the fork; the child has a copy of the locked lock, but not that thread",
        "fork(2), pthread_atfork(3)",
        ("forked",),
    ),
    Signature(
        "fork-after-cuda",
        "a forked process has one thread, and that thread waits for a lock, for a thread pool or in CUDA",
        "the child has its parent's locks and CUDA state, but not the threads that would release or serve them",
        "torch.multiprocessing notes; libgomp, fork after a parallel region",
        ("forked",),
    ),
    Signature(
        "destructor-or-teardown",
        "a thread is in ncclCommAbort, ncclCommDestroy, a process group's destructor or an exit handler, and waits "
        "there for a thread or a stream",
        "the teardown waits for a kernel or a helper thread, and that waits for a peer",
        "NVIDIA/nccl#829, #1013, #1777",
        ("teardown", "teardown-alone", "ending"),
    ),
    Signature(
        "destructor-or-teardown",
        "a process that exits waits for the end of a child, which waits for the process or for what nobody writes",
        "the program ends before it has told its worker to end; Python joins such processes before it throws variables "
        "away",
        "CPython multiprocessing/util.py _exit_function",
        ("exit-circle", "exit-nobody"),
    ),
    Signature(
        "shm-too-small",
        "SIGBUS inside NCCL or while shared memory is cleared, or `No space left on device` for /dev/shm",
        "a file in /dev/shm can grow without memory behind it; the first write to such a page raises SIGBUS",
        "NVIDIA/Megatron-LM#516; NCCL user guide, troubleshooting",
        ("bus_error", "told_by_log"),
    ),
    Signature(
        "gpu-fault",
        "a thread throws because a CUDA call failed, a failed check names an error that destroys the CUDA context, "
        "or the log has an Xid or an ECC error; other ranks wait",
        "after a fault no work of that CUDA context completes; the peers wait for that rank's part of the collective",
        "NVIDIA Xid catalogue; cuda error names",
        ("ended_by_check", "told_by_log"),
    ),
    Signature(
        "driver-bug",
        "a thread is in state D (uninterruptible sleep) in the kernel's GPU driver; or threads of CUPTI and of the "
        "driver wait for each other",
        "the driver waits for the GPU or for itself. Do not attach a debugger to a thread in state D",
        "dlrover xpu_timer (skips such processes); syv-ai#107; pytorch/pytorch#60158",
        ("driver",),
    ),
    Signature(
        "not-a-hang",
        "every rank waits where idle workers wait, computes, or moved between two samples",
        "from outside, a server without requests, a compilation and a slow step look like a hang",
        "vllm-project/vllm#12664, #16226, #20264",
        (
            "nothing_to_do",
            "all_busy",
            "goes_on",
            "changing_hands",
            "works_inside",
            "followers_wait",
            "at_rest",
            "keeps_running",
            "waits_for_clients",
        ),
    ),
    Signature(
        "other",
        "the first sentence of the answer names the cause: for example a lock whose owner ended without releasing it, "
        "or a pipe whose other end belongs to a stopped helper process",
        "rare causes have no label of their own; another example is a send/receive bug in one NCCL release",
        "horovod/horovod#2601",
        (
            "orphan",
            "other-program",
            "held-outside",
            "unopened",
            "unasked",
            "not-read",
            "stopped-holder",
            "spins_for_dead_child",
            "rests_without_child",
            "waits_for_output_of_dead_child",
            "replaces_its_workers",
            "waiter_has_ended",
            "request_unanswered",
            "own_request_unanswered",
            "nobody_answers",
            "cut_off",
            "asks_itself",
            "call_without_end",
            "call_takes_long",
            "turns_without_batch",
            "turn_without_batch",
            "does_not_start",
            "stopped_by_signal",
            "end_not_seen",
            "nobody_changes_it",
            "loop_held_up",
            "may_hold_up_loop",
            "may_change_nothing",
            "end_not_told",
            "may_be_told_to_end",
            "room_not_made",
            "nobody_takes",
            "somebody_may_take",
            "full_pipe_not_read",
            "full_pipe_may_be_read",
            "tasks_wait_for_tasks",
            "signal_held_back",
            "held_by_debugger",
            "own-wake-up",
            "nobody",
            "messages",
            "result_lost",
            "nobody_has_the_task",
            "held_up",
            "message_lost",
            "single_message_lost",
            "nobody_can_act",
            "lock-file",
            "lock-left",
        ),
    ),
    Signature(
        "unknown",
        "all ranks wait for the GPU at the same place, or only one process was seen",
        "the stack of a waiting rank does not show what the GPU runs: a spinning kernel (90-100 % utilisation at low "
        "power; a custom all-reduce whose flag is never written), a lost network packet and a slow step look the same",
        "home-ops#13342; vllm-project/vllm#8410; NVIDIA/nccl#1730",
        ("cannot_tell", "amid_something", "some_stand", "nobody_here_has_the_task"),
    ),
    *LATE_SIGNATURES,
)
