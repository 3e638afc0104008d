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
