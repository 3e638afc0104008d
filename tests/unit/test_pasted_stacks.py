"""Pasted stacks whose answer must not contradict what they show."""

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.parsers import parse_files


def verdict_of(text):
    return judge(parse_files([("a.txt", text.encode())])).verdict


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
