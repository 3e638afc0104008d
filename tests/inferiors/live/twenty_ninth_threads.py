"""Engines of one process that hang, and healthy ones, twenty-ninth set: `twenty_ninth_threads.py NAME FOLDER`."""

import asyncio
import contextlib
import ctypes
import fcntl
import gc
import lzma
import os
import queue
import random
import statistics
import threading
import time

from tests.inferiors.live.place import at, in_folder, run, thread
from tests.inferiors.live.twenty_ninth_extension import extension


class Handler:
    """Writes each message under a lock. What the message is about is written with it."""

    def __init__(self):
        self.lock = threading.Lock()

    def emit(self, message):
        with self.lock:
            record = [{"message": message, "field": number} for number in range(3000)]
            with open(in_folder("messages"), "a") as file:
                file.write(f"{message} ({len(record)})\n")


class Session:
    """Refers to itself, so that it is there until the collector of garbage comes."""

    def __init__(self, handler, name):
        self.handler, self.name, self.myself = handler, name, self

    def __del__(self):
        self.handler.emit(f"{self.name} has ended")


def message_of_a_finaliser():
    """As Delgan/loguru#720: while a message is written, the collector of garbage comes to an object that nobody has any
    more. Its finaliser writes a message as well, for which the same thread has the lock."""
    handler = Handler()
    for number in range(3):
        handler.emit(f"request {number}")
    gc.collect()
    Session(handler, "the session")
    at("main")
    handler.emit("the last request")


MODULE = ctypes.CFUNCTYPE(None, ctypes.c_int)


def option_of_a_module():
    """As ceph/ceph#46302: a module reads one of its options, and has the lock of the interpreter as it wants the one of
    all modules. That is held by the thread which tells the modules that the map has changed, and which wants the
    interpreter for that."""
    library = extension(ctypes.PyDLL)
    library.set_interval(5)
    print(library.get_interval(), flush=True)
    epochs = []
    module = MODULE(epochs.append)
    at("main")
    library.notify_modules(module, 7)
    print(library.get_interval(), flush=True)


class InternalError(BaseException):
    """Of the compiler itself, and not of what it compiles."""


class Runner:
    """Compiles the nodes of a graph with some threads."""

    def __init__(self, count):
        self.jobs, self.ended = queue.Queue(), []
        for _ in range(count):
            thread(self.work)

    def work(self):
        while True:
            node = self.jobs.get()
            try:
                self.compile(node)
            except Exception as error:
                print(f"{node}: {error}", flush=True)
            self.jobs.task_done()

    def compile(self, node):
        if node == "model.sources":
            raise InternalError("a source has no such field")
        if node.endswith("9"):
            raise ValueError("does not compile")
        self.ended.append(node)

    def run(self, nodes):
        for node in nodes:
            self.jobs.put(node)
        self.jobs.join()


def node_that_is_never_done():
    """As dbt-labs/dbt-core#5602: the main thread waits until all nodes of the queue are done. One of them has ended its
    thread by an error that is none of those which are handled, and so is never done."""
    runner = Runner(2)
    runner.run([f"model.{number}" for number in range(20)])
    at("main")
    runner.run(["model.20", "model.sources", "model.21", "model.22"])


def library_with_a_thread_unloaded():
    """As OpenMathLib/OpenBLAS#2362: the library stops its threads in an orderly way as it is unloaded. The loader has a
    lock at that time, and the thread wants the loader for what it does at its end."""
    import _ctypes

    library = extension()
    library.multiply.restype = ctypes.c_double
    library.multiply.argtypes = (ctypes.c_double, ctypes.c_double)
    print(library.multiply(6, 7), flush=True)
    at("main")
    _ctypes.dlclose(library._handle)
    print("unloaded", flush=True)


class AsyncFileLock:
    """A file that one may have at a time, for coroutines. The same object may be taken more than once."""

    def __init__(self, path):
        self.path, self.file, self.count = path, None, 0

    async def __aenter__(self):
        self.count += 1
        while self.file is None:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.file = file
            except BlockingIOError:
                os.close(file)
                await asyncio.sleep(0.05)
        return self

    async def __aexit__(self, *_):
        self.count -= 1
        if self.count == 0:
            os.close(self.file)
            self.file = None


class Cache:
    """Files, and an index of them that other processes change as well."""

    def __init__(self, folder):
        self.folder, self.lock_path = folder, os.path.join(folder, "index.lock")

    async def add_to_index(self, name):
        async with AsyncFileLock(self.lock_path):
            with open(os.path.join(self.folder, "index"), "a") as file:
                file.write(f"{name}\n")

    async def add_all(self, names):
        async with AsyncFileLock(self.lock_path):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    os.stat(os.path.join(self.folder, name))
                await self.add_to_index(name)


async def fill_cache(cache):
    await cache.add_to_index("the first")
    at("main")
    await cache.add_all(["the second", "the third"])


def path_locked_by_two_objects():
    """As tox-dev/filelock#586: a coroutine has the lock of a path, and calls one that makes another object for the same
    path. This one looks now and then whether it is free."""
    asyncio.run(fill_cache(Cache(in_folder("."))))


def correlation_ratio(categories, values):
    groups = {}
    for category, value in zip(categories, values):
        groups.setdefault(category, []).append(value)
    mean = statistics.fmean(values)
    between = sum(len(group) * (statistics.fmean(group) - mean) ** 2 for group in groups.values())
    return between / (sum((value - mean) ** 2 for value in values) or 1.0)


def associations_of_all_columns():
    """Healthy, as fbdesignpro/sweetviz#18: a report on a table has the association of each column with each other one,
    which takes four times as long for twice the columns. There are three thousand."""
    choice = random.Random(18)
    columns = [[choice.randrange(8) for _ in range(150)] for _ in range(3000)]
    strongest, pairs = 0.0, 0
    for one in columns:
        for other in columns:
            strongest = max(strongest, correlation_ratio(one, other))
            pairs += 1
            if pairs == 400:
                at("main")
    print(strongest, flush=True)


class Progress:
    """Says how much was read, once a second."""

    def __init__(self, size):
        self.size, self.read = size, 0
        thread(self.show)

    def show(self):
        while True:
            print(f"{100 * self.read // self.size} %", flush=True)
            time.sleep(1)


def compressed_after_it_was_read():
    """Healthy, as nicoboss/nsz#86: the progress is that of what was read, which is all of it. It is in the library that
    compresses, and until that has come to the end nothing more is to be seen."""
    data = random.Random(86).randbytes(24 << 20).hex().encode()
    progress = Progress(len(data))
    for number in range(1000):
        progress.read = len(data)
        if number == 0:
            at("main")
        with open(in_folder(f"compressed{number % 2}"), "wb") as file:
            file.write(lzma.compress(data, preset=6))


PROGRAMS = {
    "logs-in-a-finaliser": message_of_a_finaliser,
    "reads-a-module-option": option_of_a_module,
    "joins-its-job-queue": node_that_is_never_done,
    "unloads-its-engine": library_with_a_thread_unloaded,
    "locks-a-path-twice": path_locked_by_two_objects,
    "pairs-all-columns": associations_of_all_columns,
    "compresses-what-was-read": compressed_after_it_was_read,
}

if __name__ == "__main__":
    run(PROGRAMS)
