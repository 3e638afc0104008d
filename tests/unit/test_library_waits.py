"""Threads of the libraries under GPU jobs: what the innermost frames of a waiting thread say, and who only serves."""

from pathlib import Path

import pytest

from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.model.stack import Frame, ThreadStack

TEXT = Path(__file__).parents[1] / "data" / "library-waits.txt"
ROWS = [line.split(" | ", 1) for line in TEXT.read_text().splitlines() if not line.startswith("#")]


def frame(text):
    name, _, place = text.rpartition("@")
    file, _, line = place.rpartition(":")
    if file.endswith(".py"):
        return Frame(name, file=file, line=int(line), language="python")
    return Frame(name, place)


def judged(*texts):
    return judge_thread(ThreadStack("1", tuple(map(frame, texts))))


@pytest.mark.parametrize(("kind", "frames"), ROWS)
def test_a_thread_waits_for_what_its_library_waits_for(kind, frames):
    found = judged(*frames.split(" < "))
    if kind == "helper":
        assert found.helper or found.idle
    else:
        assert (found.kind, found.helper) == (kind, None)


ENTRY = ("execute_native_thread_routine@libstdc++.so.6", "start_thread@libc.so.6")
WAIT = ("futex_wait@libc.so.6", "pthread_cond_wait@libc.so.6", "std::condition_variable::wait@libstdc++.so.6")


def test_a_thread_whose_own_function_waits_is_at_rest():
    assert judged(*WAIT, "app::Pool::loop@app", *ENTRY).helper == "waiting for work"


@pytest.mark.parametrize(
    "frames",
    [
        (*WAIT, "app::Queue::pop@app", "app::Job::run@app", *ENTRY),  # within its work
        (*WAIT, "app::serve@app", "main@app"),  # the main thread
        ("pthread_mutex_lock@libc.so.6", "app::Pool::loop@app", *ENTRY),  # a lock is no work
        (*WAIT, "app::Pool::loop@app"),  # the outer end is not known
    ],
)
def test_a_thread_is_not_at_rest(frames):
    assert judged(*frames).helper is None


def test_an_executor_that_works_is_no_helper():
    idle = judged("get@queue.py:170", "_worker@concurrent/futures/thread.py:81")
    works = judged(
        "synchronize@torch/cuda/__init__.py:8",
        "run@concurrent/futures/thread.py:58",
        "_worker@concurrent/futures/thread.py:83",
    )
    assert (idle.helper, works.helper, works.kind) == ("thread pool", None, "device-sync")
