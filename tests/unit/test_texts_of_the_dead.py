"""Texts that are no look at a living process, each beside a twin that is one."""

from pathlib import Path

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files

REAL = Path(__file__).resolve().parents[1] / "data" / "real"

TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 9, in main
    step(batch)
  File "train.py", line 30, in step
    item = inbox.take()
"""
FAULT = """Thread 0x00007f4935408700 (most recent call first):
  File "train.py", line 30 in step
  File "train.py", line 9 in main
"""
SIDE = """ thread 0x00007f34ba76a640 (most recent call first):
  File "worker.py", line 131 in forward
  File "/usr/lib/python3.10/threading.py", line 1016 in _bootstrap_inner
  File "/usr/lib/python3.10/threading.py", line 973 in _bootstrap
"""
GDB = """#0  0x00007f01 in decode (step=3) at gpt.cc:66
#1  0x00007f03 in main () from /opt/app/app
"""
LLDB = """Process 41 stopped
* thread #1, name = 'app', stop reason = {reason}
    frame #0: 0x00007fff5ef9f9c0 libcuda.so.1`cuInit
"""
GO = """goroutine 24 {id}[{state}]:
runtime.gopark(0x0?, 0x0?)
        runtime/proc.go:424 +0xce
"""
KERNEL = """task:app  state:D stack:0     pid:827200 ppid:742680 flags:0x00004002
Call Trace:
 do_exit+0xf3/0x6c0
 do_group_exit+0x35/0x90
 {outer}+0x8a5/0x8d0
"""


TASK = """INFO: task {name}:{pid} blocked for more than {seconds} seconds.
{name}     D    0   {pid}    460 0x0000022c
Call Trace:
 schedule+0x38/0xa0
"""
WANTS_LOCK = " down_read+0x38/0xa0\n find_task+0x18/0x20\n"
IN_DRIVER = " uvm_spin_loop+0xb2/0xe0 [{module}]\n"


def verdict_of(text):
    return judge(parse_files([("a.txt", text.encode())])).verdict


def first_advice(text):
    return verdict_of(text).remedies[0].action


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TRACEBACK + "KeyboardInterrupt\n", "was in step (train.py:30) when Ctrl-C or a signal handler interrupted it"),
        (TRACEBACK + "KeyboardInterrupt: stopped\n", "(KeyboardInterrupt: stopped)"),
        ("Timeout (0:00:15)!\n" + FAULT, "when faulthandler's timeout of 0:00:15 expired"),
        ("Process 3 timed out with traceback:\n" + FAULT, "when its test timed out"),
        ("Current" + SIDE, "although it is not the main thread, so a fatal signal"),
        ("T" + SIDE.lstrip()[1:], "A single dump cannot show whether it is making progress"),
        ('Thread 1 "app" hit Breakpoint 2, decode (step=3) at gpt.cc:66\n(gdb) bt\n' + GDB, "at Breakpoint 2; this"),
        ("Breakpoint 2, decode (step=3) at gpt.cc:66\n(gdb) bt\n" + GDB, "at Breakpoint 2; this is no sign"),
        (GDB, "A single dump cannot show whether it is making progress"),
        (LLDB.format(reason="breakpoint 1.1"), "at breakpoint 1.1; this is no sign of a hang"),
        (LLDB.format(reason="step over"), "this is no sign of a hang"),
        (LLDB.format(reason="signal SIGSTOP"), "The text does not show why the call does not return"),
        (GO.format(id="gp=0xc003b88a80 m=nil ", state="GC worker (idle)"), "when a process crashes"),
        (GO.format(id="", state="GC worker (idle)"), "is idle, as it would be in a healthy process."),
        (KERNEL.format(outer="get_signal"), "is already exiting (killed by a signal, or by the exit of another"),
        (KERNEL.format(outer="__x64_sys_exit_group"), "is exiting, and is still in do_exit ([kernel])."),
    ],
)
def test_the_summary_tells_what_the_text_is(text, says):
    assert says in verdict_of(text).summary


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (TRACEBACK + "KeyboardInterrupt\n", "At the next hang, before you press Ctrl-C: dump all threads twice"),
        ("Timeout (0:00:15)!\n" + FAULT, "If the process is still running (faulthandler may have ended it), or at the"),
        (FAULT, "Dump all threads twice"),
        (LLDB.format(reason="breakpoint 1.1"), "Resume the program"),
        (LLDB.format(reason="signal SIGSTOP"), "Dump every process"),
        (GO.format(id="gp=0xc003b88a80 m=nil ", state="GC worker (idle)"), "Read the lines above the first goroutine"),
        ("Current" + SIDE, "Read the lines above these stacks"),
    ],
)
def test_advice_that_needs_a_living_process_is_for_the_next_run(text, begins):
    assert first_advice(text).startswith(begins)


def test_an_interrupt_after_a_breakpoint_is_the_stop_that_counts():
    stopped = "Breakpoint 2, decode (step=3) at gpt.cc:66\n(gdb) c\nContinuing.\n^C\n"
    text = stopped + "Program received signal SIGINT, Interrupt.\n(gdb) bt\n" + GDB
    assert "no sign of a hang" not in verdict_of(text).summary


def test_a_breakpoint_that_is_only_set_stops_nobody():
    assert "no sign" not in verdict_of("Breakpoint 1 at 0x1149: file gpt.cc, line 60.\n" + GDB).summary


def test_a_caught_throw_is_an_error_all_the_same():
    text = 'Thread 1 "app" hit Catchpoint 1 (exception thrown), 0x00007f01 in __cxa_throw ()\n(gdb) bt\n' + GDB
    assert "no sign of a hang" not in verdict_of(text).summary


def test_a_thread_on_the_line_that_selects_it():
    frames = "#0  0x00007f01 in poll () from /lib64/libc.so.6\n#1  0x00007f02 in ?? () from /usr/lib64/libcuda.so\n"
    text = (
        f"(gdb) where\n{frames}(gdb) thread\n[Current thread is 5 (Thread 0x7f45 (LWP 24))]\n(gdb) thread 6\n"
        "[Switching to thread 6 (Thread 0x7f46 (LWP 25))]#0  0x00007f01 in poll ()\n   from /lib64/libc.so.6\n"
        f"(gdb) where\n{frames}"
    )
    (process,) = parse_files([("a.txt", text.encode())]).processes
    assert [(one.id, len(one.calls)) for one in process.threads] == [("5", 2), ("6", 2)]


RAISED = """Exception raised from {function} at ../torch/csrc/ProcessGroupNCCL.cpp:1521 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f810f811f86 in /opt/lib/libc10.so)
frame #1: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x10c (0x7f80c126b6fc in /opt/lib/libtorch_cuda.so)

