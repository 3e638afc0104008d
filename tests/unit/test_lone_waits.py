"""What one pasted thread waits for, told by the frames and values that say it, and not where they do not."""

import pytest

from gdbext.analysis.stacks.outer_names import begun_work, lacks_main, runs_locked
from gdbext.analysis.verdict.judge import judge
from gdbext.model.stack import Frame
from gdbext.parsers import parse_files

pytestmark = pytest.mark.pure


def diagnosis(text):
    return judge(parse_files([("pasted.txt", text.encode())]))


def told(text):
    verdict = diagnosis(text).verdict
    return verdict.summary, " | ".join(one.action for one in verdict.remedies)


def stack(*frames, head=""):
    return head + "".join(f"#{number}  0x00007f31a90c{number:04x} in {one}\n" for number, one in enumerate(frames))


CONDITION = "pthread_cond_wait@@GLIBC_2.3.2 () from /lib/libpthread.so.0"
MUTEX = "pthread_mutex_lock (mutex=0x7b5928) at pthread_mutex_lock.c:114"
FUTEX = "__futex_abstimed_wait_common64 (abstime=0x{until}, futex_word=0x5555 <{symbol}>) at futex-internal.c:57"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["Wait", "XlaClient::InitializeDevices"], "XlaClient::InitializeDevices"),
        (["pool_get", "load_model", "main"], "load_model"),
        (["Wait", "ns::Loader<int, ns::Init>::SaveAll"], "ns::Loader<int, ns::Init>::SaveAll"),
        (["Queue::pop", "Pool::worker_loop", "Pool::init"], None),
        (["Queue::pop", "download", "initial_payload"], None),
        (["gomp_barrier_wait_end", "tbb::commit_wait"], None),
    ],
)
def test_work_that_was_begun_has_a_name_and_no_loop_is_nearer(names, found):
    frame = begun_work([Frame(name) for name in names])
    assert (frame.function if frame is not None else None) == found


@pytest.mark.parametrize(
    ("caller", "found"),
    [
        ("wise_flush_locked", True),
        ("Pool::DrainLocked", True),
        ("putc_unlocked", False),
        ("Mutex::IsLocked", False),
        ("page_is_unlocked", False),
        ("blocked", False),
    ],
)
def test_who_runs_with_a_lock_held_says_so(caller, found):
    assert (runs_locked([Frame("callback"), Frame(caller), Frame("main")]) is not None) == found
    assert runs_locked([Frame(caller)]) is None


def test_whoever_loads_is_hardly_idle():
    summary, _ = told(stack(CONDITION, "Latch::Wait ()", "Engine::LoadWeights () at engine.cc:12"))
    assert "Engine::LoadWeights (engine.cc:12) does work, so the thread is probably not idle" in summary
    summary, _ = told(stack(CONDITION, "Latch::Wait ()", "Engine::next_request () at engine.cc:12"))
    assert "whether it is merely idle" in summary


def test_a_lock_that_a_caller_has_by_its_name_may_be_its_own():
    summary, advice = told(
        stack("pthread_mutex_lock () from /lib/libpthread.so.0", "cb ()", "flush_locked () at w.c:4")
    )
    assert "flush_locked (w.c:4) suggests that a lock is already held there" in summary
    assert "__data.__owner" in advice
    summary, advice = told(stack("pthread_mutex_lock () from /lib/libpthread.so.0", "cb ()", "flush () at w.c:4"))
    assert "by its name" not in summary and "__owner" not in advice


def test_the_address_of_a_mutex_leads_to_its_holder():
    waits = "__lll_lock_wait (futex=0x7b5928) at lowlevellock.c:45"
    assert "x/3dw 0x7b5928" in told(stack(waits, MUTEX, "take (mutex=0x60f500)"))[1]
    hidden = "pthread_mutex_lock (mutex=<optimized out>) at pthread_mutex_lock.c:114"
    assert "x/3dw" not in told(stack(hidden, "take (mutex=0x60f500)"))[1]


