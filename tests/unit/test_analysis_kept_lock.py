"""A thread that keeps a lock while it naps, or a module while it imports it, and another one that waits for that."""

from dataclasses import replace

import pytest

from gdbext.analysis.verdict.judge import judge
from gdbext.model.activity import Activity, Child
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


TAKES = stack("__lll_lock_wait@libc.so.6", "pthread_mutex_lock@libc.so.6", "Condition::wait@engine", *MAIN, state="S",
              syscall=FUTEX, switches=0)  # fmt: skip
EVENT = LockWait(120, "condvar", 0x30, Missing("a condition variable has no owner"), timed=True, still=True)


def notifier(*frames, switches=3):
    waits = ("futex_wait@libc.so.6", "pthread_cond_timedwait@libc.so.6", *frames)
    notifies = stack(*waits, *MAIN, state="S", syscall=FUTEX, switches=switches, cpu=0.001)
    return process(0, RELOADS, TAKES, notifies, locks=(WAIT, EVENT))


def test_native_code_that_waits_for_a_moment_again_and_again_with_a_lock_is_named_too():
    frames = ("Event::wait@engine", "Condition::notify_one@engine")
    found = seen(notifier(*frames), notifier(*frames))
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "low", (0,))
    assert seen(notifier(*frames)).decided_by, "it may give the lock back"
    assert not seen(notifier("Event::wait@engine", "Condition::clear@engine"), notifier(*frames)).culprits
    assert not seen(notifier(*frames, switches=0), notifier(*frames, switches=0)).culprits


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


IMPORTS = ("_find_and_load_unlocked@importlib/_bootstrap.py:120", "_find_and_load@importlib/_bootstrap.py:9")
FED = stack(
    *("sem_wait@libc.so.6", "_ModuleLock.acquire@importlib/_bootstrap.py:120", "load@plugin.py:7", *MAIN),
    state="S", syscall=FUTEX, switches=0, still=0,
)  # fmt: skip
ASKS = stack("read@libc.so.6", "_recv@multiprocessing/connection.py:398", "map@jobs.py:6", "<module>@plugins.py:4",
             *IMPORTS, *MAIN, state="S", switches=70, cpu=0.008)  # fmt: skip


def importer(asks=ASKS, activity=Activity(1.3, read_bytes=1274, written_bytes=1638), others=()):
    lock = LockWait(110, "semaphore", 0x10, Missing("a semaphore has no owner"), still=True)
    return process(0, asks, FED, *others, locks=(lock,), activity=activity)


def test_who_asks_again_and_again_in_an_import_keeps_its_module_from_a_thread():
    found = seen(importer(), importer())
    assert (found.cause, found.confidence, found.culprits) == ("lock-order-deadlock", "low", (0,))
    assert "for a module that thread 100 of pid 100 is importing, which wakes up again and again" in found.summary
    assert "do not wait for threads in what an import runs" in found.summary
    assert seen(importer()).decided_by is not None


@pytest.mark.parametrize(
    "one",
    [
        importer(replace(ASKS, cpu=0.6)),
        importer(activity=Activity(1.3, read_bytes=10**9)),
        importer(activity=Activity(1.3, children=(Child("cc1", 9, 0.9),))),
        importer(others=(ASKS,)),
    ],
    ids=["it computes", "it loads", "a child compiles", "either may have the module"],
)
def test_an_import_that_takes_long_is_no_hang(one):
    assert seen(one, one).cause != "lock-order-deadlock"