"""


@pytest.mark.parametrize(("second", "threads"), [("ncclCommWatchdog", 1), ("c10_cuda_check_implementation", 2)])
def test_an_exception_that_is_thrown_again_is_of_the_same_thread(second, threads):
    text = RAISED.format(function="c10_cuda_check_implementation") + RAISED.format(function=second)
    snapshot = parse_files([("a.txt", text.encode())])
    assert sum(len(process.threads) for process in snapshot.processes) == threads


def test_the_thread_at_work_is_not_the_receiver_of_the_test_runner():
    receiver = FAULT.replace("train.py", "/opt/lib/execnet/gateway_base.py").replace("in step", "in _thread_receiver")
    found = verdict_of("Timeout (0:00:01)!\n" + receiver + "\n" + FAULT.replace("4935408700", "4935408800"))
    assert found.decisive_thread == "0x00007f4935408800"


def test_frames_of_a_crash_that_are_missing_are_named():
    text = "[node1:9:0:9] Caught signal 11 (Segmentation fault)\n==== backtrace (tid: 9) ====\n"
    text += "14 0x000000000008170d run_step()  ???:0\n15 0x000000000008170e main()  ???:0\n"
    assert "frames 0-13" in verdict_of(text).summary


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("ncclCommInitRank", "The last line of this traceback is missing"),  # may have failed
        ("_try_wait", "when Ctrl-C or an exception interrupted it"),
    ],
)
def test_a_traceback_without_its_last_line_is_no_wait_of_now(call, says):
    file = "/opt/lib/vllm/pynccl_wrapper.py" if call != "_try_wait" else "/usr/lib/python3.10/subprocess.py"
    text = TRACEBACK.split("    item")[0] + f'  File "{file}", line 320, in {call}\n    self.CHECK(\n'
    assert says in verdict_of(text).summary


def test_a_task_is_called_by_number_and_name_and_how_long_it_was_blocked_is_said():
    text = TASK.format(name="miner", pid=1839, seconds=120) + WANTS_LOCK
    says = "Pid 1839 (miner) waits for a lock in down_read ([kernel]). The text does not show which task holds this"
    assert (
        verdict_of(text).summary
        == f"{says} kernel lock. The kernel reported this task blocked for more than 120 seconds."
    )
    assert first_advice(text).endswith("one of them, or what it waits for, holds the lock")


def test_of_several_tasks_it_is_said_which_wait_for_locks_and_which_are_in_the_driver():
    lock = TASK.format(name="a", pid=51, seconds=120) + WANTS_LOCK
    driver = "$ cat /proc/62/stack\n[<0>]" + IN_DRIVER.format(module="nvidia_uvm")
    other = TASK.format(name="c", pid=73, seconds=241) + WANTS_LOCK
    assert "which task holds this kernel lock; pid 62 is inside the GPU driver. " in verdict_of(lock + driver).summary
    found = verdict_of(lock + other)
    assert (found.cause, "holds these kernel locks. " in found.summary) == ("unknown", True)
    reported = (
        "The kernel reported pid 73 (c) blocked for more than 241 seconds, and pid 51 (a) for more than 120 seconds."
    )
    assert found.summary.endswith(reported)


def test_two_tasks_of_one_process_do_not_hold_each_others_kernel_locks():
    text = "".join(
        f"# cat /proc/9/task/{tid}/stack\n[<0>] down_read+0x38/0xa0\n[<0>] f{tid}+0x1/0x2\n" for tid in (9, 10)
    )
    assert verdict_of(text).cause == "unknown"


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("nvidia_uvm", "the number of an Xid tells what failed"),
        ("amdgpu", "a ring timeout, a page fault or a GPU reset tells what failed"),
        ("xe", "a GPU hang or an engine reset tells what failed"),
        ("lima", "in the kernel log (dmesg -T)"),
    ],
)
def test_errors_of_a_driver_are_those_of_its_vendor(module, says):
    found = verdict_of(TASK.format(name="a", pid=51, seconds=120) + IN_DRIVER.format(module=module))
    assert (found.cause, found.remedies[0].action.endswith(says)) == ("driver-bug", True)


@pytest.mark.parametrize(
    ("outer", "says"),
    [
        ("drm_release+0x1/0x2 [drm]\n do_exit", "Pid 51 (a) is already exiting."),
        ("exit_files", "Pid 51 (a) is already exiting."),
        ("drm_release+0x1/0x2 [drm]\n __x64_sys_close", "Pid 51 (a) is closing a file of the GPU driver."),
        ("filp_close", "Pid 51 (a) is closing a file."),
    ],
)
def test_a_task_that_hangs_while_it_ends_is_said_to(outer, says):
    text = TASK.format(name="a", pid=51, seconds=120) + IN_DRIVER.format(module="amdgpu") + f" {outer}+0x1/0x2\n"
    assert f" {says} " in verdict_of(text).summary


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "",
            "The process raised an exception in step (train.py:30), in a line that calls broadcast_tensors(). The log",
        ),
        ("Aborted (core dumped)\n", "The process died in step (train.py:30)"),
    ],
)
def test_a_traceback_that_a_logger_printed_is_no_proof_of_an_end(lines, said):
    prefix = "2024-08-22 18:50:25 ERROR 20 [worker_base.py:148] "
    text = TRACEBACK.replace("inbox.take()", "broadcast_tensors(src=0)").splitlines(keepends=True)
    logged = "".join(prefix + line for line in ["Error executing method step. This might cause deadlock\n", *text])
    assert judge(parse_files([("log.txt", (logged + lines).encode())])).verdict.summary.startswith(said)
    plain = "".join(text) + "RuntimeError: lost\n"
    assert "died in step (train.py:30)" in judge(parse_files([("log.txt", plain.encode())])).verdict.summary


def said_of(text):
    verdict = judge(parse_files([("log.txt", text.encode())])).verdict
    return verdict.summary, verdict.remedies[0].action


BY_WATCHDOG = (
    "Exception raised from {0} at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:16 (most recent call first):\n"
)
OF_TORCH = "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f4facafc446 in /lib/libc10.so)\n"


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        ("ncclCommWatchdog", "a collective timed out, or NCCL or CUDA reported an error."),
        ("checkTimeout", "a collective timed out."),
        ("checkForNCCLErrors", "NCCL reported an error."),
    ],
)
def test_a_watchdog_of_torch_is_the_messenger(raised, why):
    helper = SIDE.replace("worker.py", "scheduler.py").replace("131 in forward", "462 in watchdog_thread")
    main = "Thread 0x00007fce11b24480 (most recent call first):\n" + FAULT.partition("\n")[2]
    dump = f"Fatal Python error: Aborted\n\nT{helper.lstrip()[1:]}\n{main}"
    summary, advice = said_of(BY_WATCHDOG.format(raised) + OF_TORCH + f"\n{dump}")
    assert summary.startswith(f"The NCCL watchdog of torch ended the process: {why} The watchdog is only the messenger")
    assert summary.endswith("Meanwhile thread 0x00007fce11b24480 was in step (train.py:30).")
    assert "of every rank, read the line above `Exception raised`" in advice
    summary, advice = said_of(BY_WATCHDOG.format("load") + OF_TORCH)
    assert "watchdog" not in summary + advice


@pytest.mark.parametrize("polls", [True, False])
def test_an_error_of_cuda_that_torch_found_by_asking_is_an_earlier_one(polls):
    names = ["c10::detail::torchCheckFail", "c10::cuda::c10_cuda_check_implementation"]
    names += ["c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal" if polls else "at::native::copy_kernel"]
    frames = "".join(
        f"frame #{n}: {name} + 0x9 (0x7f{n} in /lib/libtorch_cuda.so)\n" for n, name in enumerate(names, 1)
    )
    line = "prterun noticed that process rank 7 with PID 0 on node node1 exited on signal 6 (Aborted).\n\n"
    summary, _ = said_of(line + OF_TORCH + frames)
    assert f"The thread shown reports a CUDA error in {names[-1]}" in summary
    assert ("so the error is of earlier GPU work." in summary) == polls
    assert summary.endswith("The text of the error is in the lines above the stack.")
    summary, _ = said_of(OF_TORCH + frames)
    assert ("so the error is of earlier GPU work." in summary) == polls


JOINED = """Exception ignored in: <bound method Bar.__del__ of x>
Traceback (most recent call last):
  File "bar.py", line 9, in __del__
    self.monitor.join()
  File "/usr/lib/python3.6/threading.py", line 1053, in join
    raise RuntimeError("cannot join current thread")
