# ruff: noqa: E501 - lines of logs are as long as they are
"""Log lines alone: whose they are, where that process stands, and what they mean. One line for each row that has one."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.labels import WAIT_KINDS
from gdbext.knowledge.log_lines import LOG_RULES, WRITERS
from gdbext.model.text.literals import required_literals
from gdbext.model.text.patterns import regex
from gdbext.parsers import parse_files
from gdbext.parsers.formats.logs import log_evidence, writer_of


def answer(text):
    return judge(parse_files([("log.txt", text.encode())]))


@pytest.mark.parametrize("rule", LOG_RULES, ids=lambda rule: rule.id)
def test_rows_can_be_looked_for_cheaply(rule):
    assert required_literals(rule.pattern), "each alternative needs three plain characters in a row"
    assert not rule.wait or rule.wait in WAIT_KINDS
    assert not rule.alone or rule.cause


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"(?:bus|page) fault", (" fault",)),
        (r"ECC error|NVLink \d", ("ECC error", "NVLink ")),
        (r"[Tt]ransport retry", ("ransport retry",)),
        (r"a\d+b", None),
        (r"(?:long enough)?x", None),
        (r"(?:long enough){2}x", ("long enough",)),
        (r"(?i:error)", None),
    ],
)
def test_what_a_match_needs(pattern, literals):
    assert required_literals(pattern) == literals


@pytest.mark.parametrize(
    ("line", "pid", "rank"),
    [
        ("node1:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed", 2143, None),
        ("[1612.123] [node1:19546:0:19546] ib_mlx5_log.c:139  Transport retry count exceeded", 19546, None),
        ("init.cc:1247 NCCL WARN Mismatched collective detected", None, None),
        ("ERROR:torch.distributed:failed (exitcode: -9) local_rank: 3 (pid: 812917) of binary: python", 812917, 3),
        ("WARNING:torch.distributed.elastic:Sending process 812914 closing signal SIGTERM", 812914, None),
        ("[2026-01-01 00:00:00,1] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 4711", 4711, None),
        ("[ERROR] 2025-04-08-18:07:20 (PID:1292363, Device:1, RankID:1) ERR01100 OPS call acl api failed.", 1292363, 1),
        ("EI0002: [PID: 2969] 2025-10-11 The wait execution of the Notify register times out.", 2969, None),
        ("[ERROR] HCCL(80812,):2026-06-17 [transport_manager.cc:954] Transport init error!", 80812, None),
        ("]. group information: [group:[x], rankSize[8], rankId[3].] times out", None, 3),
        ("2023:11:28-17:35:45:(35980) |CCL_ERROR| exec.cpp:134 start_workers: failed", 35980, None),
        (":0:rocdevice.cpp :2984: 24113 us: [pid:872110 tid:0x7f17] Callback: Queue aborting with error", 872110, None),
        ("[Tue Sep 8] traps: server[3838286] general protection fault ip:7f86 sp:7f43 error:0", 3838286, None),
        ("[12.3] python3[77]: segfault at 8 ip 00007f sp 00007f error 4 in libcuda.so.1", 77, None),
        ("Out of memory: Killed process 4711 (python3) total-vm:1kB", 4711, None),
        ("kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3", 1818990, None),
        ("node1 systemd-coredump[9]: Process 87058 (pt_main_thread) of user 0 dumped core.", 87058, None),
        ("/var/spool/slurm_script: line 28:  8156 Killed                  python3 main.py", 8156, None),
        ("==158983==ERROR: AddressSanitizer: heap-use-after-free", 158983, None),
        ("srun: error: node7: task 12: Out Of Memory", None, 12),
        ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", None, 3),
        ("=   RANK 5 PID 4242 RUNNING AT node2", 4242, 5),
        ("[TRT-LLM] [RANK 1] [E] Hang detected after 300 seconds", None, 1),
        ("2024-10-21 - lmdeploy - ERROR - model_agent.py:489 - Rank[2] failed.", None, 2),
        ("mpirun noticed that process rank 1 with PID 8445 on node n exited on signal 11", 8445, 1),
        ("Unhandled exception in thread <_MainThread>, proc 2834.", 2834, None),
    ],
)
def test_whose_line_it_is(line, pid, rank):
    assert writer_of(line) == (pid, rank)


def test_every_writer_has_a_source():
    assert all(rule.source and regex(rule.pattern).search("x" * 50) is None for rule in WRITERS)


@pytest.mark.parametrize(
    ("line", "kind", "cause"),
    [
        ("(EngineCore pid=...) INFO [shm_broadcast.py:705] No available shared memory broadcast block found in 60 seconds",
         "ipc-queue", "unknown"),
        ("(EngineCore pid=12) ERROR [core.py:1] TimeoutError: RPC call to execute_model timed out.", "ipc-queue", "unknown"),
        ("(APIServer pid=12) ERROR EngineDeadError: EngineCore encountered an issue.", "exited-or-crashed", "unknown"),
        ("(raylet pid=3) The node with node id: 1 has been marked dead because the detector has missed too many heartbeats",
         "exited-or-crashed", "missing-rank"),
        ("node1:77:88 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 96 bytes, error: No space left",
         "nccl-init", "shm-too-small"),
        ("node1:77:88 [0] NCCL WARN Bootstrap : no socket interface found", "nccl-init", "network-transport"),
        ("[E socket.cpp:957] The client socket has timed out after 60s while trying to connect to (node1, 29500).",
         "store-wait", "init-rendezvous"),
        ("RuntimeError: Timed out waiting 1800000ms for send operation to complete", "gloo", "missing-rank"),
        ("EI0006: [PID: 12] 2025-04-08 Getting socket times out. Reason: Remote Rank did not send the data in time.",
         "nccl-init", "init-rendezvous"),
        ("EI0002: [PID: 12] The wait execution of the Notify register times out. Reason: no record from remote rank: [unknown].",
         "stream-sync", "unknown"),
        ("E xla/service/rendezvous.cc:38] This thread has been waiting for `initialize clique for rank 6; x` for 10 seconds",
         "nccl-init", "init-rendezvous"),
        (":0:rocdevice.cpp:1: [pid:12 tid:0x7f] Callback: Queue 0x7e aborting with error : HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION",
         "cuda-error-throw", "gpu-fault"),
        ("srun: error: node7: task 12: Out Of Memory", "exited-or-crashed", "missing-rank"),
        ("slurmstepd: error: *** STEP 494583.0 ON node1 CANCELLED AT 2024-04-20 DUE TO TIME LIMIT ***",
         "exited-or-crashed", "unknown"),
        ("Warning  BackOff  kubelet  Back-off restarting failed container worker in pod x", "exited-or-crashed", "unknown"),
        ("[12.3] python3[77]: segfault at 8 ip 00007f sp 00007f error 4 in libcuda.so.1", "exited-or-crashed", "unknown"),
        ("[node1:31714:0] ib_mlx5_log.c:113  UCX  ERROR Error on QP 0x61f5: Transport retry count exceeded (synd 0x15)",
         "unknown", "network-transport"),
        ("Waiting for 1 local, 0 remote core engine proc(s) to start", "ipc-queue", "unknown"),
        ("Memory cgroup out of memory: Killed process 4711 (python3) oom-kill", "exited-or-crashed", "other"),
        ("[2025-06-22 17:13:55 TP3] Watchdog timeout (self.watchdog_timeout=300)", "unknown", "unknown"),
        ("double free or corruption (!prev)", "exited-or-crashed", "other"),
        ("panic: runtime error: invalid memory address or nil pointer dereference", "exited-or-crashed", "other"),
        ("systemd[1]: x.service: Main process exited, code=killed, status=9/KILL", "exited-or-crashed", "unknown"),
        ("Abort(1090319) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Init", "exited-or-crashed", "unknown"),
        ("Worker 3 died unexpectedly with exit code -9", "exited-or-crashed", "unknown"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "exited-or-crashed", "other"),
        ("ggml/src/ggml-backend.cpp:1367: GGML_ASSERT(n_inputs < GGML_SCHED_MAX_SPLIT_INPUTS) failed", "exited-or-crashed", "other"),
        ("HIP error: hipErrorIllegalAddress(700)", "cuda-error-throw", "gpu-fault"),
        ("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!", "cuda-error-throw", "other"),
        ("run.sh: line 30: 41234 Killed                  python train.py", "exited-or-crashed", "other"),
        ("kernel: NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "*", "gpu-fault"),
        ("NVRM: GPU0 nvAssertFailedNoLog: Assertion failed: (status == NV_OK) @ rs_client.c:844", "*", "unknown"),
        ("The server socket has failed to listen on any local network address. port: 29500", "store-wait", "init-rendezvous"),
        ("==4711== Invalid read of size 8", "exited-or-crashed", "other"),
        ("Found one Java-level deadlock:", "mutex", "lock-order-deadlock"),
        ("[12.3] WARNING: possible circular locking dependency detected", "mutex", "lock-order-deadlock"),
        ("WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=7)", "mutex", "lock-order-deadlock"),
        ("[mutex.cc : 1384] RAW: Potential Mutex deadlock: ", "mutex", "lock-order-deadlock"),
        ('==7== Thread #1: lock order "0xFFEFFFAB0" before "0xFFEFFFAA0" violated', "mutex", "lock-order-deadlock"),
        ("terminate called: what(): Resource deadlock avoided", "*", "lock-order-deadlock"),
        ("2021-11-27 ERROR deadlock | 1 deadlocks detected", "mutex", "lock-order-deadlock"),
        ("_frozen_importlib._DeadlockError: deadlock detected by _ModuleLock('a')", "*", "lock-order-deadlock"),
        ("Fatal Python error: could not acquire lock for <_io.BufferedWriter name='<stderr>'> at interpreter shutdown",
         "exited-or-crashed", "destructor-or-teardown"),
        ("NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, diff 6070 timeout 5200", "*", "gpu-fault"),
        ("a:7:8 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in", "*",
         "init-rendezvous"),
        ("fatal error: all goroutines are asleep - deadlock!", "exited-or-crashed", "other"),
        ("[0] NVSHMEM ERROR: /src/ibrc.cpp:1120: non-zero status: 7 ep create failed", "exited-or-crashed", "network-transport"),
        ("KeyError: 'lm_head.weight'", "exited-or-crashed", "other"),
        ("ValueError: rank 3 timed out waiting for its peer", "exited-or-crashed", "unknown"),
        ("python: symbol lookup error: ./libtorch_cuda.so: undefined symbol: ncclCommSplit", "exited-or-crashed", "other"),
        ("[1]    7302 abort      text-embeddings-router --port 8001", "exited-or-crashed", "unknown"),
        ("subprocess.CalledProcessError: Command 'python train.py' died with <Signals.SIGABRT: 6>.", "exited-or-crashed", "unknown"),
        ("CUDA Exception: Warp Out-of-range Address", "cuda-error-throw", "gpu-fault"),
        ("[230.864069] amdgpu 0000:65:00.0: amdgpu:  Process app pid 70131 thread worker pid 70175", "cuda-error-throw", "gpu-fault"),
        ("socketProgressOpt: Call to recv from 10.0.0.7<33759> failed : Connection reset by peer", "*", "missing-rank"),
        ("[rank0]:   - [2] finished collective #10, but didn't join collective #11 (count from 1)", "*", "missing-rank"),
        ("horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one "
         "of the ranks or an attempt to allreduce", "exited-or-crashed", "missing-rank"),
        ("F0101 client.h:80] Terminating process because the JAX distributed service detected fatal errors.", "*",
         "missing-rank"),
        ('[rank2]:[W ProcessGroupNCCL.cpp:1662] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server '
         'has shut down too early), with error: Broken pipe', "store-wait", "unknown"),
        ("[1612.1] [n:1:0] UCX  ERROR Not enough memory to write. Please check that /dev/shm or the directory has more.", "*",
         "shm-too-small"),
        ("It appears as if there is not enough space for /tmp/x/vader.0 (the shared-memory backing", "*", "shm-too-small"),
        ("n:1:2 [0] net_socket.cc:5 NCCL WARN NET/Socket : peer 10.0.0.2<4> message truncated : receiving 4096 bytes instead "
         "of 1024.", "nccl-group-launch", "collective-mismatch"),
        ("EI0005: The arguments for collective communication are inconsistent between ranks: tag [a]", "*",
         "collective-mismatch"),
        ("n:1:2 [0] bootstrap.cc:9 NCCL WARN Bootstrap Root : mismatch in rank count from procs 8 : 16", "nccl-init",
         "init-rendezvous"),
        ("RuntimeError: [gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: ib9", "*",
         "network-transport"),
        ("n:1:2 [0] net_ib.cc:9 NCCL WARN NET/IB : mlx5_0:1 Got async fatal event: local catastrophic error", "*",
         "network-transport"),
        ("E0101 rdma_endpoint.cpp:300] [Handshake] Failed to modify QP to RTR, check mtu, gid", "*", "network-transport"),
        ("mlx5_core 0000:3b:00.0: poll_health:797: device's health compromised - reached miss count", "*",
         "network-transport"),
        ("At least one pair of MPI processes are unable to reach each other for MPI communications.", "mpi",
         "network-transport"),
        ("RuntimeError: CUDA error: peer access is not supported between these two devices", "*", "p2p-or-topology"),
        ("amdgpu 0000:43:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block", "*", "gpu-fault"),
        ("ray.exceptions.ActorDiedError: The actor is dead because its node has died.", "exited-or-crashed", "missing-rank"),
        ("slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***", "*",
         "missing-rank"),
        ("[2026-01-01] [launch.py:321:sigkill_handler] exits with return code = -9", "exited-or-crashed", "other"),
        ("[2026-01-01] [launch.py:321:sigkill_handler] exits with return code = 1", "exited-or-crashed", "unknown"),
        ("Primary job  terminated normally, but 1 process returned a non-zero exit code.", "exited-or-crashed", "unknown"),
        ("RuntimeError: CUDA error: system not yet initialized", "*", "other"),
        ("RuntimeError: DataLoader worker (pid(s) 4711) exited unexpectedly", "exited-or-crashed", "other"),
        ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python:4711]", "unknown", "unknown"),
        ("huggingface/tokenizers: The current process just got forked, after parallelism has already been used.", "unknown",
         "unknown"),
        ("[2026-01-01] Detokenizer hit an exception: Traceback", "exited-or-crashed", "unknown"),
        ("E0000 coordination_service_agent.cc:700] Polled an error from coordination service", "store-wait", "unknown"),
        ("tensor x: enforce fail at pair.cc:431] op.preamble.length <= op.nbytes. 8 vs 4 RuntimeError: x", "*", "collective-mismatch"),
    ],
)  # fmt: skip
def test_a_line_alone(line, kind, cause):
    found = answer(line + "\n")
    assert found.verdict.cause == cause, found.verdict.summary
    assert found.verdict.confidence != "high"
    if kind != "*":
        assert found.processes[0].wait.kind == kind
        assert found.verdict.decisive_process == 0


def test_a_text_that_names_nobody_is_the_log_of_one_process():
    text = "starting\nterminate called after throwing an instance of 'std::runtime_error'\n  what(): CUDA error: out of memory\n"
    (process,) = answer(text).snapshot.processes
    assert (process.rank, process.pid, process.threads) == (None, None, ())
    assert len(process.said) == 2


def test_the_kernels_lines_about_the_gpu_alone_are_of_no_process():
    assert answer("amdgpu 0000:c1:00.0: amdgpu: Failed to evict queue 3\n").snapshot.processes == ()


def test_processes_of_lines_that_are_no_evidence():
    text = (
        "node1:2144:2556 [2] NCCL INFO Ring 00 : 2[3d000] -> 3[3e000] via direct shared memory\n"
        "node1:2143:2561 [1] NCCL INFO comm 0x7f rank 1 nranks 4 cudaDev 1 busId 1b000 - Init START\n"
        "node1:2143:2561 [1] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n"
    )
    found = answer(text)
    assert [(one.pid, one.rank) for one in found.snapshot.processes] == [(2144, 2), (2143, 1)]
    assert (found.verdict.cause, found.verdict.culprits) == ("shm-too-small", (1,))


def test_rank_and_pid_of_one_line_are_of_one_process():
    text = (
        "WARNING:torch.distributed.elastic:Sending process 11 closing signal SIGTERM\n"
        "ERROR:torch.distributed.elastic:failed (exitcode: -11) local_rank: 1 (pid: 12) of binary: python\n"
        "Root Cause: exitcode  : -11 (pid: 12)\n"
    )
    found = answer(text)
    assert [(one.pid, one.rank) for one in found.snapshot.processes] == [(11, None), (12, 1)]
    assert found.verdict.decisive_process == 1
    assert "The launcher saw a rank exit" in found.verdict.summary


def test_vllms_prefix_with_rank_or_groups():
    for prefix in (
        "(Worker_TP1 pid=31)",
        "(VllmWorker rank=1 pid=31)",
        "(VllmWorker TP1 pid=31)",
        "(Worker pid=31, ip=10.0.0.7)",
    ):
        (process,) = answer(
            f"{prefix} ERROR RuntimeError: CUDA error: an illegal memory access was encountered\n"
        ).snapshot.processes
        assert process.pid == 31


def test_the_place_of_a_logger_is_no_host_with_its_pid():
    lines = "".join(f"ERROR [core.py:{line}] torch.OutOfMemoryError: CUDA out of memory\n" for line in (11, 12))
    (process,) = answer(lines).snapshot.processes
    assert process.pid is None


def test_a_rank_that_a_line_accuses_is_a_process_beside_the_stacks():
    stack = 'Traceback (most recent call last):\n  File "core.py", line 7, in run\n    wait()\n'
    found = answer(f"ERROR Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n{stack}")
    assert [(one.rank, len(one.threads)) for one in found.snapshot.processes] == [(None, 1), (1, 0)]
    assert (found.verdict.cause, found.verdict.culprits) == ("missing-rank", (1,))


def test_all_ranks_that_lines_of_one_kind_accuse_are_blamed():
    tasks = "".join(f"/job:jax_worker/replica:0/task:{number}\n" for number in (3, 1))
    found = answer(f"DEADLINE_EXCEEDED: Barrier timed out. Timed out task names:\n{tasks}")
    assert sorted(found.snapshot.processes[one].rank for one in found.verdict.culprits) == [1, 3]
    found = answer("ERROR controller: ranks [2, 5] have not reported for 600 s\n")
    assert sorted(found.snapshot.processes[one].rank for one in found.verdict.culprits) == [2, 5]


_GIVEN_UP = (
    "[rank0]:[E512 10:11:12 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds\n"
)


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        ("ValueError: no batch", "missing-rank"),
        ("RuntimeError: Connection closed by peer [10.0.0.1]:50", "missing-rank"),
    ],
)
def test_a_rank_that_died_while_the_others_timed_out(last, cause):
    lines = ("Traceback (most recent call last):", '  File "train.py", line 9, in step', "    f()", last)
    found = answer("".join(f"[rank1]: {line}\n" for line in lines) + _GIVEN_UP)
    ranks = [found.snapshot.processes[one].rank for one in found.verdict.culprits]
    assert found.verdict.cause == cause
    assert ranks == ([1] if "batch" in last else []), "who lost its peer is no culprit"


def test_an_assertion_on_a_dying_stack_is_a_cause():
    def dump(check):
        frames = ("raise", "abort", check, "engine::step")
        lines = (
            f"#{number}  0x00007f11d3a9eb{number:02x} in {name} () from x.so" for number, name in enumerate(frames)
        )
        return "Program terminated with signal SIGABRT, Aborted.\n" + "\n".join(lines) + "\n"

    assert answer(dump("__assert_fail")).verdict.cause == "other"
    assert answer(dump("std::terminate")).verdict.cause == "unknown"
    assert answer(dump("ggml_cuda_error")).verdict.cause != "other"


def test_what_stands_before_a_traceback_on_its_line():
    found = answer(
        '[2025-05-19 22:22:28 TP3] Scheduler hit an exception: Traceback (most recent call last):\n  File "a.py", line 2, in f\n    q.get()\n'
    )
    assert found.processes[0].wait.kind == "exited-or-crashed"


def test_lines_under_a_heading_are_of_its_process():
    found = answer("rank 2:\n\nRuntimeError: Lack of device memory\n")
    assert [process.rank for process in found.snapshot.processes] == [2]


def test_sets_of_ranks_that_wait_for_different_operations():
    text = "WARNING: stalled. Stalled ops: loss_0 [ready ranks: 3], grad_1 [ready ranks: 2, 0, 1], grad_2 [ready ranks: 0, 1, 2]\n"
    found = answer(text)
    assert (found.verdict.cause, found.verdict.culprits) == ("collective-mismatch", (3,))
    same = "WARNING: stalled. Stalled ops: loss_0 [ready ranks: 0, 3], grad_1 [ready ranks: 3, 0, 1]\n"
    verdict = answer(same).verdict  # some rank has not submitted what others have; no line says which
    assert (verdict.cause, verdict.confidence, verdict.culprits) == ("missing-rank", "low", ())


def test_a_death_is_a_missing_rank_only_where_somebody_waits():
    line = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup.\n"
    assert answer(line).verdict.cause == "other"
    others = "".join(f"[rank{n}]: RuntimeError: Connection closed by peer [10.0.0.1]:50\n" for n in (0, 1))
    assert answer(others + line).verdict.cause == "missing-rank"


@pytest.mark.parametrize(
    "other",
    [
        "[E ProcessGroupNCCL.cpp:475] Some NCCL operations have failed or timed out. Watchdog caught collective operation timeout",
        "(EngineCore pid=12) ERROR [core.py:1] TimeoutError: RPC call to execute_model timed out.",
    ],
)
def test_who_waited_for_others_in_vain_did_not_die_of_itself(other):
    thrown = "terminate called after throwing an instance of 'std::runtime_error'\n"
    assert answer(thrown).verdict.cause == "other"
    assert answer(f"{other}\n{thrown}").verdict.cause == "unknown"


def test_an_error_beside_a_thread_that_lives_is_none_of_its_own():
    """The line was logged and handled: the process went on to wait."""
    stack = "Thread 1 (LWP 11):\n#0  0x00007f11d3a9eb1c in __lll_lock_wait () from libc.so.6\n#1  0x00007f11d3a9eb1d in f () from a.so\n"
    found = answer(f"2026-01-01 torch.OutOfMemoryError: CUDA out of memory, trying a smaller batch\n{stack}")
    assert found.verdict.cause == "unknown"


@pytest.mark.parametrize(
    ("text", "id", "kind"),
    [
        ("Windows fatal exception: access violation\n\nCurrent thread 0x00004f2c (most recent call first):\n"
         '  File "a.py", line 3 in f\n', "0x00004f2c", "exited-or-crashed"),
        ("* thread #5, stop reason = EXC_BAD_ACCESS (code=1, address=0x8)\n  * frame #0: 0x0000000109 App`run() + 4\n",
         "5", "exited-or-crashed"),
        ("* thread #1, stop reason = EXC_BREAKPOINT\n  * frame #0: 0x0000000109 libsystem_kernel.dylib`__psynch_mutexwait + 4\n",
         "1", "mutex"),
        ("12:00:01 READ of size 8 at 0x61600360d04a thread T6\n"
         "12:00:01     #0 0x7fab8387d463 in pool::run() /src/pool.h:571:26\n"
         "12:00:01 freed by thread T0 here:\n12:00:01     #0 0x76a4420fe8 in free (/usr/lib/libasan.so.8+0x5eb69)\n",
         "T6", "exited-or-crashed"),
    ],
    ids=["windows", "lldb", "lldb-stopped", "sanitizer-with-clock"],
)  # fmt: skip
def test_the_thread_that_a_tool_says_died(text, id, kind):
    (process,) = answer(text).snapshot.processes
    assert [thread.id for thread in process.threads] == [id]
    assert answer(text).processes[0].wait.kind == kind


@pytest.mark.parametrize("line", ["step 12 loss 0.3", "INFO server started on port 8000", "loading weights 42 % done"])
def test_ordinary_lines_are_no_evidence(line):
    assert log_evidence(line) is None


def test_the_elastic_agents_table_of_failures():
    text = (
        "Root Cause (first observed failure):\n[0]:\n  time      : 2024-05-01_10:00:01\n  host      : node1\n"
        "  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 4711)\n  error_file: <N/A>\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 4711\n"
    )
    (process,) = answer(text).snapshot.processes
    assert (process.rank, process.pid, len(process.said)) == (3, 4711, 2)


def test_the_task_that_the_coordination_service_lost():
    text = (
        "F xla/client.h:80] Terminating process because the JAX distributed service detected fatal errors.\n"
        "/job:jax_worker/replica:0/task:3\n"
    )
    found = answer(text)
    (lost,) = (one for one in found.snapshot.processes if one.rank == 3)
    assert (found.verdict.cause, found.verdict.culprits) == ("missing-rank", (lost.index,))


def test_a_task_that_the_kernel_found_blocked():
    text = (
        "INFO: task python3:4711 blocked for more than 120 seconds.\n"
        "task:python3         state:D stack:    0 pid: 4711 ppid:     1 flags:0x4\n"
        " rwsem_down_write_slowpath+0x2d0/0x5c0\n nvidia_ioctl+0x12/0x34 [nvidia]\n"
    )
    (process,) = answer(text).snapshot.processes
    assert [(one.id, one.name, len(one.frames)) for one in process.threads] == [("4711", "python3", 2)]


def test_every_process_that_says_how_it_died_counts():
    lines = [
        f"[node1:{pid}:0:{pid + 9}] Caught signal 7 (Bus error: nonexistent physical address)\n" for pid in (41, 52)
    ]
    found = answer("".join(lines))
    assert [(one.pid, judged.wait.kind) for one, judged in zip(found.snapshot.processes, found.processes)] == [
        (41, "sigbus"),
        (52, "sigbus"),
    ]


def test_horovods_list_behind_its_launchers_prefix():
    stall = "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and waiting"
    text = (
        f"[0] [2026-01-26 03:23:58.477178: W /src/horovod/common/stall_inspector.cc:107] {stall}\n[0] Missing ranks:\n"
    )
    found = answer(text + "[0] 1: [broadcast.assign_bias, broadcast.assign_weight]\n")
    assert found.verdict.cause == "missing-rank" and "rank 1" in found.verdict.summary
