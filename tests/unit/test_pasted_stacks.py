"""Pasted stacks whose answer must not contradict what they show."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def verdict_of(text):
    return judge(parse_files([("a.txt", text.encode())])).verdict


def first_advice(text):
    return verdict_of(text).remedies[0].action


POOL = """TID 7113:
#0  0x0000ffff9d7822bc {wait}
#1  0x0000ffff9d779cd8 {call}
#2  0x0000ffff9d914fa4 {function}
"""
MUTEX = ("__lll_lock_wait", "__pthread_mutex_lock")
CONDITION = ("futex_wait_cancelable", "pthread_cond_wait")
THREAD = "triton::core::DynamicBatchScheduler::BatcherThread(int)"


@pytest.mark.pure
@pytest.mark.parametrize(
    ("wait", "function", "says"),
    [
        (MUTEX, THREAD, "Thread 7113 waits for a lock in"),
        (MUTEX, "folly::EventBase::loopForever()", "Thread 7113 waits for a lock in"),
        (MUTEX, "triton::core::RateLimiter::RegisterModelInstance(int)", "Thread 7113 waits for a lock in"),
        (CONDITION, "triton::core::RateLimiter::RegisterModelInstance(int)", "Thread 7113 waits for another thread"),
        (CONDITION, THREAD, "thread 7113) is idle"),
    ],
)
def test_a_thread_at_a_lock_that_somebody_has_is_not_idle(wait, function, says):
    summary = verdict_of(POOL.format(wait=wait[0], call=wait[1], function=function)).summary
    assert says in summary


AGAIN = """#0  0x0001 in __lll_lock_wait (futex=0x7f00{lock}) at lowlevellock.c:52
#1  0x0002 in {call} ({argument}=0x7f00{lock}) at {call}.c:27
#2  0x0003 in {inner} () at cache.c:40
#3  0x0004 in free_entry () at entry.c:20
#4  0x0005 in {outer} () at cache.c:90
#5  0x0006 in main () at main.c:8
"""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("lock", "inner", "outer", "says"),
    [
        (" <cache_lock>", "lookup", "expire", "waits for the lock cache_lock in lookup"),
        (" <cache_lock>", "Cache::get", "Cache::expire", "waits for mutex cache_lock, which it already holds"),
        ("", "lookup", "expire", "waits for a mutex that it already holds"),
    ],
)
def test_a_variable_is_a_lock_that_the_functions_of_a_file_need_not_hold(lock, inner, outer, says):
    text = AGAIN.format(call="pthread_mutex_lock", argument="mutex", lock=lock, inner=inner, outer=outer)
    assert says in verdict_of(text).summary


@pytest.mark.pure
@pytest.mark.parametrize(
    ("call", "argument", "recursive"),
    [("pthread_mutex_lock", "mutex", True), ("__GI___pthread_rwlock_wrlock", "rwlock", False)],
)
def test_a_reader_writer_lock_cannot_be_made_recursive(call, argument, recursive):
    text = AGAIN.format(call=call, argument=argument, lock="", inner="Cache::get", outer="Cache::expire")
    advice = verdict_of(text).remedies[0].action
    assert advice.startswith("Release the ")
    assert advice.endswith("make the lock recursive") == recursive


HANDLED = """#0  0x00007f01 in __libc_pause () at pause.c:30
#1  0x00007f02 in {handler} () at debug.c:820                   #2  <signal handler called>
#3  0x00007f03 in {inside} at x.c:172                                #4  0x00007f04 in map_memory () at cache.c:243
"""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("handler", "inside", "begins", "ends"),
    [
        ("ucs_debug_freeze", "futex_abstimed_wait ()", "A signal stopped the process in a wait, called by map_memory",
         "The process still exists: ucs_debug_freeze holds it for a debugger."),
        ("on_signal", "__GI___poll ()", "A signal stopped the process in a wait, called by map_memory",
         "the text does not show which."),
        ("Realm::realm_freeze", "strlen ()", "The process failed in strlen",
         "The process still exists: Realm::realm_freeze holds it for a debugger. The stack does not show why; the log "
         "lines above it may."),
        ("on_signal", "strlen ()", "The process died in strlen", "the log lines above it may."),
    ],
)  # fmt: skip
def test_a_signal_that_comes_in_a_wait_is_of_somebody_else(handler, inside, begins, ends):
    summary = verdict_of(HANDLED.format(handler=handler, inside=inside)).summary
    assert summary.startswith(begins)
    assert summary.endswith(ends)
    advice = first_advice(HANDLED.format(handler=handler, inside=inside))
    assert advice.startswith("Print all threads of the process") == (handler != "on_signal")


GLOG = """*** {signal} (@0x3e8) received by PID 5512 (TID 0x7f11b2c0a740) from PID 9646; stack trace: ***
    @     0x7f11b2e8d630 (unknown)
    @     0x7f11aa20b1c0 engine::Queue::take()