RuntimeError: cannot join current thread
"""


def test_an_exception_that_python_ignored_is_noise():
    summary, advice = said_of(JOINED)
    assert "tried to wait for its own end" in summary
    assert (
        "Python ignored that exception" in summary and "Unless the process was exiting then, it did no harm" in summary
    )
    assert "look for its error elsewhere" in advice and "CUDA" not in advice


@pytest.mark.parametrize(("inner", "cuda"), [("cudaFree", True), ("Pool::free_all", False)])
def test_advice_about_cuda_needs_cuda(inner, cuda):
    frames = ("raise", "abort", inner, "Pool::~Pool", "exit", "main")
    text = "".join(f"#{number}  0x00007f0{number} in {name} ()\n" for number, name in enumerate(frames))
    text = "Program terminated with signal SIGSEGV, Segmentation fault.\n" + text
    verdict = judge(parse_files([("text", text.encode())])).verdict
    assert verdict.cause == "destructor-or-teardown"
    advice = " ".join(one.action for one in verdict.remedies)
    assert f"free {'CUDA ' if cuda else ''}objects before main() returns" in advice


CUT = """                #{number}  0x00007ffff331905c {name} (libc.so.6 + 0x11005c)

                Stack trace of thread 1067663:
                #0  0x00007ffff3298c20 pthread_cond_wait (libc.so.6 + 0x8fc20)
                #1  0x00007ffff3299a42 start_thread (libc.so.6 + 0x90a42)
