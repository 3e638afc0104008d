"""Lines that say which ranks are missing, or that ranks call different things."""

from typing import Tuple

from gdbext.knowledge.row_kinds import LogRule

_DEAD = "exited-or-crashed"


def _missing(
    id: str, pattern: str, means: str, source: str, confidence: str = "low", wait: str = "", befell: str = ""
) -> LogRule:
    return LogRule(id, pattern, means, source, "missing-rank", confidence, wait, befell)


def _mismatch(id: str, pattern: str, means: str, source: str, confidence: str = "medium", wait: str = "") -> LogRule:
    return LogRule(id, pattern, means, source, "collective-mismatch", confidence, wait)


RULES: Tuple[LogRule, ...] = (
    _missing(
        "missing-ranks",
        r"\[missing ranks: ?(?P<rank>\d+(?:, ?\d+)*)\]"
        r"|^(?P<rank2>\d{1,5}): \[.{0,400}(?i:allreduce|allgather|broadcast|alltoall|reducescatter)",
        "Horovod's coordinator waits for ranks that have not submitted the tensor",
        "horovod/common/stall_inspector.cc; horovod#1012",
        "medium",
        befell="Horovod's coordinator waits for {ranks} to submit tensors that other ranks have submitted",
    ),
    _missing(
        "ready-ranks",
        r"\[ready ranks: ?\d+(?:, ?\d+)*\]",
        "Horovod's coordinator lists the ranks that have submitted that tensor; the other ranks have not submitted it",
        "horovod/common/operations.cc before 0.16; horovod#336",
    ),
    _missing(
        "stalled-tensors",
        r"One or more tensors were submitted to be reduced, gathered or broadcast(?:ed)? by subset of ranks",
        "Horovod's coordinator waits for ranks that have not submitted a tensor",
        "horovod/common/stall_inspector.cc",
    ),
    _missing(
        "desync-report",
        r"\[(?P<rank>\d+(?:, ?\d+)*)\] finished collective #\d{1,12}, but didn't join collective #"
        r"|ranks \[(?P<rank2>\d+(?:, ?\d+)*)\] are the lagging ranks that caused this timeout",
        "torch's report names the ranks that did not join the collective",
        "torch TraceUtils.h (TORCH_NCCL_DESYNC_DEBUG)",
        "medium",
    ),
    LogRule(
        "ras-counts-differ",
        r"Communicator ranks have different \w{1,20} operation counts",
        "ranks of a communicator have launched different numbers of operations: as in every job that runs, and in one "
        "that hangs if the numbers stay the same",
        "NCCL src/ras/client_support.cc",
    ),
    LogRule(
        "store-gone",
        r"maybe TCPStore server has shut down too early"
        r"|(?:recvValue|recvVector|sendBytes|sendValue) failed on SocketImpl",
        "the process that serves the rendezvous store, usually rank 0, has closed the connection; it may have ended",
        "torch ProcessGroupNCCL.cpp, TCPStore.cpp",
        wait="store-wait",
    ),
    LogRule(
        "shm-segment",
        r"shm(?:utils)?\.(?:h|cc):\d+ NCCL WARN .{0,80}No space left|dev/shm/nccl.*No space left"
        r"|NCCL WARN .{0,60}(?:creating|extend)\w* (?:shared memory segment|/dev/shm)",
        "there is no room in /dev/shm",
        "NCCL shmutils.cc, shm.h; NVIDIA/nccl#290",
        "shm-too-small",
        "medium",
        "nccl-init",
    ),
    LogRule(
        "loader-bus-error",
        r"DataLoader worker \(pid (?P<worker>\d{1,9})\) is killed by signal: Bus error",
        "a DataLoader worker was killed by SIGBUS; the usual cause is a full /dev/shm",
        "torch utils/data/_utils/signal_handling.py",
        "shm-too-small",
        "medium",
        "sigbus",
        past=True,
    ),
    LogRule(
        "shm-suspected",
        r"insufficient shared memory \(shm\)|are out of shared memory",
        "a DataLoader worker got SIGBUS, probably because /dev/shm is full",
        "torch/utils/data/_utils/signal_handling.py; torch DataLoader.cpp",
        "shm-too-small",
        "medium",
        "exited-or-crashed",
    ),
    LogRule(
        "shm-full",
        r"dev/shm.*(?:No space left|[Bb]us error)|No space left on device.*shm"
        r"|(?:while creating|extend) shared memory segment|[Pp]lease check that /dev/shm"
        r"|not enough space for .{1,300}\(the shared-memory backing",
        "there is no room in /dev/shm",
        "vLLM shared memory; UCX mm_posix.c; Open MPI help-opal-shmem-mmap.txt",
        "shm-too-small",
        "medium",
        "exited-or-crashed",
    ),
    _mismatch(
        "mismatch",
        r"Detected mismatch between collectives on ranks",
        "torch compared the ranks' collective calls (TORCH_DISTRIBUTED_DEBUG=DETAIL) and found that they differ",
        "torch ProcessGroupWrapper.cpp",
        "high",
    ),
    _mismatch(
        "mismatch-at-rank",
        r"Mismatched collective detected, please check your collective calls at and around rank \d",
        "NCCL found ranks that call different collectives: the ranks that print this warning, or their neighbours",
        "NCCL 2.6 init.cc, NCCL_CHECKS; NVIDIA/nccl#296",
    ),
    _mismatch(
        "mismatch-of-tensors",
        r"Mismatched (?:MPI operations|\w+ operations|data types|(?:allreduce|broadcast|\w+) (?:tensor )?(?:shapes"
        r"|root ranks))"
        r"|Collective [Oo]p \w{1,60}: .{1,300} but that group has (?:type|size)|found no source for broadcast"
        r"|op\.preamble\.length <= op\.nbytes|Ranks .{0,60}have inconsistent (?:sizes|shapes)"
        r"|MPI_ERR_TRUNCATE|Message truncated, error stack",
        "the collective library found that the ranks' operations differ in type or size",
        "horovod/common/controller.cc; tensorflow collective_param_resolver_local.cc; "
        "gloo transport/tcp/pair.cc; MPI standard, MPI_ERR_TRUNCATE",
    ),
    _mismatch(
        "mismatch-in-transport",
        r"NCCL WARN .{0,120}(?:collective mismatch error|message truncated : receiv)"
        r"|EI0005\b|arguments for collective communication are inconsistent",
        "a transport received a message of another size than the collective of this rank expects",
        "NCCL transport/net_ib, net_socket.cc; CANN error code EI0005",
        "low",
        "nccl-group-launch",
    ),
    _missing(
        "monitored-barrier",
        r"[Rr]ank\(?s?\)? \[?(?P<rank>\d+(?:, ?\d+)*)\]? failed to pass monitoredBarrier"
        r"|waiting for send/recv from rank (?P<rank2>\d+)",
        "torch's monitoredBarrier names the ranks that did not arrive",
        "torch.distributed.monitored_barrier",
        "medium",
        "gloo",
        "torch's monitoredBarrier reports that {ranks} did not arrive",
    ),
    _missing(
        "remote-rank-silent",
        r"has not received the Notify record from remote rank:? ?\[(?P<rank>\d+)\]"
        r"|Cluster Exception Location\[IP/ID\]:\[[\d.:a-f]{2,40}/(?P<rank2>\d+)\]",
        "HCCL waits for a device that does not answer",
        "CANN error codes EI0002, EI0004; InternLM/lmdeploy#3354",
        wait="stream-sync",
    ),
    _missing(
        "deepep-barrier",
        r"DeepEP timeout check failed: rank = \d{1,6}, thread = (?P<rank>\d{1,6}), value = [1-9]",
        "a rank waited in vain for another one at a barrier of DeepEP",
        "DeepEP csrc/kernels/utils.cuh, barrier_block: a thread for each peer, whose value falls to 0 when it comes",
        befell="{ranks} did not reach a DeepEP barrier, or passed one barrier fewer than the others (with several "
        "hosts, DeepEP numbers ranks within each host)",
    ),
    _missing(
        "task-lost",
        r"/task:(?P<rank>\d+)\b.{0,200}(?:heartbeat timeout|stopped sending heartbeats|unhealthy|was preempted"
        r"|disconnected|failed to send a heartbeat)"
        r"|(?:heartbeat timeout|unhealthy|disconnected).{0,120}/task:(?P<rank2>\d+)\b",
        "the coordination service of XLA lost a task",
        "tsl coordination_service.cc",
        "medium",
    ),
    _missing(
        "task-not-at-barrier",
        r"^/job:\w{1,40}/replica:\d{1,6}/task:(?P<rank>\d{1,6})$",
        "a barrier of XLA's coordination service timed out before this task reached it",
        "tsl coordination_service.cc, BarrierAsync: a line for each task that has not come",
        "medium",
        befell="{ranks} had not reached a barrier of XLA's coordination service when the barrier timed out",
    ),
    LogRule(
        "circle-found-by-its-runtime",
        r"Found (?:one|\d{1,4}) Java-level deadlock|^1LKDEADLOCK +Deadlock detected"
        r"|Java-level deadlock has been detected|\b\d{1,4} deadlocks? detected"
        r"|possible (?:circular locking dependency|recursive locking) detected"
        r"|unparked deadlocked thread|_DeadlockError: |BUG: spinlock (?:recursion|lockup)",
        "a deadlock detector found threads that wait for locks which will never be released",
        "OpenJDK; Linux lockdep; parking_lot deadlock.rs; CPython importlib",
        "lock-order-deadlock",
        "medium",
        "mutex",
    ),
    LogRule(
        "would-wait-for-itself",
        r"[Rr]esource deadlock (?:avoided|would occur)|(?:read|write) lock would result in deadlock"
        r"|recursively acquire mutex|deadlock; (?:recursive locking|lock already owned)",
        "a lock or join call failed instead of waiting forever (EDEADLK): usually the thread already holds the lock",
        "pthread_mutex_lock(3), EDEADLK; Rust std RwLock; Ruby thread_sync.c",
        "lock-order-deadlock",
        "medium",
        "mutex",
    ),
    LogRule(
        "opposite-orders-seen",
        r"lock-order-inversion \(potential deadlock\)|Cycle in lock order graph: |Potential Mutex deadlock"
        r"|cycle in the historical lock ordering graph|POTENTIAL DEADLOCK: |[Ll]ock order \"0x\w{1,16}\"? before \"?0x",
        "a lock checker found locks taken in opposite orders: a deadlock is possible, but need not have happened",
        "ThreadSanitizer; absl/synchronization/mutex.cc; go-deadlock; Valgrind's Helgrind",
        "lock-order-deadlock",
        "low",
        "mutex",
        past=True,
    ),
    LogRule(
        "nobody-can-wake-another",
        r"^fatal error: all goroutines are asleep|No live threads left\. Deadlock\?",
        "the runtime found all threads (in Go: goroutines) blocked, so none of them can wake another",
        "Go runtime/proc.go checkdead; Ruby thread.c rb_check_deadlock",
        "other",
        "low",
        "exited-or-crashed",
    ),
    _missing(
        "ranks-that-did-not-come",
        r"[Mm]issing (?:ranks?|workers?)[ :=]{1,3}\[?(?P<rank>\d{1,6}(?:, ?\d{1,6})*)\b"
        r"|[Ww]aiting (?:for|on) ranks?:? \[?(?P<rank2>\d{1,6}(?:, ?\d{1,6})*)\b"
        r"|\b[Rr]anks? \[?(?P<rank3>\d{1,6}(?:, ?\d{1,6})*)\]? (?:did|has|have) not (?:arrive|join|respond|report|enter"
        r"|reach|call)",
        "a line names the ranks that others wait for",
        "the words of barriers, controllers and watchdogs",
    ),
    _missing(
        "ras-process-gone",
        r"\d job process(?:es)? (?:is|are) considered dead|Missing communicator data from \d{1,6} (?:job process|rank)",
        "NCCL's RAS cannot reach a process of the job; the next lines of the report name its rank",
        "NCCL src/ras/client_support.cc",
    ),
    LogRule(
        "expected-threads",
        r"waiting for `initialize clique",
        "XLA warns after a few seconds that the set-up of a new communicator (a clique) still waits for participants; "
        "the ranks that such lines name have arrived",
        "xla/service/rendezvous.cc, collectives/gpu_clique.cc",
        "init-rendezvous",
        "low",
        "nccl-init",
    ),
    _missing(
        "participants-missing",
        r"Expected \d+ threads to join the rendezvous, but (?:only \d+|not all) of them"
        r"|waiting for all participants to arrive at rendezvous",
        "a participant did not join an XLA collective",
        "xla/service/rendezvous.cc",
        wait="nccl-group-launch",
    ),
    _missing(
        "another-ended-first",
        r"Horovod has been shut down\. This was caused by an exception on one of the ranks"
        r"|JAX distributed service detected fatal errors",
        "the library ended this rank because another one had failed or was done",
        "horovod/common/common.h SHUT_DOWN_ERROR; XLA pjrt/distributed/client.h",
        wait=_DEAD,
    ),
)
