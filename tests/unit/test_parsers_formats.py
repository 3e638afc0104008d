"""What the tools print of two small programs, read back."""

from pathlib import Path

import pytest

from gdbext.knowledge.log_lines.last_words import HANDLERS
from gdbext.knowledge.runtimes.glibc_locks import SYMBOL
from gdbext.model.missing import Missing
from gdbext.parsers import parse_files

STACKS = Path(__file__).parents[1] / "data" / "stacks"


def read(*names):
    return parse_files([(name, (STACKS / name).read_bytes()) for name in names])


def text(content, name="paste.txt"):
    return parse_files([(name, content.encode())])


def calls(thread):
    return [frame.function for frame in thread.frames]


def by_id(process):
    return {thread.id: thread for thread in process.threads}


@pytest.mark.parametrize("name", ["gdb.txt", "gdb-full.txt"])
def test_gdb(name):
    (process,) = read(name).processes
    assert (process.source, process.pid) == ("text:gdb", 14596)
    assert [thread.id for thread in process.threads] == ["3", "2", "1"]
    worker, helper, main = process.threads
    assert (worker.lwp, helper.name) == (14600, "cuda-EvtHandlr")
    assert calls(main)[-1] == "main" and main.frames[-1].file == "spin.cpp" and main.frames[-1].line == 20
    assert calls(worker)[7:9] == ["demo::Ring<float>::wait", "demo::launch"]
    assert worker.frames[7].inlined and not worker.frames[10].inlined
    assert worker.frames[3].captures == {"mutex": 0x562422475080, SYMBOL: "demo::gate"}
    assert worker.problems == ()


def test_gdb_list_of_threads_and_stacks_are_the_same_threads():
    snapshot = read("gdb-threads.txt")
    (process,) = snapshot.processes
    assert {thread.id: len(thread.frames) for thread in process.threads} == {"1": 5, "2": 13, "3": 4}
    assert by_id(process)["3"].lwp == 14599 and snapshot.problems == ()


def test_gdb_session_with_up_and_selected_threads():
    (process,) = read("gdb-session.txt").processes
    threads = by_id(process)
    assert calls(threads["1"]) == ["__futex_wait", "demo::wait", "main"]
    assert (threads["1"].lwp, threads["1"].name) == (4711, "demo")
    assert calls(threads["3"]) == ["poll", None] and threads["3"].frames[1].module == "/usr/lib/libcuda.so.1"
    assert threads["3"].truncated.startswith("Backtrace stopped")
    assert calls(threads["2"]) == ["poll"]


@pytest.mark.parametrize("name", ["eu-stack.txt", "eu-stack-full.txt"])
def test_eu_stack(name):
    (process,) = read(name).processes
    assert (process.pid, process.source) == (14596, "text:eu-stack")
    assert [thread.id for thread in process.threads] == ["14596", "14599", "14600"]
    assert "main" in calls(process.threads[0]) and calls(process.threads[1])[-1] == "__clone3"
    if "full" in name:
        frame = process.threads[0].frames[3]
        assert (frame.function, frame.module, frame.file, frame.line) == (
            "main",
            "/srv/demo/spin",
            "/srv/demo/spin.cpp",
            20,
        )


@pytest.mark.parametrize("name", ["py-spy.txt", "py-spy-locals.txt", "py-spy.json"])
def test_py_spy(name):
    (process,) = read(name).processes
    assert (process.pid, process.source) == (14597, "text:py-spy")
    main, helper = by_id(process)["14597"], by_id(process)["14611"]
    assert calls(main) == ["Condition.wait", "Event.wait", "<module>"]
    assert calls(helper)[:2] == ["consume", "serve"] and (helper.name, helper.state) == ("helper", "S")
    assert {frame.language for frame in helper.frames} == {"python"}


@pytest.mark.parametrize("name", ["py-spy-native.txt", "py-spy-native.json"])
def test_py_spy_with_native_frames(name):
    (process,) = read(name).processes
    helper = by_id(process)["14611"]
    assert calls(helper)[:5] == [None, None, "PyThread_acquire_lock_timed", "lock_PyThread_acquire_lock", "consume"]
    assert helper.frames[0].library == "libc.so.6" and helper.frames[0].pc == 0x7F418AEA3F16
    assert [frame.language for frame in helper.frames[3:5]] == ["native", "python"]


def test_py_spy_marks_the_owner_of_the_gil_and_threads_without_frames():
    (process,) = text('Thread 7 (idle)\nThread 0x7FA6 (active+gil): "MainThread"\n    item (a/b.py:12)\n').processes
    assert [(one.id, one.gil, one.state) for one in process.threads] == [("7", None, "S"), ("0x7FA6", True, "R")]
    assert process.threads[0].frames == ()