"""
SPYRE = """Signal Received: {number} ({name})
Signal Received from pid=9646
*** BACKTRACE ***
/opt/app/libengine.so(+0x44b80e)[0x7f872715a80e]
/lib64/libc.so.6(+0x3ebf0)[0x7f87f3853bf0]
/opt/app/libengine.so(engine_take+0x105)[0x7f87f3c0bdc5]
"""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "outside"),
    [
        (GLOG.format(signal="SIGTERM"), True),
        (GLOG.format(signal="SIGSEGV"), False),
        (SPYRE.format(number=15, name="Terminated"), True),
        (SPYRE.format(number=11, name="Segmentation fault"), False),
    ],
)
def test_a_stack_that_a_handler_of_sigterm_prints_is_no_cause(text, outside):
    summary = verdict_of(text).summary
    assert ("was ended by SIGTERM from pid 9646 while it was in " in summary) == outside
    assert summary.endswith("The stack only shows where the thread was at that moment.") == outside
    assert "gdb -p" not in first_advice(text)
    assert first_advice(text).startswith("Find out what the process is that sent the signal") == outside


MPI = """[node1:01167] [ 5] /opt/ucc/lib/libucc.so.1(ucc_service_allgather+0x104)[0x7f546b093c14]
[node1:01167] [ 6] /opt/ompi/lib/libmpi.so.40({outer}+0xf69)[0x7f548a851be9]
"""
UCX = """{prefix} 5 0x000000000002f7c2 uct_worker_progress()  /src/uct/api/uct.h:2458
{prefix} 6 0x000000000002f7c2 opal_progress()  /src/opal/runtime/opal_progress.c:231
"""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "inner"),
    [
        (MPI.format(outer="ompi_mpi_init"), "ucc_service_allgather"),
        (MPI.format(outer="PMPI_Allreduce"), "ucc_service_allgather"),
        (UCX.format(prefix=""), "uct_worker_progress"),
        (UCX.format(prefix="Sat Mar 13 07:11:30 2021<stderr>:"), "uct_worker_progress"),
        (UCX.format(prefix="[1,0]<stderr>:"), "uct_worker_progress"),
    ],
)
def test_a_stack_that_only_a_crash_prints_is_one_without_its_first_lines(text, inner):
    summary = verdict_of(text).summary
    assert (
        "died in a function that the text does not show (frames 0-4 are missing), reached through " + inner in summary
    )
    assert "gdb -p" not in first_advice(text)


FATAL = """[node1:2656:{index}:2728] {first}
[node1:2656:{index}:2728]   callbackq.c:93   Fatal: {fatal}
==== backtrace (tid:2728) ====
 0 0x0000000000050fdb ucs_callbackq_array_grow()  /build-result/src/ucx-bf8
 1 0x000000000001790f uct_worker_progress_register_safe()  /build-result/src/ucx-bf8
