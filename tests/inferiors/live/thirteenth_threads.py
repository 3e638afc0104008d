"""Engines of one process that hang, thirteenth set: `thirteenth_threads.py NAME FOLDER`."""

import atexit
import ctypes
import queue
import threading
import time
import weakref

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.thirteenth_extension import extension

REPORT = ctypes.CFUNCTYPE(None, ctypes.c_int)


def heartbeat_and_interpreter():
    """As ray-project/ray#17700: the main thread submits tasks with the interpreter's lock and wants the core worker's
    mutex, which the heartbeat's thread has, and that wants the interpreter."""
    worker = extension(ctypes.PyDLL)
    seen = []
    report = REPORT(seen.append)
    worker.core_worker_submit()
    at("main")
    worker.core_worker_beat(report)
    while True:
        work_for(0.001)
        worker.core_worker_submit()


def take_all(results):
    while True:
        results.get()


def dead_actor_and_interpreter():
    """As ray-project/ray#26414: an actor has died and more tasks for it are submitted, with the interpreter's lock. The
    thread of I/O has the mutex of the tasks and tells Python of each that has failed."""
    core, results = extension(ctypes.PyDLL), queue.Queue()
    failed = REPORT(results.put)
    for _ in range(2):
        thread(take_all, results)
    for task in range(100):
        core.actor_submit(task, failed)
    at("main")
    core.actor_died()
    for task in range(100, 1 << 30):
        work_for(0.001)
        core.actor_submit(task, failed)


class Executor:
    """Retries tasks in an own thread, which ends when the executor has been thrown away. Who ends the program waits
    for that thread."""

    def __init__(self):
        self.jobs, self.wake = [], threading.Event()
        own = weakref.ref(self, lambda _, wake=self.wake: wake.set())
        self.thread = threading.Thread(target=submit_loop, args=(own, self.wake), name="RetryExecutor", daemon=True)
        self.thread.start()
        atexit.register(self.thread.join)

    def submit(self, job):
        self.jobs.append(job)
        self.wake.set()


def submit_loop(own, wake):
    while True:
        executor = own()
        if executor is None:
            return
        while executor.jobs:
            executor.jobs.pop()()
        del executor
        wake.wait()
        wake.clear()


def executor_not_collected():
    """As rohanpm/more-executors#178: the executor lies in a variable of the module, so that it is there still when
    what is done at exit joins its thread."""
    global executor
    executor = Executor()
    done = threading.Event()
    executor.submit(done.set)
    done.wait()
    time.sleep(0.2)
    at("main")


PROGRAMS = {
    "heartbeat-and-interpreter": heartbeat_and_interpreter,
    "dead-actor-and-interpreter": dead_actor_and_interpreter,
    "executor-not-collected": executor_not_collected,
}

if __name__ == "__main__":
    run(PROGRAMS)