def test_py_spy_json_that_is_cut_short_keeps_whole_threads():
    whole = (STACKS / "py-spy.json").read_text()
    snapshot = text("some log line\n" + whole[: whole.rindex('"Event.wait"')])
    assert [thread.id for process in snapshot.processes for thread in process.threads] == ["14611"]
    assert "cut short" in snapshot.problems[0]


@pytest.mark.parametrize("name", ["pystack.txt", "pystack-native.txt", "pystack-locals.txt"])
def test_pystack_lists_outermost_first(name):
    (process,) = read(name).processes
    helper = by_id(process)["14611"]
    python = [frame.function for frame in helper.frames if frame.language == "python"]
    assert python == ["consume", "serve", "run", "_bootstrap_inner", "_bootstrap"]
    if name != "pystack.txt":
        assert helper.frames[0].inlined and helper.frames[0].library == "libc.so.6"
        assert calls(helper)[-1] == "__clone3"


def test_faulthandler():
    (process,) = read("faulthandler.txt").processes
    assert [thread.id for thread in process.threads] == ["0x00007f418a9a56c0", "0x00007f418b5f5b80"]
    assert calls(process.threads[0])[:2] == ["consume", "serve"]


def test_faulthandler_error_belongs_to_the_current_thread():
    content = (STACKS / "faulthandler.txt").read_text()
    (process,) = text("Fatal Python error: Bus error\n\n" + content).processes
    assert [thread.problems for thread in process.threads] == [(), ("Fatal Python error: Bus error",)]


def test_a_fatal_error_begins_the_next_process():
    """faulthandler lists the thread that died last: the others before it are of the same process."""
    dump = (
        "Fatal Python error: Aborted\n\n"
        'Thread 0x00007f418a9a{0:04x} (most recent call first):\n  File "/a/threading.py", line 324 in wait\n\n'
        'Current thread 0x00007f418b5f{0:04x} (most recent call first):\n  File "/a/train.py", line 41 in step\n\n'
    )
    processes = text("".join(dump.format(number) for number in range(3))).processes
    assert [[calls(thread) for thread in one.threads] for one in processes] == [[["wait"], ["step"]]] * 3
    assert {thread.problems for one in processes for thread in one.threads[1:]} == {("Fatal Python error: Aborted",)}


def test_lldb():
    (process,) = read("lldb.txt").processes
    assert (process.pid, process.source) == (4242, "text:lldb")
    main, helper = process.threads
    assert (main.id, main.name, helper.name) == ("1", "python3", "cuda-EvtHandlr")
    assert [frame.library for frame in main.frames[:4]] == ["libc.so.6", *["libcuda.so.1"] * 3]
    assert calls(main)[:5] == ["__GI___poll", None, None, "cuStreamSynchronize", "demo::Engine::step"]
    assert (main.frames[4].file, main.frames[4].line) == ("engine.cc", 77)
    assert calls(helper) == ["__poll", None]


def test_open_mpi_signal_and_its_stack():
    (process,) = read("open-mpi.log").processes
    assert process.pid == 12345
    (thread,) = process.threads
    assert calls(thread) == [None, None, "ncclCommInitRank"]
    assert thread.problems == ("Signal: Bus error (7)", HANDLERS["openmpi"])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["[T 3] 2 <0x7f12> ns::wait(int)+0x1f [libx.so.1]", "[T 3] 3 <0x7f34> main+0x20"], ["ns::wait", "main"]),
        (
            ["1) cpu:3 [ 10.1] io_schedule+0x12/0x40", "1) cpu:3 [ 10.1] vfs_read+0x9d/0x190"],
            ["io_schedule", "vfs_read"],
        ),
        (["mon> libm.0.dylib`PMIx_Get(proc=0x0) at x.c:8", "mon> a.out`main + 12"], ["PMIx_Get", "main"]),
        (['at=1 File "/a/b.py", line 3 in get', 'at=1 File "/a/c.py", line 9 in run'], ["get", "run"]),
        (['at=1 File "/a/c.py", line 9, in run', 'at=1 File "/a/b.py", line 3, in get'], ["get", "run"]),
        (["w1 in sem_wait (sem=0x1) from libc.so.6", "w1 in ns::f (a=1) at f.cc:12"], ["sem_wait", "ns::f"]),
        (
            ["E java.lang.Object.wait(Object.java:12)", "E a.b.Main.run(Main.java:3)"],
            ["java.lang.Object.wait", "a.b.Main.run"],
        ),
    ],
)
def test_frames_behind_what_no_tool_is_known_to_print(lines, expected):
    snapshot = parse_files([("x.txt", "\n".join(lines).encode())])
    assert [calls(thread) for process in snapshot.processes for thread in process.threads] == [expected]