def test_the_variable_of_a_lock_is_its_name():
    delay = "base::internal::SpinLockDelay (w=0x7f16 <tcmalloc::Static::pageheap_lock_>, value=2) at spinlock.h:84"
    assert "waits for the lock tcmalloc::Static::pageheap_lock_ in" in told(stack(delay, "Populate ()"))[0]
    assert (
        "waits for a lock in" in told(stack(delay.replace(" <tcmalloc::Static::pageheap_lock_>", ""), "Populate ()"))[0]
    )


@pytest.mark.parametrize("symbol", ["gil_cond+40", "gil_mutex", "_PyRuntime+1228"])
def test_a_variable_of_the_interpreter_tells_that_it_is_the_gil(symbol):
    summary, advice = told(stack(FUTEX.format(until="7ffe", symbol=symbol)))
    assert "waits for the GIL" in summary and "py-spy dump --native" in advice


@pytest.mark.parametrize("symbol", ["g_cv_wait+44", "my_gil_conditions", "PyRuntime_copy+8"])
def test_other_variables_are_no_gil(symbol):
    assert "GIL" not in told(stack(FUTEX.format(until="7ffe", symbol=symbol)))[0]


def test_who_waits_without_a_limit_waits_for_no_timer():
    assert "or a timer" not in told(stack(FUTEX.format(until="0", symbol="queue+8")))[0]
    assert "or a timer" in told(stack(FUTEX.format(until="7ffe0", symbol="queue+8")))[0]


@pytest.mark.parametrize(
    "call", ["PMPI_Test", "MPI_Iprobe", "mpi_testall_", "cudaStreamQuery", "cudaEventQuery", "ncclCommGetAsyncError"]
)
def test_who_asks_does_not_wait(call):
    summary, advice = told(stack(f"{call} () from /opt/lib.so", "task () at task.c:111"))
    assert "returns at once" in summary and "which peer it waits for" not in summary
    assert "compare the program's own frames" in advice and "a thread that moved is not stuck" not in advice


@pytest.mark.parametrize("call", ["PMPI_Wait", "MPI_Probe", "cudaStreamSynchronize", "MPI_Recv"])
def test_who_waits_does_not_only_ask(call):
    assert "returns at once" not in told(stack(f"{call} () from /opt/lib.so", "task () at task.c:111"))[0]


@pytest.mark.parametrize(
    ("frames", "collective"),
    [
        (["MPIR_Wait ()", "MPIC_Sendrecv ()", "MPIR_Alltoall_intra_pairwise ()"], "all_to_all"),
        (["opal_progress ()", "ompi_request_default_wait ()", "ompi_coll_base_bcast_intra_binomial ()"], "broadcast"),
        (["MPIR_Wait ()", "MPIR_Bcast_intra_scatter_recursive_doubling_allgather ()"], "broadcast"),
        (["MPIR_Wait ()", "MPIR_Allreduce_intra_recursive_doubling ()", "PMPI_Comm_dup ()"], None),
        (["MPIR_Wait ()", "MPIR_Allreduce_intra_recursive_doubling ()", "MPID_Init ()"], None),
        (["opal_progress ()", "ompi_coll_base_sendrecv_actual ()"], None),
    ],
)
def test_what_does_a_collective_names_it_where_the_call_is_cut(frames, collective):
    assert diagnosis(stack(*frames)).processes[0].wait.collective == collective


def test_a_task_that_waits_for_an_event_is_no_idle_worker():
    sleep = (CONDITION, "Realm::CondVar::wait () at mutex.cc:231", "Realm::KernelThreadTaskScheduler::worker_sleep ()")
    waits = "Realm::Thread::wait_for_condition<Realm::EventTriggeredCondition> () at threads.inl:218"
    summary, advice = told(stack(*sleep, waits))
    assert "is in a task that waits for a Realm event" in summary and "idle" not in summary
    assert "on every node" in advice
    assert "whether it is merely idle" in told(stack(*sleep))[0]


