"""What is said of one pasted stack, or of one log: no more than it shows."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.cli.main import main
from gdbext.parsers import parse_files

SEGFAULT = "[node1:1615 :6:1738] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)\n"


def summary_of(text):
    return judge(parse_files([("text", text.encode())])).verdict.summary


@pytest.fixture
def printed(tmp_path, capsys):
    def of(text, *options):
        path = tmp_path / "text.txt"
        path.write_text(text)
        main(["diagnose", "-q", *options, str(path)])
        return capsys.readouterr().out

    return of


def test_one_stack_has_no_table(printed):
    stack = "#0  read () from /lib/libc.so.6\n#1  0x0000000000401136 in load (path=0x0) at load.cc:12\n"
    assert printed(stack).startswith("unknown: ")
    assert "waits in" in printed(stack, "-v")
    two = f"Thread 1 (LWP 7):\n{stack}\nThread 2 (LWP 8):\n{stack}"
    assert "waits in" in printed(two)


@pytest.mark.parametrize(
    "frames, said",
    [
        (
            "    ncclCommWindowRegister (pynccl_wrapper.py:540)\n    forward (model.py:9)\n",
            "registers a buffer with a communicator in ncclCommWindowRegister",
        ),
        (
            "    fetch_registered_method (ray/_private/function_manager.py:248)\n"
            "    _wait_for_function (ray/_private/function_manager.py:428)\n"
            "    main_loop (ray/_private/worker.py:887)\n",
            "has a Ray task and waits for the task's function to be exported",
        ),
        (
            "    spawnv_passfds (multiprocessing/util.py:452)\n"
            "    ensure_running (multiprocessing/resource_tracker.py:129)\n",
            "is in spawnv_passfds (multiprocessing/util.py:452), which starts a child process",
        ),
        (
            "    inner (tqdm/utils.py:195)\n    warmup (serve.py:9)\n",
            "sleeps in inner (tqdm/utils.py:195), called from warmup (serve.py:9). The text does not show the native "
            "call in which it sleeps",
        ),
        (
            "    show (bars.py:246)\n    run (multiprocessing/process.py:108)\n"
            "    _launch (multiprocessing/popen_fork.py:75)\n    main (train.py:7)\n",
            "The process is a forked child: a lock that another thread held in the parent at the time of the fork",
        ),
        (
            "    all_reduce (torch/distributed/distributed_c10d.py:2500)\n    step (train.py:7)\n",
            "The text does not show which rank, if any, has not reached this call.",
        ),
    ],
)
def test_what_a_call_is_by_its_own_definition(frames, said):
    assert said in summary_of(f'Thread 7 (idle): "MainThread"\n{frames}')


def test_only_who_sleeps_is_said_to_sleep():
    assert "sleeps" not in summary_of('Thread 7 (active): "MainThread"\n    inner (tqdm/utils.py:195)\n')


def test_the_gil_and_an_initializer_of_c_plus_plus():
    guard = "#0  syscall () from /lib64/libc.so.6\n#1  __cxa_guard_acquire () from /lib64/libstdc++.so.6\n"
    extension = "#2  resolver () from /lib/libusd.so\n#3  enter () from /python/pxr/Ar/{}\n"
    gil = (
        "#0  futex_wait () from /lib64/libc.so.6\n#1  take_gil (tstate=0x1) at Python/ceval_gil.h:231\n#2  os_stat ()\n"
    )
    text = f"Thread 25 (LWP 25):\n{guard}{extension}\nThread 1 (LWP 1):\n{gil}"
    assert "waits for Python's GIL that thread 25 holds" in summary_of(text.format("_ar.so"))
    assert "thread 25" not in summary_of(text.format("libusd_ar.so")), "no module of Python"


@pytest.mark.parametrize("inside", ["__gthread_join (gthr-default.h:715)", "pthread_join (libc.so.6)"])
@pytest.mark.parametrize(
    "outside, said",
    [
        ("dlopen (libc.so.6)", "with the dynamic loader's lock held: if the other thread loads a library too"),
        ("main (main.cc:7)", "The text does not show which thread that is."),
    ],
)
def test_a_join_says_whether_the_loader_waits_too(inside, outside, said):
    frames = f"    {inside}\n    std::thread::join (thread.cc:134)\n    start (plugin.cpp:10)\n    {outside}\n"
    summary = summary_of(f'Thread 7 (idle): "MainThread"\n{frames}')
    assert "waits for another thread to end, in start (plugin.cpp:10)." in summary and said in summary


def test_ranks_in_one_operation_with_different_sizes():
    line = (
        "[rank{0}]:[E318 11:39:53 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=610, OpType=COALESCED, NumelIn={1}, NumelOut={1}, Timeout(ms)=600000) ran for 600086 ms\n"
    )
    different = summary_of(line.format(4, 56320) + line.format(6, 76800))
    assert "different input sizes: 56,320 elements on rank 4, 76,800 elements on rank 6" in different
    assert "look first at the ranks that are not named here" in summary_of(line.format(4, 8) + line.format(6, 8))


@pytest.mark.parametrize(
    "stack, place",
    [
        (  # the program's handler, the return from it, then what it interrupted
            "Signal (11) received.\n 0# 0x000055E8DE419EB9 in server\n 1# 0x00007F730E156210 in /lib/libc.so.6\n"
            " 2# 0x00007F730EADE44F in /opt/libengine.so\n 3# EngineSend in /opt/libengine.so\n",
            "an unnamed function of libengine.so, called from EngineSend",
        ),
        (  # UCX's handler, then a program without symbols, by its name alone
            f"{SEGFAULT}==== backtrace (tid:   1738) ====\n"
            " 0  /opt/lib/libucs.so.0(ucs_handle_error+0x155) [0x7f859b87e7b5]\n"
            " 1  /opt/lib/libucs.so.0(+0x2db51) [0x7f859b87eb51]\n 2  huge_ctr(+0x21ea6a) [0x557f79ddfa6a]\n"
            " 3  /lib/libpthread.so.0(+0x9609) [0x7f85c9b3f609]\n 4  /lib/libc.so.6(clone+0x43) [0x7f85c8e0b293]\n",
            "in an unnamed function of huge_ctr",
        ),
        (  # abseil tells the function that the signal hit, and no frame has a name
            "*** SIGSEGV received at time=1722289279 on cpu 61 ***\nPC: @     0x7f0c7472944a  (unknown)  addProxyOp()\n"
            "    @     0x7f3c804b6090  1954032864  (unknown)\n    @        0x100000001  (unknown)  (unknown)\n",
            "died of SIGSEGV in addProxyOp",
        ),
    ],
)
def test_where_a_signal_hit(stack, place):
    assert place in summary_of(stack)


@pytest.mark.parametrize(
    "text",
    [
        "terminate called after throwing an instance of 'std::runtime_error'\n  what():  check failed\n"
        " --- /opt/libcard.so(+0x2bad8b) [0x7316fc4bad8b]\n",
        "==== backtrace (tid:  17620) ====\n"
        " 0 0x000000000002577f uct_ib_mlx5_completion_with_err()  /src/ib_mlx5_log.c:162\n"
        " 1 0x000000000003875a uct_worker_progress()  /src/uct/api/uct.h:2589\n",
    ],
)
def test_what_was_printed_at_the_end_of_a_process_is_no_wait(text):
    answer = judge(parse_files([("text", text.encode())]))
    assert answer.processes[0].wait.kind == "exited-or-crashed"


def test_a_traceback_that_ends_in_its_exception_is_over():
    text = (
        "Traceback (most recent call last):\n"
        '  File "/opt/torch/distributed/distributed_c10d.py", line 2615, in broadcast_object_list\n'
        "    torch.cuda.synchronize()\nRuntimeError: ACL stream synchronize failed.\n"
    )
    said = summary_of(text)
    assert "and failed there (RuntimeError: ACL stream synchronize failed). The traceback does not show what" in said
    advice = judge(parse_files([("text", text.encode())])).verdict.remedies[0].action
    assert advice.startswith("At the next hang: ")


def test_processes_that_died_alike_do_not_wait():
    ray = "".join(
        f"(Actor pid={pid}) *** SIGABRT received at time=1 on cpu 4 ***\n"
        f"(Actor pid={pid})     @     0x7f45b8a0a630  1485872944  (unknown) [repeated 28x across cluster]\n"
        for pid in (5823, 6149)
    )
    assert summary_of(ray).startswith("Pid 5823 and pid 6149 died in code without symbols.")
    assert "Ray left out" not in summary_of(ray)  # a count of frames is none of processes


def test_lines_of_deaths_that_ray_left_out_are_counted():
    ray = "".join(
        f"(Actor pid={pid}) *** SIGABRT received at time=1 on cpu 4 *** [repeated {times}x across cluster]\n"
        f"(Actor pid={pid})     @     0x7f45b8a0a630  1485872944  (unknown) [repeated 28x across cluster]\n"
        for pid, times in ((5823, 14), (6149, 13))
    )
    found = judge(parse_files([("text", ray.encode())])).verdict
    assert "it counted 14 like that of pid 5823 and 13 like that of pid 6149, so more" in found.summary
    assert "RAY_DEDUP_LOGS=0" in found.remedies[0].action


CHILD_ENDED = "{0}Process SpawnProcess-2:\n{0}Traceback (most recent call last):\n"


@pytest.mark.parametrize(
    "prefix, says",
    [
        ("(Actor pid=51155) ", "SpawnProcess-2, a child process of pid 51155, died. The exception itself is not in"),
        ("", "The child process SpawnProcess-2 died. The exception itself is not in the text."),
    ],
)
def test_a_child_of_multiprocessing_that_died_is_not_its_parent(prefix, says):
    said = summary_of(CHILD_ENDED.format(prefix))
    assert said.startswith(says)
    assert ("whether pid 51155 itself has ended" in said) == bool(prefix)


@pytest.mark.parametrize(
    "line, said",
    [
        ("2 pending requests in pool 0", "MPICH lists requests that have been pending"),
        ("[ring] Too many send/recv errors. Aborting...", "MLX's ring backend gave up"),
        (
            "libfabric:451707:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address",
            "A libfabric provider reported a failed operation",
        ),
        ("src/host/init/init.cu:nvshmemi_check_state_and_init:1117: nvshmem initialization failed, exiting", "NVSHMEM"),
        (
            "E external/xla/xla/service/slow_operation_alarm.cc:140] The operation took 2m12.8s",
            "slow compilation has finished",
        ),
        ("Call to ibv_modify_qp failed with error Invalid argument", "The RDMA driver rejected the parameters"),
    ],
)
def test_lines_of_progress_watches(line, said):
    assert said in summary_of(line)
