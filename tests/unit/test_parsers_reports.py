# ruff: noqa: E501 - lines of logs are as long as they are
"""Reports that tools print of a moment: sanitizers, gdb's machine interface, crash handlers, logs of calls, lists of people."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def read(text):
    return parse_files([("paste.txt", text.encode())])


def threads(text):
    """{id: [names of the frames]} of the only process."""
    (process,) = read(text).processes
    return {thread.id: [frame.function for frame in thread.frames] for thread in process.threads}


def test_address_sanitizer():
    text = (
        "2026-01-23 00:18:26\t==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x7d41 at pc 0x7b00 bp 0x7b3c\\n\n"
        "2026-01-23 00:18:26\tREAD of size 8 at 0x7d417d32e588 thread T80\\n\n"
        "2026-01-23 00:18:27\t    #0 0x7b00b3472c1e in record(void*) /src/plugin.cc:459\\n\n"
        "2026-01-23 00:18:27\t    #1 0x7b00fc24b697 in progress transport/profiler.cc:41\\n\n"
        "2026-01-23 00:18:27\tfreed by thread T3 here:\\n\n"
        "2026-01-23 00:18:27\t    #0 0x7b00b3472c1e in free (/lib/libasan.so+0x5eb69)\\n\n"
    )
    (process,) = read(text).processes
    (thread,) = process.threads
    assert (process.pid, thread.id, [frame.function for frame in thread.frames]) == (
        4711,
        "T80",
        ["record", "progress"],
    )
    assert judge(read(text)).processes[0].threads[0].kind == "exited-or-crashed"


def test_lock_pairs_of_the_thread_sanitizer():
    text = (
        "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=4711)\n"
        "  Cycle in lock order graph: M0 (0x7b18) => M1 (0x7b20) => M0\n\n"
        "  Mutex M1 acquired here while holding mutex M0 in thread T1:\n"
        "    #0 pthread_mutex_lock <null> (server+0x1) (BuildId: 74)\n"
        "    #1 cache_get /src/cache.cc:12:3 (server+0x2)\n\n"
        "  Mutex M0 previously acquired by the same thread here:\n"
        "    #0 pthread_mutex_lock <null> (server+0x1)\n\n"
        "  Mutex M0 acquired here while holding mutex M1 in main thread:\n"
        "    #0 pthread_mutex_lock <null> (server+0x1)\n"
        "    #1 evict /src/cache.cc:40:3 (server+0x2)\n\n"
        "  Thread T1 'pool' (tid=9, running) created by main thread at:\n"
        "    #0 pthread_create <null> (server+0x1)\n\n"
        "SUMMARY: ThreadSanitizer: lock-order-inversion (potential deadlock) /src/cache.cc:12:3 in cache_get\n"
    )
    assert threads(text) == {"T1": ["pthread_mutex_lock", "cache_get"], "main": ["pthread_mutex_lock", "evict"]}
    (process,) = read(text).processes
    assert process.pid == 4711
    assert "takes lock M1 while it holds M0" in process.threads[0].problems


def test_a_race_is_no_crash():
    text = (
        "41: WARNING: ThreadSanitizer: data race (pid=10083)\n"
        "41:   Read of size 8 at 0x7f331cd99808 by thread T1:\n"
        "41:     #0 compute_forward /src/traits.cpp:13 (libggml-cpu.so.0+0x62e8c) (BuildId: be7d)\n"
        "41: \n"
        "41:   Previous write of size 8 at 0x7f331cd99808 by main thread:\n"
        "41:     #0 extra_init /src/traits.cpp:9 (libggml-cpu.so.0+0x62e8c)\n"
    )
    assert threads(text) == {"T1": ["compute_forward"]}
    assert judge(read(text)).processes[0].threads[0].kind == "native-compute"


FRAMES = (
    'frame={level="0",addr="0x00007f01",func="poll",from="/lib/libc.so.6",arch="i386:x86-64"}',
    'frame={level="1",addr="0x00007f02",func="ns::f(int, char)",args=[],file="a.cc",fullname="/src/a.cc",line="12"}',
)


@pytest.mark.parametrize(
    "text",
    [
        "^done,stack=[" + ",".join(FRAMES) + "]\n",
        "1: (301) <-12^done,stack=[" + ",".join(FRAMES) + "]\n",
        "^done,stack=[\n" + ",\n".join(FRAMES) + "\n]\n",
        '~"#0  0x00007f01 in poll () from /lib/libc.so.6\\n"\n~"#1  0x00007f02 in ns::f (x=\\"a\\") at /src/a.cc:12\\n"\n',
    ],
)
def test_gdbs_machine_interface(text):
    (process,) = read(text).processes
    (thread,) = process.threads
    assert [frame.function for frame in thread.frames] == ["poll", "ns::f"]
    assert (thread.frames[0].module, thread.frames[1].file, thread.frames[1].line) == (
        "/lib/libc.so.6",
        "/src/a.cc",
        12,
    )


def test_threads_of_gdbs_machine_interface():
    text = (
        '^done,threads=[{id="2",target-id="Thread 0x7f (LWP 12)",name="nccl",' + FRAMES[0] + ',state="stopped"},'
        '{id="1",target-id="Thread 0x7e (LWP 11)",' + FRAMES[1].replace('"1"', '"0"', 1) + ',state="stopped"}]\n'
    )
    (process,) = read(text).processes
    assert [(one.id, one.lwp, one.name, one.frames[0].function) for one in process.threads] == [
        ("2", 12, "nccl", "poll"),
        ("1", 11, None, "ns::f"),
    ]


def test_caffe2s_handler():
    text = (
        "Apr 14 22:02:39 SIGABRT(6), PID: 18613, Thread 18625: \n"
        "Apr 14 22:02:39 [0] ???(0x7f5df683a6a9) in /opt/lib/libtorch_cpu.so\n"
        "Apr 14 22:02:39 [1] pthread_mutex_lock+0x55(0x7fd3a14b6025) in /lib/libpthread.so.0\n"
        "Apr 14 22:02:39 [2] ???(0)\n"
    )
    (process,) = read(text).processes
    assert (process.pid, process.threads[0].id) == (18613, "18625")
    assert [frame.function for frame in process.threads[0].frames] == [None, "pthread_mutex_lock"]
    assert judge(read(text)).processes[0].wait.kind == "exited-or-crashed"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("==== backtrace (tid:   77) ====\n 0 0x0000000000043090 compute()  ???:0\n====\n", "exited-or-crashed"),
        ("    @     0x7f57c189e630  (unknown)  (unknown)\n    @     0x555d8e42f870     140480  step\n    @ ... and at least 2 more frames\n",
         "exited-or-crashed"),
        ("frame #0: c10::Error::Error() + 0x57 (0x7fc7 in /x/libc10.so)\nframe #1: c10d::TCPStore::get() + 0x7a (0x7f2b in /x/l.so)\n",
         "store-wait"),
        ("Signal (11) received.\n 0# pow in /lib/libm.so.6\n 1# server::step() in /opt/server\n", "exited-or-crashed"),
        ('!!!!!!! Segfault encountered !!!!!!!\n  File "<unknown>", line 0, in swap_blocks\n  File "<unknown>", line 0, in main\n',
         "exited-or-crashed"),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in main\n    f()\n  File "a.py", line 9, in create_weight\n',
         "exited-or-crashed"),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in main\n    f()\n  File "/x/torch/cuda/__init__.py", line 9, in synchronize\n',
         "device-sync"),
        ("stack:  dup_mmap → dup_mm → copy_process → kernel_clone → do_syscall_64\n", "mutex"),
        ("[<0>] io_schedule+0x46/0x70\n[<0>] folio_wait_bit_common+0x13d/0x350\n[<0>] do_syscall_64+0x5c\n", "io"),
        ("Thread 9 (idle): \"MainThread\"\n    send (torch/distributed/distributed_c10d.py:24)\n    send_object (vllm/distributed/parallel_state.py:8)\n",
         "gloo"),
        ('[x/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete\n'
         'Traceback (most recent call last):\n  File "/x/torch/distributed/distributed_c10d.py", line 5356, in barrier\n', "gloo"),
        ("#0  pthread_cond_timedwait () from /lib/libpthread.so.0\n#1  std::condition_variable::wait_for<long, "
         "gloo::transport::tcp::UnboundBuffer::waitRecv(int*)::<lambda()> > (p=...) at condition_variable:9\n", "gloo"),
    ],
)  # fmt: skip
def test_where_the_only_thread_stands(text, kind):
    answer = judge(read(text))
    assert answer.processes[0].wait.kind == kind
    assert answer.verdict.confidence == "low" or answer.verdict.cause != "unknown"


def test_a_log_of_calls_shows_the_last_one():
    text = (
        "2024-06-03 20:53:29.1 Call to all_reduce in /x/pynccl.py:80 from forward in /x/model.py:9\n"
        "2024-06-03 20:53:30.7 Call to synchronize in /x/torch/cuda/streams.py:93 from __init__ in /x/pynccl.py:101\n"
    )
    assert threads(text) == {"1": ["synchronize", "__init__"]}
    assert threads(
        text + "2024-06-03 20:53:31.0 Return from synchronize in /x/s.py:93 to __init__ in /x/pynccl.py:101\n"
    ) == {"1": ["__init__"]}


def test_threads_in_a_list():
    text = (
        "- `MainThread`: `dist.barrier` (`torch/distributed/distributed_c10d.py`) from `Manager.save`\n"
        "- `Executor_0`: stuck in `all_gather` / `gather_object` (`torch/distributed/distributed_c10d.py:99`)\n"
    )
    assert threads(text) == {"MainThread": ["barrier", "save"], "Executor_0": ["all_gather"]}
    assert read("- `model`: `Qwen` (`config.json`)\n- `seed`: `42`\n").processes == ()


@pytest.mark.parametrize(
    "text",
    [
        "- #0  poll () from /lib/libc.so.6\n- #1  main () at a.c:3\n",
        "* `#0  poll () from /lib/libc.so.6`\n* `#1  main () at a.c:3`\n",
        "`#0  poll () from /lib/libc.so.6`\n`#1  main () at a.c:3`\n",
        "1. `poll (libc.so.6)`\n2. `main (a.c:3)`\n",
        "#0  poll () from /usr/lib/x86_64-\nlinux-gnu/libc.so.6\n#1  main () at a.c:3\n",
    ],
)
def test_frames_in_lists_backticks_and_wrapped_paths(text):
    (process,) = read(text).processes
    (thread,) = process.threads
    assert [frame.function for frame in thread.frames] == ["poll", "main"]
    assert thread.frames[0].library == "libc.so.6"


def test_the_thread_that_the_main_thread_waits_for_decides():
    text = (
        'Thread 4888 (idle): "MainThread"\n    _engine_run_backward (torch/autograd/graph.py:769)\n    main (train.py:3)\n'
        "Thread 8287 (active)\n    partition_grads (deepspeed/runtime/zero/stage3.py:1500)\n"
    )
    assert judge(read(text)).verdict.decisive_thread == "8287"


def test_the_main_threads_of_two_containers_are_two_processes():
    one = 'Thread 1 (idle): "MainThread"\n    {} (train.py:{})\n'
    assert len(read(one.format("f", 3) + "\nvs\n\n" + one.format("g", 9)).processes) == 2


def test_whoever_died_decides():
    text = (
        '  File "<unknown>", line 0, in Py_RunMain\n  File "<unknown>", line 0, in _start\n\n'
        '!!!!!!! Segfault encountered !!!!!!!\n  File "<unknown>", line 0, in cuMemcpyBatchAsync\n'
    )
    answer = judge(read(text))
    assert (answer.verdict.decisive_process, answer.processes[1].wait.kind) == (1, "exited-or-crashed")


@pytest.mark.parametrize(
    "text",
    [
        '  File "/x/torch/distri\nbuted/distributed_c10d.py", line 24, in send\n',
        "Thread 9 (idle)\n    send (torch/distri\nbuted/distributed_c10d.py:24)\n",
    ],
)
def test_a_path_of_python_that_a_terminal_broke(text):
    (process,) = read(text).processes
    (frame,) = process.threads[0].frames
    assert (frame.function, frame.line) == ("send", 24)
    assert (frame.file or "").endswith("torch/distributed/distributed_c10d.py")