def test_a_driver_is_no_peer():
    summary, advice = told(stack("write () from /lib/libc.so.6", "cxil_map () at src/libcxi.c:828", "cxip_do_map ()"))
    assert "driver of the network adapter" in summary and "peer" not in summary
    assert "/proc/PID/task/*/stack" in advice
    assert "waiting for a peer" in told(stack("cxip_cq_progress () at cxip_cq.c:3", "fi_cq_read ()"))[0]


def test_a_lock_of_python_code_is_not_the_gil():
    frames = ("PyThread_acquire_lock ()", "lock_PyThread_acquire_lock ()", "PyEval_EvalFrameEx ()")
    summary, advice = told(stack(*frames))
    assert "waits to acquire a Python lock" in summary and advice.startswith("Dump the Python stacks too")
    summary, advice = told(stack("PyThread_acquire_lock ()", "_enter_buffered_busy ()"))
    assert "Python lock" not in summary and "Python stacks" not in advice


def test_the_garbage_collector_is_named():
    summary, _ = told(stack("visit_decref (op=0x1) at Modules/gcmodule.c:444", "collect () at Modules/gcmodule.c:1214"))
    assert "is in Python's garbage collector" in summary
    assert "garbage" not in told(stack("collect () at src/collect.c:3", "main () at main.c:1"))[0]


def test_pid_and_host_of_a_heading_are_in_the_command():
    text = "node=node7, pid=23639:\n" + stack(
        "poll () from /lib/libc.so.6", "ask () at a.c:1", head="Thread 4 (LWP 9):\n"
    )
    summary, advice = told(text)
    assert summary.startswith("Thread 4 of pid 23639") and "The main thread, thread 1, is not in the text." in summary
    assert advice.startswith("On node7: ") and "gdb -p 23639 " in advice
    both = text + text.replace("23639", "23640")
    assert "gdb -p 2364" not in told(both)[1]


@pytest.mark.parametrize(
    ("head", "lacks"),
    [
        ("Thread 4 (LWP 9):\n", True),
        ("Thread 1 (LWP 9):\n", False),
        ("", False),
        ("Thread 0x7f11 (LWP 328346):\n", False),
    ],
)
def test_only_a_debuggers_number_tells_that_the_main_thread_is_missing(head, lacks):
    assert lacks_main(parse_files([("a.txt", stack(CONDITION, head=head).encode())]).processes[0]) == lacks


def test_a_handler_waits_for_itself_only_where_what_it_interrupted_may_have_the_lock():
    handler = ("pthread_mutex_lock () from /lib/libc.so.6", "Profiler::on_signal () at profiler.cc:5")
    own = stack(*handler, "X ()").replace("0x00007f31a90c0002 in X ()", "<signal handler called>")
    assert "it already holds" in told(own + "#3  0x00007f31 in Profiler::sample () at profiler.cc:9\n")[0]
    assert "it already holds" not in told(own + "#3  0x00007f31 in XSync () from /usr/lib/libX11.so.6\n")[0]
    crossed = told(own + "#3  0x00007f31 in malloc () from /lib/libc.so.6\n#4  0x00007f32 in parse () at p.cc:1\n")[0]
    assert "another thread holds" in crossed and "it already holds" not in crossed


def test_an_address_is_no_name():
    text = "".join(f" \tnvcuda.dll!00007ffb6d89998{number}()\tUnknown\n" for number in range(5))
    assert "is in nvcuda.dll (no symbols)" in told(text)[0]


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        (["poll () from /lib/libc.so.6", "?? () from /lib/libcuda.so.1"], "libcuda.so.1"),
        (["__lll_lock_wait ()", MUTEX, "g_rec_mutex_lock () at g.c:3", "set_state () at e.c:1"], "set_state"),
        (["__lll_lock_wait ()", MUTEX, "g_rec_mutex_lock () at g.c:3"], "g_rec_mutex_lock"),
    ],
)
def test_the_table_shows_the_frame_that_tells_most(frames, shown):
    judged = diagnosis(stack(*frames))
    frame = judged.snapshot.processes[0].threads[0].frames[judged.processes[0].threads[0].shown]
    assert shown in (frame.function, frame.library)