def test_sanitizer_and_paddle():
    (process,) = read("sanitizer.txt").processes
    assert calls(process.threads[0]) == ["pthread_mutex_lock", "demo::wait", "__libc_start_main"]
    (process,) = read("paddle.txt").processes
    assert calls(process.threads[0])[0] == "ncclAllReduce"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "*** Check failure stack trace: ***\n    @     0x7f8a12345678  Fail()\n    @       0x40f5a3  main\n",
            ["Fail", "main"],
        ),
        ("E1002 05:16:35.1  77 a.cc:43] Stack for thread pool/77:\n   @      x/y.cc:12 ns::Sync()\n", ["ns::Sync"]),
        ("==== backtrace (tid:   77) ====\n 0 0x0000000000043090 killpg()  ???:0\n====\n", ["killpg"]),
        ("C  [libcuda.so.1+0x1a2b3c]\nC  [libnccl.so.2+0x5a2b3]  ncclAllReduce+0x33\n", [None, "ncclAllReduce"]),
        ("[<0>] futex_wait_queue+0x60/0x90\n[<0>] do_futex+0x17d/0x220\n", ["futex_wait_queue", "do_futex"]),
        ("#0 c10::f(int) from ??:0\n#1 g at /x/y.cpp:12 (inline)\n#2 h() from Logging.cpp:0\n", ["c10::f", "g", "h"]),
        (
            'Traceback (most recent call first):\n  File "a.py", line 3, in f\n    x()\n  File "a.py", line 9, in g\n',
            ["f", "g"],
        ),
        (
            "t.dll!std::this_thread::yield() line 181\n[Inline Frame] a.exe!ns::Pool::wait(int, b * c) Line 9  C++\n"
            " \tkernel32.dll!InitOnceExecuteOnce\u2011()  Unknown  Symbols loaded.\n",
            ["std::this_thread::yield", "ns::Pool::wait", "InitOnceExecuteOnce"],
        ),
        ("\\#0  0x00007f0000000001 in poll ()\n\\#1  0x00007f0000000002 in main ()   ← stuck\n", ["poll", "main"]),
        ("0x00007f0000000001 in poll () from /lib/libc.so.6\n", ["poll"]),
    ],
)
def test_other_tools(content, expected):
    (process,) = text(content).processes
    (thread,) = process.threads
    assert calls(thread) == expected


@pytest.mark.parametrize("head", ["Thread {}:", "Thread {0} (Thread 0x7fd66d7fa70{0} (LWP 187194{0})):"])
def test_all_threads_of_py_bt_keep_the_ids_that_gdb_gave_them(head):
    """`thread apply all py-bt`: a line of gdb's names each thread, and a traceback without a name follows."""
    stacks = (
        f'{head.format(number)}\nTraceback (most recent call first):\n  File "{place}.py", line 3, in wait\n    x()\n'
        f'  File "{place}.py", line 9, in {place}\n'
        for number, place in ((2, "loop"), (1, "main"))
    )
    (process,) = text("\n".join(stacks)).processes
    assert {one.id: calls(one) for one in process.threads} == {"2": ["wait", "loop"], "1": ["wait", "main"]}


# What happens to stacks on their way ----------------------------------------------------------------------------------

FRAMES = """\
Thread 2 (Thread 0x7f0000000700 (LWP 12) "worker"):
#0  0x00007f0000000001 in ?? () from /usr/lib/libcuda.so.1
#1  0x00007f0000000002 in ncclAllReduce (sendbuff=0x7f00, count=42, datatype=ncclFloat32, op=<optimized out>, \
comm=0x55d0, stream=0x77) at collectives.cc:85
#2  0x00007f0000000003 in ns::Ring<float, 4>::run(int, void (*)(int)) () from /srv/libengine.so
"""


def expected(process):
    (thread,) = process.threads
    assert (thread.id, thread.lwp, thread.name) == ("2", 12, "worker")
    assert calls(thread) == [None, "ncclAllReduce", "ns::Ring<float, 4>::run"]
    assert [frame.library for frame in thread.frames] == ["libcuda.so.1", None, "libengine.so"]
    assert (thread.frames[1].file, thread.frames[1].line) == ("collectives.cc", 85)
    return thread


def prefixed(prefix):
    return "".join(f"{prefix}{line}\n" for line in FRAMES.splitlines())


