# ruff: noqa: E501 - lines of logs are as long as they are
"""Which process and thread of a text decides, where logs name few, dumps lost their head, or only a launcher shows."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.knowledge.log_lines.last_words import CURRENT
from gdbext.parsers import parse_files


def answer(text):
    return judge(parse_files([("paste.txt", text.encode())]))


def test_the_only_process_of_a_log_decides_where_the_telling_line_names_nobody():
    log = "[2 - 7f0703e40000] {6}{gpu}: CUDA error reported on GPU 0: an illegal memory access was encountered\n"
    found = answer(log + "*** Caught a fatal signal (proc 2): SIGABRT(6)\n")
    assert (found.verdict.cause, found.verdict.decisive_process) == ("gpu-fault", 0)
    two = answer(log + "".join(f"*** Caught a fatal signal (proc {one}): SIGABRT(6)\n" for one in (2, 3)))
    told = two.snapshot.processes[two.verdict.decisive_process].said if two.verdict.decisive_process is not None else ()
    assert len(two.snapshot.processes) == 2 and (not told or "Caught" in told[0])


def test_of_two_lines_of_one_row_the_error_tells_more_than_the_remark():
    log = "n:80511:81734 [1] NCCL INFO Could not enable P2P between dev 1(=61000) and dev 0(=60000)\n"
    failed = "n:80510:81733 [0] transport/p2p.cc:276 NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported\n"
    found = answer(log + failed)
    assert found.snapshot.processes[found.verdict.decisive_process].pid == 80510
    assert answer(log).verdict.decisive_process == 0


def test_who_raised_an_exception_has_left_its_wait():
    line = "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=10, OpType=BROADCAST) ran for 1800001 ms."
    assert (
        answer(f"RuntimeError: NCCL communicator was aborted on rank 2.  {line}\n").processes[0].wait.kind
        == "exited-or-crashed"
    )
    assert answer(f"{line}\n").processes[0].wait.kind == "unknown"
    known = answer("TimeoutError: RPC call to execute_model timed out.\n")
    assert known.processes[0].wait.kind == "ipc-queue"


def test_the_kernels_line_about_a_fault_does_not_tell_where_the_process_stands():
    found = answer("NVRM: Xid (PCI:0000:01:00): 43, pid=1529519, name=train, Ch 00000008\n")
    assert (found.verdict.cause, found.processes[0].wait.kind) == ("gpu-fault", "unknown")
    assert answer("CUDA error: an illegal memory access\n").processes[0].wait.kind == "cuda-error-throw"


def test_the_kernel_names_the_process_that_it_cannot_suspend():
    found = answer("amdgpu: GPU reset begin!\n[950.8] amdgpu: Failed to suspend process pid 14368\n")
    assert found.snapshot.processes[found.verdict.decisive_process].pid == 14368


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("n:7:8 [0] create_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument", "network-transport"),
        ("NET/OFI Request 0x7f14 completed with error. RC: 113. Error: 2 (UNDELIVERABLE). Completed length: 0", "network-transport"),
        ("n:7:8 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.7.4. RC: 0", "unknown"),
        ("n:7:8 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)", "unknown"),
    ],
)  # fmt: skip
def test_an_error_of_a_network_plugin(line, cause):
    assert answer(line + "\n").verdict.cause == cause


def test_a_long_line_keeps_what_names_the_cause():
    key = "all_reduce RendezvousKey{" + "global_devices=[0, 2], " * 12 + "op_id=1}"
    line = f"E0000 rendezvous.cc:116] [id=0] This thread has been waiting for `{key}` for 20 seconds and may be stuck."
    late = " Expected 2 threads to join the rendezvous, but not all of them arrived on time."
    found = answer(line + late + "\n")
    assert found.verdict.cause == "missing-rank" and "not all of them" in found.verdict.summary
    assert found.processes[0].wait.kind == "nccl-group-launch"
    assert answer(line + "\n").verdict.cause == "unknown"


THREAD = "Thread 0x00007f01 (most recent call first):\n"
WORKER = '  File "/x/sglang/srt/managers/tp_worker_overlap_thread.py", line 131 in forward_thread_func\n'
ENDS = '  File "/usr/lib/python3.10/threading.py", line 953 in run\n  File "/usr/lib/python3.10/threading.py", line 973 in _bootstrap\n\n'
WAITS = '  File "/usr/lib/python3.10/threading.py", line 324 in wait\n  File "/x/tqdm/_monitor.py", line 60 in run\n'


def test_the_current_thread_of_a_dump_without_its_head_was_at_work():
    rest = THREAD.replace("1 ", "2 ") + WAITS + ENDS
    found = answer("Current t" + THREAD[1:] + WORKER + ENDS + rest)
    assert (found.verdict.decisive_thread, found.processes[0].wait.kind) == ("0x00007f01", "python-code")
    assert found.snapshot.processes[0].threads[0].problems == (CURRENT,)
    listed = answer(THREAD + WORKER + ENDS + rest)
    assert listed.processes[0].threads[0].helper == "engine background"


def test_a_thread_that_asked_for_the_dump_itself_stays_a_helper():
    watch = WORKER.replace("forward_thread_func", "watchdog_thread").replace("tp_worker_overlap_thread", "scheduler")
    found = answer(
        "Current t"
        + THREAD[1:]
        + watch
        + ENDS
        + THREAD.replace("1 ", "2 ")
        + WORKER.replace("forward_thread_func", "run_batch")
    )
    assert found.verdict.decisive_thread == "0x00007f02"


def test_a_dump_with_its_head_says_itself_who_died():
    found = answer("Fatal Python error: Segmentation fault\n\nCurrent t" + THREAD[1:] + WORKER + ENDS)
    assert found.processes[0].wait.kind == "exited-or-crashed"
    assert CURRENT not in found.snapshot.processes[0].threads[0].problems


def test_numbered_frames_of_python_files_are_pythons():
    stack = "#0 broadcast from /x/torch/distributed/distributed_c10d.py:2968\n#1 wrapper from /x/torch/distributed/c10d_logger.py:83\n"
    found = answer("[rank3]:[E508 ProcessGroupNCCL.cpp:733] Stack trace of the failed collective:\n" + stack)
    (thread,) = found.snapshot.processes[0].threads
    assert {frame.language for frame in thread.frames} == {"python"}
    assert found.processes[0].wait.kind == "nccl-group-launch"
    native = answer("#0  0x1 in broadcast (x=1) at src/python/broadcast.pyx:29\n#1  0x2 in main () at main.cc:8\n")
    assert {frame.language for frame in native.snapshot.processes[0].threads[0].frames} == {"native"}


LAUNCHER = 'Traceback (most recent call last):\n  File "/x/torch/distributed/launch.py", line 215, in main\n    process.wait()\n  File "/usr/lib/python3.6/subprocess.py", line 1477, in wait\n    (pid, sts) = self._try_wait(0)\n'


def test_a_launcher_is_read_where_nothing_else_is_in_the_text():
    (process,) = answer(LAUNCHER).snapshot.processes
    assert [frame.function for frame in process.threads[0].calls] == ["wait", "main"]


@pytest.mark.parametrize(
    "other",
    [
        'Traceback (most recent call last):\n  File "/x/train.py", line 3, in step\n    loss.backward()\nValueError: no\n\n',
        "ERROR:torch.distributed.elastic:failed (exitcode: -9) local_rank: 1 (pid: 5621) of x\n",
    ],
)
def test_a_launcher_beside_its_ranks_is_none_of_them(other):
    functions = [
        frame.function
        for process in answer(other + LAUNCHER).snapshot.processes
        for one in process.threads
        for frame in one.calls
    ]
    assert "wait" not in functions


def test_rays_prefix_without_a_name_and_a_narrow_frame():
    log = "(pid=40210) *** SIGSEGV received at time=1738741837 on cpu 21 ***\n(pid=40210) PC: @     0xfffb00e14a74  (unknown)  std::_Hashtable<>::find()\n"
    frames = "(pid=40210)     @     0xfffb00f1169c         32  device::count()\n(pid=40210)     @     0xffffafe8b6e4        224  (unknown)\n"
    (process,) = answer(log + frames).snapshot.processes
    assert process.pid == 40210
    assert [frame.function for frame in process.threads[0].frames] == ["device::count", None]


@pytest.mark.parametrize(
    "prefix",
    [
        "Nov 08 07:06:40 node1 ollama[2711]: ",
        "Nov 08 07:06:40 ollama[2711]: ",
        "Nov 08 07:06:40.123456 node1 ollama[2711]: ",
        "2023-11-08T07:06:40+0100 node1 ollama[2711]: ",
        "2023-11-08T07:06:40.123456+01:00 ollama[2711]: ",
        "2023-11-08T07:06:40+0100 node1 ollama: ",
    ],
)
def test_the_journal_prints_its_lines_with_a_hosts_name_or_without(prefix):
    lines = ("goroutine 7 [chan receive, 5 minutes]:", "main.main()", "\t/x/cmd/main.go:12 +0x3c")
    found = answer("".join(f"{prefix}{line}\n" for line in lines)).snapshot.processes
    pids = [(one.pid, [frame.function for frame in one.threads[0].calls]) for one in found]
    assert pids == ([(2711, ["main.main"])] if "[2711]: " in prefix else [])


def test_the_call_that_memory_hooks_pass_on_is_no_lock():
    passed = answer("#0  syscall ()\n#1  ucm_event_call_orig (event_type=UCM_EVENT_MREMAP)\n#2  main ()\n")
    assert passed.processes[0].wait.kind == "native-compute"
    waits = answer(
        "#0  __lll_lock_wait ()\n#1  pthread_mutex_lock ()\n#2  ucm_event_enter ()\n#3  ucm_munmap ()\n#4  main ()\n"
    )
    assert waits.processes[0].wait.kind == "mutex"


def spied(pid, title, *threads):
    head = f"Process {pid}: {title}\nPython v3.12.3 (/usr/bin/python3.12)\n\n"
    return (
        head + "".join(f"{name}\n" + "".join(f"    {frame}\n" for frame in frames) for name, frames in threads) + "\n"
    )


ASKS = [
    "poll (zmq/sugar/poll.py:106)",
    "dequeue (vllm/distributed/device_communicators/shm_broadcast.py:794)",
    "get_response (vllm/v1/executor/multiproc_executor.py:387)",
]
WAITS_FOR_GPU = ["synchronize (torch/cuda/streams.py:231)", "get_output (vllm/v1/worker/gpu_model_runner.py:250)"]


@pytest.mark.parametrize("turned", [False, True])
def test_an_idle_process_does_not_decide_beside_one_that_waits(turned):
    texts = [
        spied(800, "VLLM::EngineCore", ('Thread 800 (idle): "MainThread"', ASKS)),
        spied(902, "VLLM::Worker_TP0", ('Thread 902 (active): "MainThread"', WAITS_FOR_GPU)),
    ]
    found = answer("".join(reversed(texts) if turned else texts))
    assert found.verdict.decisive_thread == "902"


def test_where_all_are_idle_the_first_is_shown():
    found = answer(spied(800, "VLLM::EngineCore", ('Thread 800 (idle): "MainThread"', ASKS)))
    assert found.verdict.decisive_thread == "800"


def rank(number, *frames):
    return f'rank {number}:\nThread {100 + number} (active): "MainThread"\n' + "".join(
        f"    {frame}\n" for frame in frames
    )


REDUCES = ("all_reduce (torch/distributed/distributed_c10d.py:2924)", "train (training.py:1000)")
STOPS = ("synchronize (torch/cuda/__init__.py:803)", "stop (timers.py:115)")


def test_the_one_rank_that_stands_elsewhere_decides_where_no_cause_is_known():
    found = answer(rank(0, *REDUCES) + rank(1, *REDUCES) + rank(2, *STOPS))
    assert (found.verdict.cause, found.verdict.decisive_thread) == ("unknown", "102")
    even = answer(rank(0, *REDUCES) + rank(1, *REDUCES) + rank(2, *STOPS) + rank(3, *STOPS))
    pair = answer(rank(0, *REDUCES) + rank(1, *STOPS))
    assert even.verdict.decisive_thread == pair.verdict.decisive_thread == "100"


POOL = "_worker (concurrent/futures/thread.py:77)"
MAIN = ('Thread 16328 (idle): "MainThread"', ["join (threading.py:1089)", "<module> (run.py:83)"])
SIDE = ('Thread 22708 (idle): "Thread-8 (run)"', ["main_loop (ui.py:711)", "run (ui.py:718)"])


def test_a_thread_of_a_pool_with_a_task_is_no_helper():
    works = (
        'Thread 23512 (active): "ThreadPoolExecutor-0_0"',
        ["scale (utils.py:73)", "run (concurrent/futures/thread.py:52)", POOL],
    )
    found = answer(spied(16328, "python", MAIN, SIDE, works))
    assert (found.verdict.decisive_thread, found.processes[0].wait.kind) == ("23512", "python-code")
    rests = ('Thread 23512 (idle): "ThreadPoolExecutor-0_0"', [POOL])
    idle = answer(spied(16328, "python", MAIN, SIDE, rests))
    assert idle.processes[0].threads[2].helper == "thread pool" and idle.verdict.decisive_thread == "22708"


GETS = [
    "get (ray/_private/worker.py:2630)",
    "update_weights (trainer/ppo_trainer.py:300)",
    "main_loop (ray/_private/worker.py:870)",
]
SENDS = [
    "broadcast (torch/distributed/distributed_c10d.py:2100)",
    "to_engines (trainer/ppo_actor.py:450)",
    "main_loop (ray/_private/worker.py:870)",
]


def test_who_waits_for_the_actors_is_no_member_of_their_collective():
    driver = spied(500, "ray::main_task", ('Thread 500 (idle): "MainThread"', GETS))
    found = answer(driver + spied(501, "ray::Actor.send", ('Thread 501 (active): "MainThread"', SENDS)))
    assert (found.verdict.cause, found.verdict.culprits) == ("unknown", ())
    assert found.verdict.decisive_thread == "501", found.verdict.summary
    ranks = 'rank 0:\nThread 500 (idle): "MainThread"\n    {0}\nrank 1:\nThread 501 (active): "MainThread"\n    {1}\n'
    numbered = answer(ranks.format("\n    ".join(GETS), "\n    ".join(SENDS)))
    assert (numbered.verdict.cause, numbered.verdict.culprits) == ("missing-rank", (0,))


DIES = "[n{0}:{1} :0:{2}] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)\n"
STACK = "==== backtrace (tid: {0:6}) ====\n 0 0x0000000000058ce3 ucp_rndv_progress()  /src/ucx/rndv.c:656\n"


def test_a_stack_of_ucx_is_of_the_process_whose_thread_it_names():
    found = answer(DIES.format(1, 9192, 9218) + DIES.format(2, 17255, 17305) + STACK.format(9218))
    (one,) = (process for process in found.snapshot.processes if process.threads)
    assert (one.pid, one.threads[0].lwp) == (9192, 9218)
    assert [process.wait.kind for process in found.processes] == ["exited-or-crashed"] * 2
    other = answer(DIES.format(1, 9192, 9218) + STACK.format(7))
    assert [process.pid for process in other.snapshot.processes] == [9192], "of whoever said it last"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("free(): invalid size\n\n(gdb) where\n#0  fi_mr_free (x=0x0) at util.c:1\n#1  fi_send () at cxip.c:2\n", "exited-or-crashed"),
        ("Mon Feb 25 13:06:01 2019[1,3]<stderr>:[n1:29735:0:29735] invalid permissions for mapped object\n", "exited-or-crashed"),
        ("2026:07:16-11:18:49:621578 |CCL_ERROR| comm.hpp:1049 get: condition comm failed\n", "exited-or-crashed"),
    ],
    ids=["heap", "old UCX behind mpirun's clock", "oneCCL"],
)  # fmt: skip
def test_words_of_a_death(text, kind):
    found = answer(text)
    assert [process.wait.kind for process in found.processes] == [kind]
    assert "mapped" not in text or found.snapshot.processes[0].rank == 3


def test_a_table_of_kernels_alone_is_an_answer():
    row = "*      0      -   0 220891 Active 0x0ff1000000000000000000000002dfffff (2,1,1) (1024,1,1) combine<false, 9>()\n"
    assert "lists a kernel as running on the device" in answer("(cuda-gdb) info cuda kernels\n" + row).verdict.summary


def test_the_boxes_of_rich_are_a_traceback():
    box = (
        "╭───────── Traceback (most recent call last) ─────────╮\n"
        "│ /opt/train.py:31 in main                            │\n"
        "│                                                     │\n"
        "│   30 │   model = build()                            │\n"
        "│ ❱ 31 │   dist.barrier()                             │\n"
        "│ /opt/torch/distributed/distributed_c10d.py:4551 in barrier │\n"
        "╰─────────────────────────────────────────────────────╯\n"
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1331\n"
    )
    (process,) = answer(box).snapshot.processes
    (thread,) = process.threads
    assert [(frame.function, frame.line) for frame in thread.frames] == [("barrier", 4551), ("main", 31)]
    assert any("RuntimeError" in problem for problem in thread.problems)


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_a_place_that_rich_wraps_is_read_as_one(prefix):
    box = (
        "╭───── Traceback (most recent call last) ─────╮\n"
        "│ /usr/local/bin/accelerate:8 in <module>     │\n"
        "│                                             │\n"
        "│ in train:33                                 │\n"
        "│                                             │\n"
        "│ /opt/venv/lib/python3.10/site-packages/trans │\n"
        "│ formers/trainer.py:1537 in _inner_loop      │\n"
        "│                                             │\n"
        "│   1536 │   while True:                      │\n"
        "│ ❱ 1537 │   │   step(batch)                  │\n"
        "│                                             │\n"
        "│ /opt/torch/distributed/distributed_c10d.py:2890 in │\n"
        "│ all_reduce                                  │\n"
        "│                                             │\n"
        "│ ❱ 2890 │   work.wait()                      │\n"
        "╰─────────────────────────────────────────────╯\n"
        "KeyboardInterrupt\n"
    )
    (process,) = answer("".join(prefix + line for line in box.splitlines(keepends=True))).snapshot.processes
    (thread,) = process.threads
    assert process.rank == (3 if prefix else None)
    assert [(frame.function, frame.file, frame.line) for frame in thread.frames] == [
        ("all_reduce", "/opt/torch/distributed/distributed_c10d.py", 2890),
        ("_inner_loop", "/opt/venv/lib/python3.10/site-packages/transformers/trainer.py", 1537),
        ("train", None, 33),
        ("<module>", "/usr/local/bin/accelerate", 8),
    ]