"""
OF_CORE = "Core was generated by `./app'.\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            CUT.format(number=5, name="__clone3"),
            "where every thread begins (frames 0-4 are missing). The text",
        ),
        (GDB.replace("#1", "#4").replace("#0", "#3"), "does not show (frames 0-2 are missing), reached through decode"),
        (GDB.replace("#1", "#2").replace("#0", "#1"), "does not show (frame 0 is missing), reached through decode"),
        (GDB, "is in decode (gpt.cc:66)"),
    ],
)
def test_the_outermost_frames_are_not_where_a_thread_is(text, says):
    assert says in verdict_of(text).summary


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        (OF_CORE + GDB, "gdb PROGRAM CORE"),
        (
            "Stack trace of thread 7:\n                #0  0x00007ffff331905c decode (app + 0x11005c)\n",
            "coredumpctl debug",
        ),
    ],
)
def test_a_core_file_makes_no_progress(text, tool):
    verdict = verdict_of(text)
    assert "making progress" not in verdict.summary and "A core file shows one moment" in verdict.summary
    assert tool in verdict.remedies[0].action
    assert not any("30 s apart" in one.action for one in verdict.remedies)
    assert not any("second dump" in one for one in verdict.missing) or "gdb" in tool


POOL = """test_submit (app.tests.Pool.test_submit) ... Timeout (3:20:00)!

