"""A thread that looks at memory again and again, and nobody who could change it; and its twins."""

from dataclasses import replace

import pytest

from gdbext.model.activity import Activity
from gdbext.model.locks import LockWait
from gdbext.model.stack import Frame
from gdbext.model.tasks import PythonTask
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, lasting, process
from tests.unit.test_analysis_kept_lock import seen

SPINS = ("Pipe::push@program pipe.cpp:21", "draw@program draw.cpp:47")
YIELDS = stack("sched_yield@libc.so.6", *SPINS, *MAIN, state="R", cpu=0.98, switches=56)
JOINS = stack("__futex_wait@libc.so.6", "pthread_join@libc.so.6", "main@program", state="S", syscall=FUTEX, switches=0)
WAIT = LockWait(100, "join", 4096, 110, still=True)
QUIET = {"handlers": (), "activity": Activity(1.2)}


def test_a_process_with_one_thread_that_waits_for_another_one_by_memory_is_named():
    found = lasting(process(0, YIELDS, **QUIET))
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "looks again and again at memory in Pipe::push (pipe.cpp:21)" in found.summary
    assert "it has no other thread" in found.summary


def test_so_is_one_whose_other_threads_wait_for_it():
    found = lasting(process(0, JOINS, YIELDS, locks=(WAIT,), **QUIET))
    assert (found.cause, found.culprits) == ("other", (0,))
    assert "Thread 110 of pid 100" in found.summary
    assert "all its other threads wait" in found.summary


READS = stack("read@libc.so.6", "take@program", "main@program", state="S", syscall=(0, 3, 1, 1, 0, 0, 0), switches=0)
COMPUTES = stack("fill@program", "main@program", state="R", cpu=0.9, switches=9)


@pytest.mark.parametrize(
    "threads",
    [(YIELDS, READS), (YIELDS, COMPUTES), (JOINS, YIELDS, READS)],
    ids=["another reads", "another computes", "a third one reads"],
)
def test_nobody_is_blamed_while_a_thread_may_change_it(threads):
    assert not lasting(process(0, *threads, **QUIET)).culprits


@pytest.mark.parametrize(
    "fields",
    [{}, {**QUIET, "handlers": (10,)}, {**QUIET, "activity": Activity(1.2, resting=1)}],
    ids=["unknown", "a handler of a signal", "a child"],
)
def test_nor_while_something_else_may(fields):
    assert not lasting(process(0, YIELDS, **fields)).culprits


def test_nor_where_it_went_on_or_was_not_looked_at_for_long():
    elsewhere = stack("sched_yield@libc.so.6", "Pipe::pop@program", *MAIN, state="R", cpu=0.98, switches=56)
    assert not seen(process(0, elsewhere, **QUIET), process(0, YIELDS, **QUIET)).culprits
    assert not lasting(process(0, YIELDS, **QUIET), seconds=5.0).culprits
    assert not lasting(process(0, replace(YIELDS, left=3), **QUIET)).culprits


def napping_task(*, sleeps=0.01, marks=(1, 2), tasks=1):
    calls = (
        "SharedBuffer.write@buffer.py:72",
        "Handle._run@asyncio/events.py:80",
        "BaseEventLoop.run_forever@asyncio/base_events.py:607",
    )
    naps = ("clock_nanosleep@libc.so.6", "time_sleep@python3")
    nap = stack(*naps, *calls, *MAIN, state="S", sleeps=sleeps, switches=200, cpu=0.001, marks=marks,
                syscall=(230, 1, 1, 1, 0, 0, 0))  # fmt: skip
    flush = PythonTask(100, (Frame(function="SharedBuffer.flush", file="buffer.py", line=62, language="python"),))
    return process(0, nap, tasks=(flush,) * tasks, **QUIET)


def test_a_task_that_sleeps_in_the_thread_of_its_loop_lets_no_other_task_run():
    found = lasting(napping_task())
    assert (found.cause, found.confidence, found.culprits) == ("other", "low", (0,))
    assert "1 other task of that loop cannot run meanwhile" in found.summary
    assert lasting(napping_task(), seconds=3.0).decided_by is not None
    for other in (napping_task(sleeps=5.0), napping_task(tasks=0)):
        assert "cannot run meanwhile" not in lasting(other).summary
    assert "cannot run meanwhile" not in seen(napping_task(marks=(1, 3)), napping_task()).summary
