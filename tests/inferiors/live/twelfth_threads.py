"""Engines of one process with threads that hang, and healthy ones, twelfth set: `twelfth_threads.py NAME FOLDER`."""

import asyncio
import atexit
import ctypes
import functools
import itertools
import logging.handlers
import os
import queue
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.twelfth_extension import extension


class Children:
    """Programs, and a thread that notices their ends. Who waits for one has left an event for it."""

    def __init__(self):
        self.ends, self.started = {}, threading.Semaphore(0)
        thread(self.reap)

    def reap(self):
        while True:
            self.started.acquire()
            pid, _ = os.waitpid(-1, 0)
            if pid in self.ends:
                self.ends.pop(pid).set()

    def call(self, command, reports):
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ)
        self.started.release()
        if reports:
            print("started", pid, command, flush=True)
            time.sleep(0.3)  # the log is on a slow disk
        ended = self.ends[pid] = threading.Event()
        ended.wait()


def reaper_was_faster():
    """The program has ended, and the thread has noticed it, before there is an event for it."""
    children = Children()
    children.call("sleep 0.3", False)
    at("main")
    children.call("true", True)


def forward_log(pipe, seconds):
    """As notebooks do: what C++ writes comes by a pipe, line by line, and is shown by Python."""
    with open(pipe, "rb", buffering=0) as lines:
        for number in itertools.count():
            lines.read(4096)
            if number % 16 == 0:
                work_for(seconds)


def loads_weights(library, seconds):
    read, write = os.pipe()
    thread(forward_log, read, seconds)
    at("main")
    for first in itertools.count(0, 2000):
        library.log_tensors(write, first, 2000)


def log_pipe_and_interpreter():
    """C++ logs more than fits into the pipe, with the interpreter's lock, without which the other end reads nothing."""
    loads_weights(extension(ctypes.PyDLL), 0.0)


def log_pipe_is_read():
    """Healthy: C++ has given the interpreter's lock away, and the other end is slow."""
    loads_weights(extension(), 0.8)


def save_then_finish(library, saved):
    """The worker: a checkpoint, which the handler of a signal writes, then the end of the request."""
    os.kill(os.getpid(), signal.SIGUSR1)
    saved.wait()
    library.batch_done()


def handler_never_runs():
    """Python runs handlers in the main thread only, when that comes back to Python: it is in C++ until the request has
    ended, and the request waits for the handler."""
    library, saved = extension(), threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: saved.set())
    library.batch_begin(1)
    worker = threading.Timer(0.3, save_then_finish, (library, saved))
    worker.daemon = True
    worker.start()
    at("main")
    library.batch_wait()


class Weights:
    """Of a model, or of a part of it. They are loaded when they are first wanted."""

    def __init__(self, parts, seconds):
        self.parts, self.seconds = parts, seconds

    @functools.cached_property
    def tensors(self):
        if not self.parts:
            work_for(self.seconds)
            return 1
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda part: part.tensors, self.parts))


def property_of_whole_class():
    """Threads load the parts while the model's property is made: its lock is that of all objects of the class."""
    model = Weights([Weights([], 0.1) for _ in range(4)], 0.1)
    at("main")
    print(model.tensors, flush=True)


def properties_in_turn():
    """Healthy: three threads load parts, each takes a second, and one at a time has the lock of all."""

    def load():
        while True:
            print(Weights([], 1.0).tensors, flush=True)

    for _ in range(2):
        thread(load)
    at("main")
    load()


class Engine:
    """A thread of the library writes its log. When it is thrown away, it waits until all of that is written."""

    def __init__(self):
        self.records = queue.Queue()
        self.listener = logging.handlers.QueueListener(self.records, logging.StreamHandler())
        self.listener.start()

    def log(self, text):
        self.records.put(logging.makeLogRecord({"msg": text}))

    def __del__(self):
        self.log("the engine ends")
        self.records.join()


def engine_freed_at_finish():
    """The engine lies in a variable of a module: it is thrown away when the interpreter ends, and threads that are
    daemons do not run any more."""
    global engine
    engine = Engine()
    engine.log("a prompt")
    time.sleep(0.3)
    atexit.register(at, "main")


def microbatches_meet():
    """Healthy: two tasks meet after each layer, and one of them asks a program that needs 1.2 seconds."""

    async def microbatch(meets, command):
        while True:
            if command:
                await asyncio.to_thread(subprocess.run, ["sh", "-c", command], check=True)
            async with meets:
                pass

    async def main():
        meets = asyncio.Barrier(2)
        at("main")
        await asyncio.gather(microbatch(meets, ""), microbatch(meets, "sleep 1.2"))

    asyncio.run(main())


PROGRAMS = {
    "reaper-was-faster": reaper_was_faster,
    "log-pipe-and-interpreter": log_pipe_and_interpreter,
    "log-pipe-is-read": log_pipe_is_read,
    "handler-never-runs": handler_never_runs,
    "property-of-whole-class": property_of_whole_class,
    "properties-in-turn": properties_in_turn,
    "engine-freed-at-finish": engine_freed_at_finish,
    "microbatches-meet": microbatches_meet,
}

if __name__ == "__main__":
    run(PROGRAMS)