Thread 0x000000082e546e00 (most recent call first):  File "/lib/concurrent/futures/interpreter.py", line 190 in run
  File "/lib/concurrent/futures/thread.py", line 85 in run
  File "/lib/concurrent/futures/thread.py", line 118 in _worker

Thread 0x0000000825a7c000 (most recent call first):
  File "/lib/threading.py", line 359 in wait
  File "/lib/concurrent/futures/_base.py", line 443 in result
  File "/lib/test/test_pool.py", line 251 in test_submit
"""
SECOND = """
Thread 0x0000000825a7c001 (most recent call first):
  File "/lib/app.py", line 7 in task
  File "/lib/concurrent/futures/thread.py", line 85 in run
  File "/lib/concurrent/futures/thread.py", line 118 in _worker
"""


def test_a_test_that_ran_into_its_limit_waits_for_the_task_of_a_pool():
    verdict = verdict_of(POOL)
    assert verdict.summary == (
        "Thread 0x000000082e546e00 was in run (interpreter.py:190) when faulthandler's timeout of 3:20:00 expired. "
        "What the timer watched had not ended by then; the text does not show whether it was stuck or slow. Thread "
        "0x0000000825a7c000 waited for a pool's task in Future.result, called from test_submit (test_pool.py:251): "
        "probably for this one, the only one in the text."
    )
    assert not any("30 s apart" in one.action for one in verdict.remedies)


@pytest.mark.parametrize("text", [POOL + SECOND, POOL.replace("in result", "in add_done_callback")])
def test_of_two_tasks_nobody_knows_which_one_is_waited_for(text):
    assert "pool's task" not in verdict_of(text).summary


def test_a_thread_without_a_heading_has_no_number_of_ours():
    text = POOL.split("\n", 3)[3]
    assert verdict_of(text).summary.startswith("A thread whose heading is not in the text is in run (thread.py:85)")


def test_a_stack_of_an_exception_has_no_heading_that_could_be_missing():
    died = (REAL / "batch-6" / "sglang3836-faulthandler.txt").read_text()
    assert "heading" not in verdict_of(died).summary


PART = """__lll_lock_wait (futex=0x55882275e980, private=0) at lowlevellock.c:52

Thread 25 (Thread 0x7f4672d5e000 (LWP 638173)):
#0  futex_wait_cancelable (private=0, futex_word=0x55882272f930) at futex-internal.h:183
#1  __pthread_cond_wait (cond=0x55882272f908, mutex=0x55882272f8e0) at pthread_cond_wait.c:647
"""


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("+ gdb -batch -ex 'thread apply all bt' -p 638148\n+ tee gdb_bt.638148.log\n", "gdb_bt.638148.log"),
        ("=== HANG DETECTED, DUMPING GDB BACKTRACE TO [/mnt/bt/gdb.log] ===\n+ tee gdb_bt.1.log\n", "/mnt/bt/gdb.log"),
        ("Writing stack traces to /tmp/s.txt.\n", "/tmp/s.txt"),
        ("$ gdb -p 638148 -batch -ex 'thread apply all bt' > all.txt\n", "all.txt"),
        ("$ gdb -p 638148 -batch -ex 'thread apply all bt' 2>&1 | tee all.txt\n", "all.txt"),
        ("$ gdb -p 638148 -batch -ex 'thread apply all bt' 2>errors.txt\n", ""),
        ("+ tee server.log\n", ""),
        ("dumping stacks to the log\n", ""),
    ],
)
def test_a_dump_that_was_saved_need_not_be_made_again(line, file):
    advice = first_advice(line + PART)
    assert advice.endswith(f"only a part: gdbext diagnose {file}") if file else advice.startswith("Dump all threads")