def test_the_clock_of_an_event_loop_is_read_by_who_polls():
    clock = ("__vdso_clock_gettime () at vclock_gettime.c:124", "clock_gettime () from /lib64/librt.so.1")
    summary, advice = told(stack(*clock, "gettime () at event.c:372", "update_time_cache () at event.c:430"))
    assert "polls in libevent's loop" in summary and "compare the program's own frames" in advice


@pytest.mark.parametrize(
    ("call", "local"),
    [("PMIx_Get () at pmix_client_get.c:108", True), ("PMI2_KVS_Get () at a.c:3", True), ("PMIx_Fence ()", False)],
)
def test_a_value_of_the_launcher_is_asked_from_its_daemon_on_this_host(call, local):
    started = stack(CONDITION, call, "ompi_mpi_init () at init.c:2", "PMPI_Init () at pinit.c:66", "main () at m.c:1")
    summary, advice = told(started)
    assert ("That server is the launcher's daemon on this host" in summary) == local
    assert ("launcher.txt" in advice) == local
    if local:
        name = call.replace("() at ", "(") + ")"
        assert f"is initializing MPI in ompi_mpi_init, reached from main (m.c:1), and waits in {name} for" in summary
    summary, advice = told(stack(CONDITION, call, "work () at m.c:1"))
    assert ("That server is the launcher's daemon on this host" in summary) == local


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (
            "grpc::ClientReaderWriter<istio::mixer::v1::QuotaRequest, istio::mixer::v1::QuotaResponse>::Write ()",
            "grpc::ClientReaderWriter<QuotaRequest, QuotaResponse>::Write",
        ),
        ("grpc::internal::BlockingUnaryCallImpl<A, B>::Do ()", "grpc::internal::BlockingUnaryCallImpl<A, B>::Do"),
        ("grpc::ServerReader<A>::Read ()", ""),
    ],
)
def test_a_client_of_grpc_waits_for_its_call(call, name):
    summary, advice = told(
        stack("epoll_wait ()", "grpc_completion_queue_pluck ()", "grpc::CompletionQueue::Pluck ()", call)
    )
    assert (f"waits as a gRPC client, in {name}. The text does not show why that call" in summary) == bool(name)
    assert ("give the call a deadline" in advice) == bool(name)


def test_a_client_of_grpcio_waits_for_its_call():
    frames = "    _wait_once (grpc/_common.py:112)\n    result (grpc/_channel.py:700)\n    fetch (client.py:20)\n"
    summary, advice = told('Process 12: python\nThread 12 (idle): "MainThread"\n    wait (threading.py:302)\n' + frames)
    assert "Pid 12 waits as a gRPC client, in result (_channel.py:700)" in summary and "pid=12" in advice


@pytest.mark.parametrize(
    ("frames", "begun"),
    [
        (
            ("rocksdb::port::CondVar::Wait ()", "rocksdb::InstrumentedCondVar::Wait ()", "DBImpl::WaitForCompact ()"),
            "DBImpl::WaitForCompact waits for the end of work, so",
        ),
        (
            (
                "tensorflow::Notification::WaitForNotification ()",
                "Session::Wait ()",
                "tensorflow::DirectSession::Run ()",
            ),
            "tensorflow::DirectSession::Run does work, so",
        ),
        (("boost::condition_variable::wait ()", "Queue::WaitForTask ()", "Pool::worker_loop ()"), ""),
        (("Latch::Wait ()", "EventLoop::Run ()", "DirectSession::RunLoop ()"), ""),
    ],
)
def test_wrappers_of_a_wait_are_no_place_and_a_wait_for_begun_work_is_hardly_idle(frames, begun):
    summary, _ = told(stack(CONDITION, *frames))
    assert ("probably not idle" in summary) == bool(begun) and begun in summary
    assert "CondVar::Wait" not in summary and "Notification::" not in summary and "boost::" not in summary


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ("(gdb) bt\n", "`thread apply all bt` at the (gdb) prompt (no second debugger can attach), saved as dump.txt;"),
        ("(cuda-gdb) bt\n", "`thread apply all bt` at the (cuda-gdb) prompt"),
        ("(gdb) detach\n", "gdb -p PID -batch -ex 'thread apply all bt' > dump.txt;"),
        ("", "gdb -p PID -batch -ex 'thread apply all bt' > dump.txt;"),
    ],
)
def test_a_debugger_that_has_the_process_prints_the_other_threads(prompt, command):
    _, advice = told(stack(CONDITION, "Latch::Wait ()", "Engine::next ()", head=prompt))
    assert f"Dump all threads of the process: {command}" in advice