"""
NO_MEMORY = "mremap(0x1534, 4096, 8192, MAYMOVE) failed: Cannot allocate memory"


@pytest.mark.pure
@pytest.mark.parametrize(
    ("index", "first", "fatal", "quoted"),
    [
        ("a", NO_MEMORY, "cbq 0x10: could not allocate memory for slow_elems", "failed: Cannot allocate memory"),
        ("0", "ready", "cbq 0x10: could not allocate memory for slow_elems", "A memory allocation failed"),
        ("12", "ready", "the queue is broken", "the queue is broken"),
    ],
)
def test_the_fatal_line_of_ucx_gives_the_reason_and_the_thread(index, first, fatal, quoted):
    summary = verdict_of(FATAL.format(index=index, first=first, fatal=fatal)).summary
    assert summary.startswith("The log of pid 2656 reports: ")
    assert quoted in summary
    assert "died in ucs_callbackq_array_grow" in summary


CAUGHT = """[node1:5943:0:5947] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)
==== backtrace ====
    0  /opt/ucx/lib/libucs.so.0(ucs_handle_error+0x294) [0x7a843709cba4]
    1  /opt/ucx/lib/libucs.so.0(+0x38d65) [0x7a843709cd65]
{inner}    5  /opt/ucx/lib/libucp.so.0(+0x96d80) [0x7a840f0e5d80]
    6  /opt/ucx/lib/libuct.so.0(uct_tcp_ep_am_bcopy+0x8a) [0x7a843703404a]
"""
RETURN = "    3  /lib/x86_64-linux-gnu/libc.so.6(+0x42520) [0x7a8857a31520]\n"
COPY = "    4  /lib/x86_64-linux-gnu/libc.so.6(+0x1a67cd) [0x7a8857b957cd]\n"
CALLER = "an unnamed function of libucp.so.0, called from uct_tcp_ep_am_bcopy (libuct.so.0)"


@pytest.mark.pure
@pytest.mark.parametrize(
    ("inner", "place"),
    [(RETURN + COPY, f"an unnamed function of libc.so.6, called from {CALLER}"), (RETURN, CALLER)],
)
def test_behind_the_return_from_a_handler_the_c_library_is_what_failed(inner, place):
    summary = verdict_of(CAUGHT.format(inner=inner)).summary
    assert summary.startswith(f"Thread 5947 of pid 5943 died of SIGSEGV in {place};")


WAVE = """{head}
    #0  0x00007ae55df2ecf0 in shmem::load<long> (src=0x7ae55e583008) at src/assembly.hpp:125
    #1  0x00007ae55df2ecf1 in shmem::Context::test<long> (cmp=0, val=1) at src/context.hpp:432
"""


@pytest.mark.pure
def test_a_wavefront_is_no_thread_of_the_host():
    on_gpu = WAVE.format(head="  WFs: (0,0,0)/0\n  Backtrace:")
    assert verdict_of(on_gpu).summary.startswith(
        "On the GPU, wavefront (0,0,0)/0 is in shmem::load<long> (assembly.hpp"
    )
    assert first_advice(on_gpu).startswith("Print the wavefronts of every rank in rocgdb")
    assert "GPU" not in verdict_of(WAVE.format(head="")).summary


LOGGED = '(Worker pid={pid}) ERROR 08-27 11:12:18 base.py:382]   File "/opt/{file}", line 223, in {function}\n'
RAISED = "(Worker pid=11305) ERROR 08-27 11:12:18 base.py:382] RuntimeError: NCCL error: unhandled cuda error\n"


@pytest.mark.pure
@pytest.mark.parametrize("has", [True, False])
def test_the_exception_of_a_traceback_from_the_middle_is_told(has):
    first = LOGGED.format(pid=11305, file="nccl.py", function="NCCL_CHECK") + (RAISED if has else "")
    verdict = verdict_of(first + LOGGED.format(pid=11934, file="base.py", function="execute"))
    summary = verdict.summary
    assert not any("a logger printed" in line for line in verdict.other_errors)
    told = 'Pid 11305 raised "RuntimeError: NCCL error: unhandled cuda error". The text lacks the last line of the'
    assert (told in summary) == has
    assert summary.endswith("The exceptions below these tracebacks give the reason.") != has


@pytest.mark.pure
@pytest.mark.parametrize(("variable", "idle"), [("thread_status+896", True), ("job_status+896", False)])
def test_who_waits_for_the_status_of_a_pools_thread_is_idle(variable, idle):
    frame = "__futex_abstimed_wait_common64 (private=0, futex_word=0x7f935ced0860 <{}>) at ./nptl/futex-internal.c:57"
    text = f'  32   Thread 0x7f92557fa640 (LWP 80119) "python3" {frame.format(variable)}\n'
    assert ("is idle, as it would be in a healthy process" in verdict_of(text).summary) == idle