@pytest.mark.parametrize(
    "content",
    [
        FRAMES,
        FRAMES.replace("\n", "\r\n"),
        "```gdb\n" + FRAMES + "```\n",
        prefixed("> "),
        prefixed(">> "),
        prefixed("engine-1  | "),
        prefixed("[pod/engine-0/main] "),
        prefixed("2026-01-02T03:04:05.678901234Z "),
        prefixed("(Worker_TP0 pid=77) "),
        prefixed("\x1b[31m"),
        FRAMES.replace("#1 ", "--Type <RET> for more, q to quit, c to continue without paging--#1 "),
        FRAMES.replace("#1 ", "--Type <RET> for more, q to quit, c to continue without paging--\n#1 "),
        FRAMES.replace(" at coll", "\n    at coll").replace(" from ", "\n   from "),
        FRAMES.replace("count=42, ", "count=42, \n    ").replace(" in ns::", " in\n    ns::"),
        FRAMES.replace("from /srv", "at /srv"),
        FRAMES.replace("from /srv", "from target:/srv"),
        FRAMES.replace("collectives.cc:85", "collectives.cc:85   <-- here it hangs"),
        "(gdb) " + FRAMES,
        "<details><summary>stack</summary>\n<pre>\n" + FRAMES.replace("<", "&lt;").replace(">", "&gt;") + "</pre>\n",
    ],
)
def test_dirt_of_pastes_is_undone(content):
    (process,) = text(content).processes
    thread = expected(process)
    captures = thread.frames[1].captures
    assert {name: captures[name] for name in ("count", "comm", "stream")} == {
        "count": 42,
        "comm": 0x55D0,
        "stream": 0x77,
    }


def test_values_that_cannot_be_read_are_missing():
    (process,) = text("#0  ncclAllReduce (count=<optimized out>, comm=comm@entry=0x55) at a.cc:1\n").processes
    assert process.threads[0].frames[0].captures == {"count": Missing("optimized out"), "comm": 0x55}


def test_lost_heads_continue_the_numbering_of_their_neighbours():
    _, body = FRAMES.split("\n", 1)
    (process,) = text(body.replace("#2 ", "#5 ") + "\n" + FRAMES + "--\n#2  0x00007f0000000009 in clone ()\n").processes
    assert [thread.id for thread in process.threads] == ["3", "2", "1"]
    assert process.threads[0].problems == ("not in the text: frames 2-4",)
    assert process.threads[2].problems == ("not in the text: frames 0-1",)


def test_mentions_of_people_name_the_stack_that_follows():
    (process,) = text("The loader (e.g. Thread 89) hangs:\n#11 0x00007f0000000001 in cudaMemcpyAsync ()\n").processes
    assert process.threads[0].id == "89"
    (process,) = text(FRAMES + "\nagain thread 2:\n#0  0x00007f0000000001 in poll ()\n").processes
    assert [thread.id for thread in process.threads] == ["2", "1"]
    (process,) = text(
        "### Thread 2 (worker, LWP 33) - holds the GIL\n\n#0  futex_wait\n#3  pthread_mutex_lock\n"
    ).processes
    (thread,) = process.threads
    assert (thread.id, thread.lwp, thread.gil, calls(thread)) == ("2", 33, True, ["futex_wait", "pthread_mutex_lock"])


def test_equal_stacks_without_heads_are_as_many_threads():
    stack = "#0  poll ()\n#1  main () at a.c:3\n"
    (process,) = text(stack + stack + stack).processes
    assert [(thread.id, calls(thread)) for thread in process.threads] == [(id, ["poll", "main"]) for id in "123"]


def test_prose_is_no_stack():
    snapshot = read("prose.txt")
    assert snapshot.processes == () and "#1 fix the leak" in snapshot.problems[0]


@pytest.mark.parametrize(
    ("text", "ids", "innermost"),
    [
        ('  // Thread 5 (idle): "MainThread"\n  //     get (queue.py:1)\n  //     run (a.py:2)\n', ["5"], "get"),
        (
            '<span class="q">&gt;&gt;             #0  0x0000000000401000 in poll () from\n'
            '</span><br>\n<span class="q">&gt;&gt;             /lib/libc.so.6\n',
            ["1"],
            "poll",
        ),
        (
            "INFO: task my worker:77 blocked for more than 120 seconds.\nCall trace:\n io_schedule+0x1/0x2\n",
            ["77"],
            "io_schedule",
        ),
        (
            '2    Thread 0x7f01 (LWP 8) "a" 0x0000000000401000 in poll () from /lib/libc.so.6\n'
            '1    Thread 0x7f02 (LWP 7) "a" 0x0000000000401000 in read () from /lib/libc.so.6\n',
            ["2", "1"],
            "poll",
        ),
        ('Thread (idle): "MainThread"\n    get (queue.py:1)\n', ["MainThread"], "get"),
    ],
)
def test_what_people_do_to_stacks(text, ids, innermost):
    (process,) = parse_files([("x.txt", text.encode())]).processes
    assert [thread.id for thread in process.threads] == ids
    assert calls(process.threads[0])[0] == innermost
