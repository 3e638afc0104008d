"""A driver of Ray waits for the result of a task that none of the processes that were read carries out."""

import pytest

from gdbext.analysis.verdict.judge import judge
from tests.unit.stacks import stack
from tests.unit.test_analysis_at_work import FUTEX, MAIN, live, process
from tests.unit.test_analysis_own_hangs import over_time

GETS = ("futex_wait@libc.so.6", "ray::core::GetRequest::Wait@_raylet.so", "get@ray/_private/worker.py:3009")
LOOPS = (
    "epoll_wait@libc.so.6",
    "boost::asio::detail::scheduler::run@_raylet.so",
    "ray::core::CoreWorker::RunTaskExecutionLoop@_raylet.so",
    "Worker.main_loop@ray/_private/worker.py:1069",
)
COLLECTS = ("sem_wait@libc.so.6", "Condition.wait@threading.py:327", "Event.wait@threading.py:629",
            "PythonGCThread.run@ray/_private/gc_collect_manager.py:29")  # fmt: skip


def driver(number=0):
    waits = stack(
        *GETS, "train@train.py:9", *MAIN, syscall=(202, 1, 393, 0, 0x7FFF0000, 0, 0), state="S", switches=4, still=2
    )
    return process(number, waits)


def idle_actor(number=1):
    main = stack(*LOOPS, *MAIN, state="S", switches=200, still=3, cpu=0.001)
    return process(number, main, stack(*COLLECTS, syscall=FUTEX, state="S", switches=0))


@pytest.mark.parametrize(
    ("others", "says"),
    [((), "no worker was read"), ((idle_actor(),), "pid 101 waits for tasks")],
    ids=["alone", "idle"],
)
def test_the_task_may_run_elsewhere_or_wait_for_resources(others, says):
    found = over_time(driver(), *others)
    assert (found.cause, found.finding, found.decided_by) == (
        "unknown",
        False,
        "ray list tasks --filter state!=FINISHED",
    )
    assert says in found.summary and "The task may run on another node" in found.summary
    (remedy,) = found.remedies
    assert "ray status says what is asked for in vain" in remedy.reason


def test_it_is_looked_for_longer_first():
    assert judge(live(driver(), idle_actor())).verdict.decided_by.startswith("gdbext diagnose --samples")


def test_an_actor_that_works_has_the_task():
    task = ("A.step@train.py:30", "actor_method_executor@ray/_private/function_manager.py:690",
            "__pyx_f_3ray_7_raylet_task_execution_handler@_raylet.so", "ray::core::CoreWorker::ExecuteTask@_raylet.so",
            *LOOPS[2:])  # fmt: skip
    works = stack("SHA256_Update@libcrypto.so.3", *task, *MAIN, state="R", switches=20, cpu=0.9)
    assert over_time(driver(), process(1, works)).cause == "not-a-hang"
