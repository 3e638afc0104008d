"""Lines with the shape of a frame that no tool's row reads, and what stands before and between them."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def processes(text):
    return parse_files([("paste.txt", text.encode())]).processes


def stack(text):
    """[(function, library or file)] of the only thread."""
    (process,) = processes(text)
    (thread,) = process.threads
    return [(frame.function, frame.module or frame.file) for frame in thread.frames]


def test_frames_of_py_spy_without_a_header():
    text = "    sched_yield (libc.so.6)\n    waitWorkFifoAvailable (enqueue.cc:745)\n    run (serve.py:12)\n"
    assert stack(text) == [("sched_yield", "libc.so.6"), ("waitWorkFifoAvailable", "enqueue.cc"), ("run", "serve.py")]


@pytest.mark.parametrize("head", ['Thread (active): "MainThread"', "Thread (idle)", 'Thread 0x7F (active) "main"'])
def test_headers_without_an_id(head):
    (process,) = processes(f"{head}\n    cuModuleLoadData (libcuda.so.1)\n")
    assert process.threads[0].frames[0].function == "cuModuleLoadData"


def test_boost():
    text = " 0# ncclGroupEnd in /usr/lib/libnccl.so.2\n 1# 0x000055F1 in ./server\n 2# main at server.cpp:31\n"
    assert stack(text) == [("ncclGroupEnd", "/usr/lib/libnccl.so.2"), (None, "./server"), ("main", "server.cpp")]


def test_rust():
    text = (
        "thread 'worker' panicked at src/engine.rs:257:76:\n"
        'called `Result::unwrap()` on an `Err` value: DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, "x")\n'
        "stack backtrace:\n"
        "   0:     0x563c3162bcc2 - std::panicking::default_hook::h0a7d57cc63374946\n"
        "   1:     0x563c2fcf9273 - engine::step\n"
        "             at /src/engine.rs:257:76\n"
    )
    assert stack(text) == [("std::panicking::default_hook", None), ("engine::step", "/src/engine.rs")]
    snapshot = parse_files([("paste.txt", text.encode())])
    answer = judge(snapshot)
    assert answer.processes[0].wait.kind == "cuda-error-throw"
    assert answer.verdict.cause == "gpu-fault"


def test_systemd_coredump():
    text = (
        "                Stack trace of thread 4711:\n"
        "                #0  0x00007f1c8aa9e9fc pthread_kill (libc.so.6 + 0x969fc)\n"
        "                #1  0x00007f1c8aa4a476 n/a (libcuda.so.1 + 0x42476)\n"
    )
    (process,) = processes(text)
    assert [(frame.function, frame.module) for frame in process.threads[0].frames] == [
        ("pthread_kill", "libc.so.6"),
        (None, "libcuda.so.1"),
    ]
    assert process.threads[0].id == "4711"


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("main -> run_step -> ncclAllReduce -> sched_yield", "sched_yield"),
        ("`poll <- wait_for_work <- engine::loop`", "poll"),
        ("stack:  dup_mmap → dup_mm → copy_process → do_syscall_64", "dup_mmap"),
        ("futex_wait → std::mutex::lock → serve::cache_get", "futex_wait"),
    ],
)
def test_a_chain_of_arrows_has_its_wait_inside(line, inner):
    assert stack(line + "\n")[0][0] == inner


@pytest.mark.parametrize("line", ["A -> B -> C", "first build it -> then run it -> then wait", "a < b -> c", "x => y"])
def test_arrows_in_prose_are_no_stack(line):
    assert not processes(line + "\n")


def test_offsets_as_the_kernel_and_perf_print_them():
    text = "    futex_wait_queue+0x66/0xb0\n    __GI___poll+0x4f\n    libcuda.so.1`cuMemFree_v2+0x12\n"
    assert stack(text) == [("futex_wait_queue", "[kernel]"), ("__GI___poll", None), ("cuMemFree_v2", "libcuda.so.1")]


def test_a_run_of_known_names():
    assert [name for name, _ in stack("sched_yield\ncudaStreamSynchronize\nncclGroupEnd\n")] == [
        "sched_yield",
        "cudaStreamSynchronize",
        "ncclGroupEnd",
    ]


@pytest.mark.parametrize(
    "text",
    ["cutlass\n", "INFO: done\n", "compiled foo.cc in 3 s\n", "see notes (todo.py)\n",
     "WARNING: No GPU context found for ID <id> (cache.py:70)\n"],
)  # fmt: skip
def test_prose_is_no_stack(text):
    assert not processes(text)


@pytest.mark.parametrize(
    "prefix", ["[2026-02-22 08:55:59] worker-0 >> [rank3]: ", "ERROR 02-04 01:21:45 core.py:210] ", "app.7 | engine| "]
)
def test_a_prefix_that_no_row_knows(prefix):
    lines = [
        '  File "/srv/engine.py", line 202, in run',
        "    step()",
        '  File "/srv/engine.py", line 51, in step',
        "    torch.cuda.init()",
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess. Use the spawn start method",
    ]
    (process,) = processes("".join(f"{prefix}{line}\n" for line in lines))
    assert [frame.function for frame in process.threads[0].frames] == ["step", "run"]
    assert process.rank == (3 if "rank3" in prefix else None)


def test_a_traceback_behind_words():
    text = "ERROR core.py:210] EngineCore hit an exception: Traceback (most recent call last):\n"
    text += '  File "/srv/engine.py", line 202, in run\nValueError: no\n'
    (process,) = processes(text)
    assert process.threads[0].frames[0].function == "run"


def test_an_exception_ends_its_stack():
    text = 'File "a.py", line 1, in wait\nTimeoutError\n\nvs.\n\nFile "b.py", line 2, in read\nSystemError: no\n'
    (process,) = processes(text)
    assert [thread.frames[0].function for thread in process.threads] == ["wait", "read"]


def test_the_thread_that_gdb_has_selected_and_does_not_print():
    text = (
        "__lll_lock_wait (futex=futex@entry=0x5, private=0) at lowlevellock.c:52\n"
        "52\tlowlevellock.c: No such file or directory.\n\n"
        "Thread 25 (Thread 0x7f4672d5e000 (LWP 638173)):\n#0  0x00007f4672d5e001 in poll () from /lib/libc.so.6\n"
    )
    (process,) = processes(text)
    assert {thread.id: thread.frames[0].function for thread in process.threads} == {
        "25": "poll",
        "1": "__lll_lock_wait",
    }


def test_the_launchers_own_traceback_is_no_thread():
    text = (
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -7) local_rank: 1 (pid: 5621) of x\n"
        'Traceback (most recent call last):\n  File "/usr/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
        '  File "/usr/lib/python3/dist-packages/torch/distributed/run.py", line 797, in main\n    run(args)\n'
    )
    answer = judge(parse_files([("log.txt", text.encode())]))
    (process,) = answer.snapshot.processes
    assert (process.rank, process.threads) == (1, ())
    assert answer.processes[0].wait.kind == "sigbus"


def test_logs_alone_name_who_writes_and_who_is_accused():
    text = "[1,0]<stderr>:[2019-04-13: W horovod/operations.cc:588] Broadcast_0 [missing ranks: 1]\n"
    answer = judge(parse_files([("log.txt", text.encode())]))
    assert [process.rank for process in answer.snapshot.processes] == [0, 1]
    assert (answer.verdict.cause, answer.verdict.culprits) == ("missing-rank", (1,))


def test_the_rank_that_says_nothing_where_all_others_time_out():
    line = (
        "[rank{0}]:[E1122 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=118, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600001 ms\n"
    )
    answer = judge(parse_files([("log.txt", "".join(line.format(rank) for rank in (0, 1, 3)).encode())]))
    silent = next(process for process in answer.snapshot.processes if process.rank == 2)
    assert (answer.verdict.cause, answer.verdict.confidence) == ("missing-rank", "low")
    assert answer.verdict.culprits == (silent.index,)


def test_what_a_fallback_reads_is_never_more_than_low():
    text = "rank 0:\nncclAllReduce+0x10\nmain+0x4\n\nrank 1:\ncudaMallocHost+0x10\nstep+0x4\n"
    assert judge(parse_files([("paste.txt", text.encode())])).verdict.confidence == "low"


WAITS_ON_METAL = "-[_MTLCommandBuffer waitUntilCompleted]"


@pytest.mark.parametrize(
    "text",
    [
        "matmul → gpu_init → metal_init()\n  → {} → _pthread_cond_wait → __psynch_cvwait  (never returns)\n",
        "matmul -> gpu_init -> metal_init() -> {}\n  -> _pthread_cond_wait\n  -> __psynch_cvwait\n",
    ],
)
def test_a_chain_goes_on_on_a_line_that_begins_with_an_arrow(text):
    (process,) = parse_files([("note.txt", text.format(WAITS_ON_METAL).encode())]).processes
    names = [frame.function for frame in process.threads[0].calls]
    assert names == ["__psynch_cvwait", "_pthread_cond_wait", WAITS_ON_METAL, "metal_init", "gpu_init", "matmul"]
