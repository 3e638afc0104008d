"""What a stop asks of the scheduler and of Python for the time that it lasts."""

import gc
import os
import resource
import threading

import pytest

from gdbext.capture.stop.no_interruption import undisturbed


def permitted():
    """Whether a thread of ours may be scheduled in real time."""
    found = []

    def ask():
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            return
        found.append(1)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return bool(found)


def policies():
    return {tid: os.sched_getscheduler(int(tid)) for tid in os.listdir("/proc/self/task")}


@pytest.fixture
def waiting():
    """Another thread of ours."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield thread
    end.set()
    thread.join()


def test_no_thread_of_ours_waits_for_a_processor(waiting):
    before = policies()
    with undisturbed():
        during = policies()
    assert policies() == before
    assert during[str(waiting.native_id)] == (os.SCHED_FIFO if permitted() else os.SCHED_OTHER)
    assert set(during) == set(before)


def test_an_error_leaves_nothing_changed(waiting):
    before = policies()
    with pytest.raises(KeyError), undisturbed():
        assert not gc.isenabled()
        raise KeyError
    assert policies() == before and gc.isenabled()


def test_without_a_file_to_spare():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with undisturbed():
            during = os.sched_getscheduler(0)
        after = os.sched_getscheduler(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert after == os.SCHED_OTHER
    assert during == (os.SCHED_FIFO if permitted() else os.SCHED_OTHER)
