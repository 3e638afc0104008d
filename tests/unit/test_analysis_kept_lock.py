"""A thread that keeps a lock while it naps, and another one that waits for the lock."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.locks import LockWait
from gdbext.model.missing import Missing
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, live, process

NAP = (230, 1, 1, 1, 0, 0, 0)
NAPS = ("clock_nanosleep@libc.so.6", "time_sleep@python3")
RELOADS = stack(*NAPS, "tick@reload.py:4", *MAIN, state="S", syscall=NAP, sleeps=1.0, switches=4, cpu=0.001, marks=(9,))
SENDS = stack(
    *("sem_wait@libc.so.6", "rlock_acquire@python3", "_acquireLock@logging/__init__.py:235", "send@send.py:7", *MAIN),
    state="S", syscall=FUTEX, switches=0, still=0, marks=(4,),
)  # fmt: skip
FLUSHES = stack(*NAPS, "flush@send.py:93", *MAIN, state="S", syscall=NAP, sleeps=0.1, switches=17, cpu=0.001,
                marks=(1, 2, 3))  # fmt: skip
WAIT = LockWait(110, "mutex", 0x10, 120, still=True)


def logger(flushes=FLUSHES, wait=WAIT):
    return process(0, RELOADS, SENDS, flushes, locks=(wait,))


def seen(*looks, seconds=21.0):
    """The verdict on such looks, the last one so many seconds after the first."""
    last = len(looks) - 1
    taken = [replace(live(one), taken_at=seconds * at / max(last, 1)) for at, one in enumerate(looks)]
    return judge(replace(taken[-1], earlier=tuple(taken[:-1]))).verdict


def test_who_naps_with_a_lock_that_another_thread_waits_for_is_named():
    found = seen(logger(), logger())
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "low", (0,))
    assert (
        "for a lock that thread 120 of pid 100 holds, which sleeps again and again in flush (send.py:93)"
        in found.summary
    )


def test_one_look_does_not_tell_whether_it_will_give_the_lock_back():
    found = seen(logger())
    assert (found.cause, found.finding) == ("unknown", False)
    assert "holds, which sleeps again and again in flush (send.py:93)." in found.summary
    assert found.decided_by is not None


@pytest.mark.parametrize(
    "now",
    [
        logger(replace(FLUSHES, marks=(1, 2, 4))),
        logger(replace(FLUSHES, cpu=0.5)),
        logger(wait=replace(WAIT, still=False)),
        logger(wait=replace(WAIT, address=0x20)),
        logger(wait=replace(WAIT, owner=Missing("not read"))),
    ],
    ids=["its variables changed", "it computes", "the wait was over in between", "another lock", "owner unknown"],
)
def test_a_thread_that_gets_on_or_may_have_given_the_lock_back_is_not_named(now):
    assert seen(logger(), now).cause != "lock-order-deadlock"