def test_between_two_looks_of_a_debugger_the_process_runs():
    text = stack(CONDITION, "Latch::Wait ()", "Engine::next ()", head="(gdb) bt\n")
    advice = diagnosis(text).verdict.remedies[1].action
    assert advice.startswith(
        "Take two dumps at the (gdb) prompt (`thread apply all bt`, `continue`, Ctrl-C 30 s later, "
    )


def test_an_open_prompt_of_lldb_takes_its_own_command():
    frame = "  * frame #0: 0x00007fff228fecde libsystem_kernel.dylib`__psynch_cvwait + 10\n"
    _, advice = told(f"(lldb) bt\n* thread #1, queue = 'main', stop reason = signal SIGSTOP\n{frame}")
    assert "`thread backtrace all` at the (lldb) prompt" in advice
    _, advice = told(f"* thread #1, queue = 'main', stop reason = signal SIGSTOP\n{frame}")
    assert "lldb -p PID --batch" in advice


def test_a_loop_for_events_is_no_wait_for_a_peer():
    loop = "epoll_dispatch () from /lib/libopen-pal.so.0"
    heading = "[user@node1 run]$ pstack 18793\nThread 2 (Thread 0x7f21edc9e700 (LWP 18797)):\n"
    summary, advice = told(stack("epoll_wait () from /lib64/libc.so.6", loop, head=heading))
    assert summary.startswith("Thread 2 of pid 18793 waits for events in libevent's loop, in epoll_dispatch")
    assert "peer" not in summary and "gdb -p 18793" in advice
    assert summary.endswith("The main thread, thread 1, is not in the text.")
    summary, _ = told(stack("epoll_wait ()", loop, "opal_progress ()", "MPI_Recv ()", "main ()"))
    assert "is in MPI_Recv" in summary and "waiting for a peer" in summary


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            "    ac000000: MPIDIG_do_irecv: source=1, tag=0, count=1, datatype=4c000405\n"
            "    ac000001: create_unexp_rreq: source=2, tag=1, data_sz=0\n",
            "MPICH lists as pending: a receive from rank 1 (tag 0). No receive has matched the message that came from "
            "rank 2 (tag 1). The ranks are those of the communicator.",
        ),
        (
            "    ac000000: MPIDIG_do_irecv: source=-2, tag=-1, count=1\n",
            "MPICH lists as pending: a receive from any rank (any tag).",
        ),
        ("", "It is probably waiting for a peer; the text does not show which."),
    ],
)
def test_the_peer_that_mpich_lists_is_named(lines, says):
    head = f"2 pending requests in pool 0\n{lines}"
    summary, _ = told(stack("MPL_backtrace_show ()", "MPI_Recv () from /lib/libmpi.so.0", "main ()", head=head))
    assert summary.startswith("The process is in MPI_Recv") and says in summary
    if lines:
        assert "for a while: the rank behind `source=` has not sent yet" in told(head)[0]


