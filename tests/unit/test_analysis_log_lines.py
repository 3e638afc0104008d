"""Log lines are evidence, and sometimes the whole answer."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

GROUP = "[PG ID 0 PG GUID 0(default_pg) Rank {0}]"
TIMEOUT = (
    "[rank{0}]:[E305 11:02:33.041 ProcessGroupNCCL.cpp:629] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={1}, OpType={2}, NumelIn={3}, NumelOut={3}, Timeout(ms)=600000) ran for 600029 milliseconds.\n"
)
PROGRESS = (
    "[rank{0}]:[E305 11:02:33.051 ProcessGroupNCCL.cpp:2168] " + GROUP + "  failure detected by watchdog at work "
    "sequence id: {1} PG status: last enqueued work: {2}, last completed work: {3}\n"
)
STACK = "#0  0x00007ffd1 in clock_gettime ()\n#1  0x00007ffd2 in cudaStreamSynchronize () from libcudart.so.12\n"


def answer(text):
    return judge(parse_files([("log.txt", text.encode())]))


def blamed(diagnosis):
    return [diagnosis.snapshot.processes[index].rank for index in diagnosis.verdict.culprits]


def test_a_rank_that_never_enqueued_what_the_others_wait_for():
    log = "".join(
        TIMEOUT.format(rank, 812, "ALLREDUCE", 4096) + PROGRESS.format(rank, 812, 812, 811) for rank in (1, 2)
    )
    found = answer(log + PROGRESS.format(0, 812, 811, 811))
    assert (found.verdict.cause, blamed(found)) == ("missing-rank", [0])
    assert "Rank 0" in found.verdict.summary and "812" in found.verdict.summary


def test_equal_progress_blames_nobody():
    log = "".join(
        TIMEOUT.format(rank, 812, "ALLREDUCE", 4096) + PROGRESS.format(rank, 812, 812, 811) for rank in (0, 1)
    )
    assert answer(log).verdict.cause == "unknown"


def test_the_rank_that_stopped_first_in_its_group_is_named():
    log = TIMEOUT.format(0, 126, "BROADCAST", 64) + TIMEOUT.format(3, 122, "BROADCAST", 64)
    summary = answer(log).verdict.summary
    assert "Rank 3 is furthest behind: rank 0 got past SeqNum 122. Look at rank 3 first." in summary
    assert "It did make that call" not in summary  # that is known only where its counters tell
    counted = answer(log + PROGRESS.format(3, 122, 128, 121)).verdict.summary
    assert "It did make that call, so it may wait for the network or for a rank that is not named here." in counted
    # the two sides of a transfer have numbers of their own
    pair = TIMEOUT.format(0, 126, "SEND", 64) + TIMEOUT.format(3, 122, "RECV", 64)
    assert "furthest behind" not in answer(pair).verdict.summary


@pytest.mark.parametrize(
    "sides, cause",
    [
        ((("ALLREDUCE", 64), ("ALLREDUCE", 64), ("_ALLGATHER_BASE", 64)), "collective-mismatch"),
        ((("ALLREDUCE", 64), ("ALLREDUCE", 64), ("ALLREDUCE", 128)), "collective-mismatch"),
        ((("ALLTOALL_BASE", 64), ("ALLTOALL_BASE", 128), ("ALLTOALL_BASE", 32)), "unknown"),
        ((("SEND", 64), ("RECV", 64), ("RECV", 64)), "unknown"),
    ],
)
def test_operations_of_one_number(sides, cause):
    found = answer("".join(TIMEOUT.format(rank, 41, *side) for rank, side in enumerate(sides)))
    assert found.verdict.cause == cause, found.verdict.summary
    assert blamed(found) == ([2] if cause != "unknown" else [])


@pytest.mark.parametrize(
    "line, cause",
    [
        ("w3:55:901 [3] net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.14<42519> with status=12",
         "network-transport"),
        ("w3:55:901 [3] NCCL WARN socketStartConnect: Connect to 10.0.0.9<40001> failed : No route to host",
         "network-transport"),
        ("w3:55:901 [3] NCCL WARN Call to recv from 10.0.0.9<40001> failed : Connection reset by peer", "missing-rank"),
        ("w3:55:901 [3] NCCL WARN Could not enable P2P between dev 0(=1a000) and dev 1(=1b000)", "p2p-or-topology"),
        ("[Sat Mar  1] NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.", "gpu-fault"),
        ("w3:55:901 [3] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)",
         "shm-too-small"),
        ("RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: X",
         "collective-mismatch"),
        ("Could not acquire GIL within 300 ms on exit, possible GIL induced hang", "gil-deadlock"),
        ("torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients joined.",
         "init-rendezvous"),
        ("Ranks 1, 3 failed to pass monitoredBarrier in 60000 ms", "missing-rank"),
        ("INFO [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.", "unknown"),
    ],
)  # fmt: skip
def test_what_a_line_means(line, cause):
    found = answer(line + "\n" + STACK)
    assert found.verdict.cause == cause, found.verdict.summary
    assert any(line[30:60] in evidence.text for evidence in found.verdict.evidence)
    assert not found.snapshot.problems


def test_lines_alone_are_an_answer():
    found = answer("w3:55:901 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.14<42519> with status=12\n")
    assert found.verdict.cause == "network-transport"


def test_a_text_of_helper_threads_alone_asks_for_the_main_thread():
    stack = "#0  0x7f in poll () from /lib/libc.so.6\n#1  0x55 in ?? () from /lib/libcuda.so.1\n"
    helper = 'Thread 2 (Thread 0x7f1 (LWP 11) "cuda-EvtHandlr"):\n' + stack
    told = [remedy.action for remedy in answer(helper).verdict.remedies]
    assert told[0].startswith("Dump all threads, the main thread too, of each process of the job")
    main = "Thread 1 (LWP 10):\n#0  0x7f in pthread_mutex_lock () from /lib/libc.so.6\n#1  0x55 in run () at a.cc:3\n"
    assert not any("stack of the main thread" in remedy.action for remedy in answer(main + helper).verdict.remedies)


@pytest.mark.parametrize(("tids", "told"), [((11, 12), "Threads 11 and 12 of pid 77 failed the same"), ((11, 11), "")])
def test_threads_that_fail_the_same_assertion_share_an_object(tids, told):
    log = "".join(
        f"[node1:77:{number}:{tid}] select.c:549  Assertion `put == EMPTY' failed\n" for number, tid in enumerate(tids)
    )
    summary = answer(f"{log}==== backtrace (tid:{tids[1]}) ====\n 0  /lib/libucs.so.0(ucs_handle_error+0x4) [0x74ea]\n")
    assert ("failed the same assertion" in summary.verdict.summary) == bool(told)
    assert told in summary.verdict.summary


TIMED_OUT = "kernel: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* "
RESET = "kernel: amdgpu 0000:2f:00.0: amdgpu: GPU reset"


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            f"{TIMED_OUT}ring gfx_0.0.0 timeout, signaled seq=15, emitted seq=17\n"
            f"{TIMED_OUT}Process information: process gnome-shell pid 2594 thread gnome-shel:cs0 pid 2616\n"
            f"{RESET} begin!\nkernel: amdgpu: [drm:amdgpu_ring] *ERROR* ring kiq_2.1.0 test failed (-110)\n",
            "Work of that process did not finish on the GPU in time, so the GPU or that work hangs. Ring gfx_0.0.0 "
            'timed out. The driver then began to reset the GPU. During the reset it reported "ring kiq_2.1.0 test '
            'failed (-110)".',
        ),
        (
            f"{TIMED_OUT}ring sdma0 timeout, signaled seq=15, emitted seq=17\n{RESET} begin!\n{RESET}(2) succeeded!\n",
            "hangs. A later line says that the driver has reset the GPU.",
        ),
        (
            "[ 39.7] i915 0000:00:02.0: [drm] GPU HANG: ecode 9:1:8ed9fff2, in python [5076]\n",
            "Work did not finish on the GPU in time",
        ),
        ("radeon 0000:01:00.0: ring 0 stalled for more than 10000msec\n", "Work did not finish on the GPU in time"),
    ],
)
def test_work_that_does_not_finish_on_a_gpu_is_a_hang_and_no_fault_of_memory(log, told):
    verdict = answer(log).verdict
    assert verdict.cause == "gpu-fault" and told in verdict.summary and "a fault" not in verdict.summary
    actions = [one.action for one in verdict.remedies]
    assert "whether the driver has reset the GPU" in actions[0] and not any("dmesg" in one for one in actions)


def test_a_queue_that_cannot_be_stopped_is_probably_a_hang():
    verdict = answer("[175765.8] amdgpu 0000:c1:00.0: amdgpu: Failed to evict queue 3\n").verdict
    assert "so the GPU probably hangs" in verdict.summary
    assert "restart every job that used this GPU" in verdict.remedies[0].action


ELASTIC = (
    "W0929 13:34:39.689 23710 torch/distributed/elastic/multiprocessing/api.py:897] Sending process {} closing {}\n"
)


@pytest.mark.parametrize(
    ("signal", "told", "advised"),
    [
        ("signal SIGINT", "The launcher itself got that signal", "Find in the lines above who stopped the launcher"),
        ("signal SIGTERM", "because another one had failed or the launcher itself was told to stop", "Read the log of"),
    ],
)
def test_a_closing_signal_is_of_the_launcher_and_says_no_more_than_the_signal_does(signal, told, advised):
    found = answer("".join(ELASTIC.format(pid, signal) for pid in (23767, 23768)))
    assert found.verdict.summary.startswith("The log reports: ")  # not the logs of those that it ends
    assert told in found.verdict.summary
    assert found.verdict.remedies[0].action.startswith(advised)
    assert (found.processes[0].wait.kind == "unknown") == (signal == "signal SIGINT")


BOX = "It looks like {0}_init failed for some reason; your parallel process is\nlikely to abort.\n\n  {1} failed\n"


@pytest.mark.parametrize(
    ("call", "returned"),
    [
        ("orte_ess_init", "value Unable to start a daemon on the local node (-127) instead of ORTE_SUCCESS"),
        ("opal_shmem_base_select", "value -1 instead of OPAL_SUCCESS"),
        ("ompi_mpi_init: ompi_rte_init", '"(null)" (-43) instead of "Success" (0)'),
    ],
)
def test_a_help_box_of_open_mpi_is_told_by_the_call_and_what_it_returned(call, returned):
    found = answer(BOX.format("orte", call) + f"  --> Returned {returned}\n")
    assert found.verdict.cause == "other"
    assert f'"{call} failed --> Returned {returned}' in found.verdict.summary
    assert found.verdict.remedies[0].action.startswith("Start the program with mpirun")
    assert not found.verdict.other_errors
    peers = answer(BOX.format("mpi", "PML add procs") + '  --> Returned "Unreachable" (-12) instead of "Success" (0)\n')
    assert peers.verdict.cause == "unknown"  # that may be about another rank


TAKEN = (
    "ValueError: Free memory on device cuda:5 (65.75/178.35 GiB) on startup is less than desired GPU memory "
    "utilization (0.85, 151.6 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ("200742 (lmcache server), 112252 MiB   # on each of GPUs 4-7", "pid 200742 (lmcache server) with 112252 MiB."),
        ("4711, python3, 812 MiB\n4712, 9000 MiB", "pid 4711 (python3) with 812 MiB and pid 4712 with 9000 MiB."),
        ("", ""),
    ],
)
def test_memory_of_a_gpu_that_another_holds_is_told_with_who_does(listed, told):
    verdict = answer(f"{listed}\n{TAKEN}").verdict
    assert "(65.75/178.35 GiB)" in verdict.summary and "151.6 GiB)" in verdict.summary
    assert "something else already held memory" in verdict.summary.lower()
    assert ("The text lists " in verdict.summary) == bool(told)
    assert told in verdict.summary
    assert verdict.remedies[0].action.startswith("Stop or move what holds the memory")


def test_a_traceback_is_only_to_be_read_where_there_is_one():
    line = "ValueError: the head size 80 is not in the list\n"
    alone = answer(line).verdict.remedies[0].action
    assert alone.startswith("Find the traceback above that line in the full log")
    traceback = f'Traceback (most recent call last):\n  File "/app/run.py", line 3, in main\n    load(3)\n{line}'
    assert not any(one.action.startswith("Find the traceback") for one in answer(traceback).verdict.remedies)


@pytest.mark.parametrize(
    ("line", "advised"),
    [
        ("WARN DeviceMemoryEventHandler: Device store exhausted, unable to allocate 2138051776 bytes. Total RMM "
         "allocated is 19548107264 bytes.", "See who uses the GPU's memory"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "See who uses the GPU's memory"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "See what uses the memory that ran out"),
    ],
)  # fmt: skip
def test_a_line_about_memory_of_the_gpu_does_not_lead_to_that_of_the_host(line, advised):
    assert answer(line + "\n").verdict.remedies[0].action.startswith(advised)
