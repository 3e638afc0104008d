"""Threads of the libraries under GPU jobs: what the innermost frames of a waiting thread say, and who only serves."""

from pathlib import Path

import pytest

from gdbext.analysis.stacks.thread_kind import judge_thread
from gdbext.model.stack import Frame, ThreadStack

DATA = Path(__file__).parents[1] / "data"
LINES = [
    line for name in ("library-waits", "library-calls") for line in (DATA / f"{name}.txt").read_text().splitlines()
]
ROWS = [line.split(" | ", 1) for line in LINES if not line.startswith("#")]


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


LAMBDA = (
    "app::Pool::Pool::{lambda()#1}::operator()@app",
    "std::__invoke_impl<void, app::Pool::Pool(int)::{lambda()#1}>@app",
)
RUN = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<app::Pool::Pool(int)::{lambda()#1}> > >::_M_run@app"


@pytest.mark.parametrize(
    "outer",
    [
        ("app::Pool::loop@app", *ENTRY),
        ("app::Pool::loop@app", *LAMBDA, RUN, *ENTRY),
        (*LAMBDA, RUN, *ENTRY),
        (RUN, *ENTRY),  # its function was inlined
        ("app::Pool::loop@app", "std::__1::__thread_proxy<app::Pool>@app", "_pthread_start@libsystem_pthread.dylib"),
        ("app::Pool::loop@app", "boost::detail::thread_data<app::F>::run@app", "thread_proxy@libboost_thread.so"),
        ("uv_cond_wait@app", "serve@app", "_pthread_body@libsystem_pthread.dylib"),
    ],
)
def test_a_thread_whose_own_function_waits_is_at_rest(outer):
    assert judged(*WAIT, *outer).helper == "waiting for work"


@pytest.mark.parametrize(
    "frames",
    [
        (*WAIT, "app::Queue::pop@app", "app::Job::run@app", *ENTRY),  # within its work
        (*WAIT, "app::serve@app", "main@app"),  # the main thread
        (*WAIT, "main@app", "__libc_start_main@libc.so.6", "_start@app"),  # where the debugger goes on behind `main`
        (*WAIT, "std::__future_base::_State_baseV2::_M_do_set@app", RUN, *ENTRY),  # made for one task
        (*WAIT, "app::Queue::pop@app", "app::Job::run@app", *LAMBDA, RUN, *ENTRY),
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


@pytest.mark.parametrize(
    "name", ["c10d::detail::SocketImpl::waitForInput", "app::waitForOutputDone", "app::wait_for_inputs"]
)
def test_letters_of_a_device_inside_of_a_word_are_none(name):
    assert judged("poll@libc.so.6", f"{name}@app", "main@app").kind != "device-sync"


@pytest.mark.parametrize(
    "name", ["app::waitForDevice", "app::wait_for_gpu", "app::synchronizeNPU", "app::waitOnGpuQueue"]
)
def test_a_device_in_a_name_is_waited_for(name):
    assert judged("sched_yield@libc.so.6", f"{name}@app", "main@app").kind == "device-sync"


@pytest.mark.parametrize("name", ["pthread_mutex_unlock", "__GI___pthread_mutex_unlock", "pthread_rwlock_unlock"])
def test_who_unlocks_waits_for_no_lock(name):
    assert judged(f"{name}@libc.so.6", "app::f@app", "main@app").kind != "mutex"


def test_the_loop_of_a_server_that_has_called_a_function_is_not_idle():
    called = ("std::_Function_handler<void (), f>::_M_invoke@app", "std::function<void ()>::operator()@app")
    assert not judged(*called, "server_queue::start_loop@llama-server", "main@llama-server").idle