IN_PYTHON = """#0  sem_wait () at ../nptl/sem_wait.S:85
#1  0x00000000005ff2a4 in PyThread_acquire_lock (lock=0x23422e0, waitflag=1) at ../Python/thread_pthread.h:324
#2  0x00000000006a0ba9 in lock_PyThread_acquire_lock (self=0x7f2716c05e00, args=()) at ../Modules/threadmodule.c:52
#3  0x00000000005b32e1 in _PyEval_EvalFrameDefault (
    f=Frame 0x2453e90, for file /usr/lib/python2.7/threading.py, line 339, in wait (self=<_Condition(a=<b>) at remote \
0x7f>, timeout=None), throwflag=0) at ../Python/ceval.c:2666
#4  0x00000000005b32e2 in PyEval_EvalFrameEx (f=Frame 0x2453e90, for file /usr/lib/python2.7/threading.py, line 339, \
in wait (self=1)) at ../Python/ceval.c:700
#5  0x00000000005b32e3 in frame_clear (f=Frame 0x2453e91, for file /opt/app.py, line 3, in other ()) at frame.c:3
#6  0x00000000005b32e4 in PyEval_EvalFrameEx (f=Frame 0x2453e92, for file /opt/app.py, line 9, in main
"""


def test_c_code_shows_the_python_frame_that_it_runs():
    (thread,) = diagnosis(IN_PYTHON).snapshot.processes[0].threads
    shown = [(frame.function, frame.line, frame.language) for frame in thread.frames[3:]]
    assert shown == [
        ("wait", 339, "python"),
        ("PyEval_EvalFrameEx", 700, "native"),  # the same frame, not a call of it
        ("frame_clear", 3, "native"),
        ("main", 9, "python"),
    ]
    for text in (IN_PYTHON, IN_PYTHON.replace("f=Frame", "f=\n    Frame")):
        assert told(text)[0].startswith("The process waits for another thread, in wait (threading.py:339)")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  605 ?        01:03:30 dxr <defunct>\n", "Of the listed processes 605 has ended (defunct)"),
        ("root  605  585  0 10:00 ?  00:00:00 [dxr] <defunct>\n  7 ? Z 0:00 [dxr] <defunct>\n", "605 and 7 have ended"),
        ("  605 ?        01:03:30 dxr\n", ""),
    ],
)
def test_a_list_of_processes_shows_which_of_them_have_ended(line, said):
    answer = diagnosis(line + IN_PYTHON).verdict
    assert said in answer.summary and ("ended (defunct)" in answer.summary) == bool(said)
    assert answer.remedies[0].action.startswith("Find out why the defunct processes ended") == bool(said)


LISTED = """* 1    LWP 25490 "ld.lib.so" pseudo_end () at syscall/lx_syscall.S:29
  2    LWP 25491 "ld.lib.so" pseudo_end () at syscall/lx_syscall.S:29
"""
RECEIVES = """#0  pseudo_end () at syscall/lx_syscall.S:29
#1  0x00000000500511ad in lx_recvmsg (flags=0) at syscall/linux_syscalls.h:208
#2  Genode::ipc_call (dst=...) at base/ipc.cc:342
"""


@pytest.mark.parametrize("starred", ("1", "2"))
def test_a_stack_below_a_list_of_threads_is_of_the_one_with_the_star(starred):
    listed = LISTED if starred == "1" else LISTED.replace("* 1", "  1").replace("  2 ", "* 2 ")
    process = parse_files([("bt.txt", (listed + "\n" + RECEIVES).encode())]).processes[0]
    assert {thread.id: len(thread.calls) for thread in process.threads} == {"1": 1, "2": 1, starred: 3}


@pytest.mark.parametrize("label", ("pseudo_end", "__cp_end"))
def test_a_label_in_the_assembler_of_a_system_call_says_nothing(label):
    stack = RECEIVES.replace("pseudo_end", label)
    answer = judge(parse_files([("bt.txt", stack.encode())]))
    assert answer.processes[0].wait.kind == "io"
    assert "waits for I/O in Genode::ipc_call (ipc.cc:342)" in answer.verdict.summary
