"""Stacks that people and other systems' tools print in their own ways: turned over, renumbered, from macOS and Windows,
delve, CoreCLR; and what the last line of a traceback calls."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files
from gdbext.parsers.source_line import call_frame


def threads(text):
    (process,) = parse_files([("paste.txt", text.encode())]).processes
    return {one.id: [frame.function for frame in one.frames] for one in process.threads}


def kinds(text):
    (process,) = judge(parse_files([("paste.txt", text.encode())])).processes
    return [one.kind for one in process.threads]


TURNED = (
    "#3 main (argc=3) at ring.c:44 (at 0x0000000000400dab)\n#2 PMPI_Barrier () from libmpi.so.0\n"
    "#1 opal_progress () from libopen-pal.so.0\n#0 poll () from libc.so.6\n"
)
MOVED = (
    "#0  futex_wait (private=0, expected=2) at ../sysdeps/nptl/futex-internal.h:146\n"
    "owner/sdk#1  __GI___lll_lock_wait (futex=0x70, private=0) at lowlevellock.c:49\n"
    "owner/sdk#2  0x0000706875aac9b2 in ust_lock_nocheck () from libust.so\n"
)
DELVE = (
    " 0  0x0000000000469bb3 in runtime.futex\n    at /sdk/src/runtime/sys_linux_amd64.s:563\n"
    " 1  0x000000000040cb7a in runtime.lock\n    at /sdk/src/runtime/lock_futex.go:102\n"
)
CLR = (
    "OS Thread Id: 0xe6ae (9)\n        Child SP               IP Call Site\n"
    "00007FA561CB5650 00007FA563C270EC libcoreclr.so!Thread::DoAppropriateWaitWorker(int, void**) + 1308\n"
    "00007FA561CB58D0 00007FA563C2125E libcoreclr.so!AwareLock::Enter() + 222\n"
    "00007F0242E548C0 00007F02456C9FA6 Engine.Worker.Step()\n"
)
MACOS = (
    "Thread 16:: Dispatch queue: com.apple.main-thread\n"
    "0   libsystem_kernel.dylib        \t0x00007fff6adb0cee __psynch_cvwait + 10\n"
    "1   com.apple.Foundation          \t0x00007fff454b7805 -[NSOperationQueue waitUntilDone] + 296\n"
    "2   com.github.Electron.framework 0x000000011332b109 uv_cond_wait + 9 (thread.c:724)\n"
)
SPINDUMP = (
    "  Thread 0xbb80c      DispatchQueue 10    1000 samples (1-1000) priority 37\n"
    "  1000  start_wqthread + 13 (libsystem_pthread.dylib + 5085) [0x7fff8cefb3dd]\n"
    "    1000  ??? (Engine + 8496) [0x10be51130]\n"
    "      1000  semaphore_wait_trap + 10 (libsystem_kernel.dylib + 70938) [0x7fff8c7ea51a]\n"
    "       *1000  semaphore_wait_continue + 0 (kernel + 1353536) [0xffffff800034a740]\n"
)
WINDBG = (
    "00 00000012`3456f008 00007ffa`10002000     ntdll!NtWaitForSingleObject+0x14 [acme.asm @ 40]\n"
    "01 (Inline Function) --------`--------     ntdll!RtlpWaitOnAddress+0xb7\n"
    "02 00000012`3456f1a0 00007ffa`20003000     ntdll!RtlEnterCriticalSection+0x42\n"
)
WINDOWS = (
    "Thread 2 (Thread 25840.0x3c60):\n#0  0x00007fff50d27c41 in ntdll!DbgBreakPoint () from C:\\Windows\\ntdll.dll\n\n"
    "Thread 1 (Thread 25840.0x5818):\n#0  0x00007fff50d24b84 in ntdll!ZwWaitForMultipleObjects () from C:\\ntdll.dll\n"
)


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        (TURNED, {"1": ["poll", "opal_progress", "PMPI_Barrier", "main"]}, "mpi"),
        (MOVED, {"1": ["futex_wait", "__GI___lll_lock_wait", "ust_lock_nocheck"]}, "mutex"),
        (DELVE, {"1": ["runtime.futex", "runtime.lock"]}, "mutex"),
        (CLR, {"9": ["Thread::DoAppropriateWaitWorker", "AwareLock::Enter", "Engine.Worker.Step"]}, "mutex"),
        (MACOS, {"16": ["__psynch_cvwait", "-[NSOperationQueue waitUntilDone]", "uv_cond_wait"]}, "condvar-idle"),
        (
            SPINDUMP,
            {"0xbb80c": ["semaphore_wait_continue", "semaphore_wait_trap", None, "start_wqthread"]},
            "condvar-idle",
        ),
        (WINDBG, {"1": ["NtWaitForSingleObject", "RtlpWaitOnAddress", "RtlEnterCriticalSection"]}, "mutex"),
        (WINDOWS, {"2": ["DbgBreakPoint"], "1": ["ZwWaitForMultipleObjects"]}, "condvar-idle"),
    ],
    ids=["turned", "moved", "delve", "clr", "macos", "spindump", "windbg", "windows"],
)
def test_what_is_read(text, expected, kind):
    assert threads(text) == expected
    assert kind in kinds(text)


def test_a_frame_that_is_shown_again_turns_nothing():
    text = "(gdb) bt\n#0  poll () from libc.so.6\n#1  f () at a.c:1\n"
    text += "(gdb) up\n#1  f () at a.c:1\n(gdb) down\n#0  poll ()\n"
    assert threads(text) == {"1": ["poll", "f"]}


def test_two_stacks_that_begin_anew_stay_two():
    assert (
        len(threads("#0  poll () from libc.so.6\n#1  f () at a.c:1\n#0  read () from libc.so.6\n#1  g () at a.c:2\n"))
        == 2
    )


def test_info_threads_with_a_frame_on_two_lines():
    text = (
        '* 1    Thread 0x7f8856a04740 (LWP 27248) "python" 0x00007f88565f5ad3 in futex_wait_cancelable (private=0,\n'
        "    expected=0, futex_word=0x5622ee0e97e8) at ../sysdeps/unix/sysv/linux/futex-internal.h:88\n"
        '  2    Thread 0x7f8856a04741 (LWP 27249) "python" 0x00007f88565f5ad3 in poll () from libc.so.6\n'
    )
    assert threads(text) == {"1": ["futex_wait_cancelable"], "2": ["poll"]}


def test_where_the_interrupted_thread_stands_when_its_stack_is_not_shown():
    text = (
        'Thread 1 "server" received signal SIGINT, Interrupt.\n0x00007fffd627cbde in acme::spin () at acme.h:114\n\n'
        'Thread 42 (Thread 0x7ffc33ff76c0 (LWP 21847) "server"):\n#0  poll () from libc.so.6\n#1  loop () at a.c:1\n'
    )
    assert threads(text) == {"1": ["acme::spin"], "42": ["poll", "loop"]}
    assert threads(text.replace("acme::spin () at acme.h:114", "?? () from /lib/libc.so.6"))["1"] == []


@pytest.mark.parametrize(
    ("state", "kind"),
    [("chan receive, 600 minutes", "condvar-idle"), ("sync.Mutex.Lock", "mutex"), ("IO wait", "io")],
)
def test_the_state_of_a_goroutine(state, kind):
    assert kinds(f"goroutine 1 [{state}]:\nmain.run(0xc4200b71e0)\n\t/go/main.go:134 +0x878\n") == [kind]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("    task = get()", "get"),
        ("    obj = self._queue.get(timeout=5)", "get"),
        ("    racquire()", "racquire"),
        ("    with self._lock:", "acquire"),
        ("    data = self._sock.recv(self._rbufsize)", "recv"),
        ("    worker.join()", "join"),
        ("    loss = out.item()", "item"),
        ("    value = options.get('a')", None),
        ("    text = ', '.join(parts)", None),
        ("    raise ValueError(text)", None),
    ],
)
def test_what_a_source_line_calls(line, name):
    frame = call_frame(line)
    assert (frame.function if frame else None) == name


def test_a_traceback_that_ctrl_c_ended_stands_in_what_its_last_line_calls():
    text = (
        '^CTraceback (most recent call last):\n  File "/x/run.py", line 4, in step\n    loss = out.item()\n'
        "KeyboardInterrupt\n"
    )
    assert threads(text) == {"1": ["item", "step"]}
    assert kinds(text) == ["memcpy-sync"]
    assert threads(text.replace("^C", "").replace("KeyboardInterrupt", "ValueError: no")) == {"1": ["step"]}


def test_a_stack_without_a_head_is_not_the_main_thread_of_named_ones():
    frames = '  File "/x/concurrent/futures/thread.py", line 78 in _worker\n  File "/x/threading.py", line 870 in run\n'
    text = f"{frames}\nThread 0x00007f1c04a1f700 (most recent call first):\n{frames}"
    assert judge(parse_files([("paste.txt", text.encode())])).verdict.decisive_thread == "0x00007f1c04a1f700"
