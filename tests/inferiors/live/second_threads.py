"""One process that waits for itself for ever, second set: `second_threads.py NAME FOLDER`."""

import asyncio
import atexit
import fcntl
import logging
import os
import queue
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.inferiors.live.place import at, fifo, run, thread


def tokenizer_thread_needs_loop():
    """A handler blocks the loop on a thread's result; the thread hands its own part back to the loop."""

    async def tokens():
        return [1, 2]

    async def main():
        loop = asyncio.get_running_loop()

        def tokenize():
            return asyncio.run_coroutine_threadsafe(tokens(), loop).result()

        with ThreadPoolExecutor(2) as pool:
            asked = pool.submit(tokenize)
            at("main")
            asked.result()

    asyncio.run(main())


def loop_wants_lock():
    """A coroutine takes a thread's lock; the thread that has it waits until the loop has run its callback."""
    lock, held = threading.Lock(), threading.Event()

    async def main():
        loop, sent = asyncio.get_running_loop(), threading.Event()

        def send():
            with lock:
                held.set()
                loop.call_soon_threadsafe(sent.set)
                sent.wait()

        asked = asyncio.create_task(asyncio.to_thread(send))
        await asyncio.sleep(0)
        held.wait()
        at("main")
        with lock:
            await asked

    asyncio.run(main())


def tasks_of_one_semaphore():
    """Each request has one of two slots and waits for a second one for its draft model."""

    async def request(slots):
        async with slots:
            await asyncio.sleep(0.05)
            async with slots:
                pass

    async def main():
        slots = asyncio.Semaphore(2)
        both = asyncio.gather(request(slots), request(slots))
        await asyncio.sleep(0.3)
        at("main")
        await both

    asyncio.run(main())


def callback_takes_rlock():
    """The engine joins its worker under its own lock; the worker's last callback takes that lock."""
    lock, started = threading.RLock(), threading.Event()

    def finished():
        started.set()
        with lock:
            pass

    with lock:
        worker = thread(finished)
        started.wait()
        at("main")
        worker.join()


def barrier_of_threads():
    """One of four loaders failed before the barrier."""
    threading.excepthook = lambda *_: None
    together = threading.Barrier(4)

    def load(number):
        if number == 2:
            raise OSError("no such shard")
        together.wait()

    workers = [thread(load, number) for number in range(4)]
    workers[2].join()
    at("main")
    for one in workers:
        one.join()


def connection_pool():
    """Two transactions, two connections: each has one and wants a second."""
    connections, both = queue.Queue(), threading.Barrier(2)
    for number in range(2):
        connections.put(number)

    def transact():
        connections.get()
        both.wait()
        connections.get()

    workers = [thread(transact) for _ in range(2)]
    at("main")
    workers[0].join()


def logging_to_full_queue():
    """A log handler waits, with its lock, for room in its queue; the thread that empties the queue logs."""

    class Upload(logging.Handler):
        def emit(self, record):
            records.put(record)

    records, full = queue.Queue(1), threading.Event()
    log = logging.getLogger("engine")
    log.addHandler(Upload())

    def upload():
        full.wait()
        log.warning("slow upload")
        while records.get():
            pass

    thread(upload)
    log.warning("first")
    threading.Timer(0.3, full.set).start()
    at("main")
    log.warning("second")


def join_at_exit():
    """An exit handler joins a worker, which waits for work that only the main thread gave."""
    work = queue.Queue()
    worker = thread(work.get)
    atexit.register(worker.join)
    at("main")


def done_callback_asks_pool():
    """A callback of a future runs in the pool's only thread and waits for a further task of it."""
    pool = ThreadPoolExecutor(1)
    gate, seen = threading.Event(), threading.Event()

    def again(_):
        seen.set()
        pool.submit(int).result()

    first = pool.submit(gate.wait)
    first.add_done_callback(again)
    gate.set()
    seen.wait()
    last = pool.submit(int)
    at("main")
    last.result()


def worker_died_before_join():
    """The only worker of a queue died; join() waits for its task."""
    threading.excepthook = lambda *_: None
    tasks = queue.Queue()

    def work():
        while True:
            raise ValueError(tasks.get())

    tasks.put(1)
    thread(work).join()
    at("main")
    tasks.join()


def two_connections_of_sqlite():
    """A transaction is open on one connection; the same thread writes by another with no timeout to speak of."""
    path = os.path.join(sys.argv[2], "runs.db")
    one, two = (sqlite3.connect(path, timeout=1e6, isolation_level=None) for _ in range(2))
    one.execute("CREATE TABLE runs (step INT)")
    one.execute("BEGIN IMMEDIATE")
    one.execute("INSERT INTO runs VALUES (1)")
    at("main")
    two.execute("INSERT INTO runs VALUES (2)")


def own_file_lock():
    """A function that locks the cache calls another one that does so too; flock knows no owner but the open file."""
    path = os.path.join(sys.argv[2], "cache.lock")

    def locked(inside):
        with open(path, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            inside()

    at("main")
    locked(lambda: locked(int))


def reader_and_own_pipe():
    """A script that prints into a pipe which its own later part reads, more than the pipe holds."""
    reading, writing = os.pipe()
    at("main")
    os.write(writing, b"x" * (1 << 20))
    os.read(reading, 1 << 20)


def condition_of_two_kinds():
    """notify() woke the wrong waiter: both wait, one for room and one for an item."""
    changed = threading.Condition()
    items = []

    def put():
        with changed:
            while not items:
                changed.wait()

    def take():
        with changed:
            while len(items) < 2:
                changed.wait()

    workers = [thread(put), thread(take)]
    at("main")
    for one in workers:
        one.join()


def three_locks():
    """Scheduler, cache and metrics: a ring of three locks, the main thread outside of it."""
    locks, met = [threading.Lock() for _ in range(3)], threading.Barrier(3)

    def take(number):
        with locks[number]:
            met.wait()
            with locks[(number + 1) % 3]:
                pass

    workers = [thread(take, number) for number in range(3)]
    at("main")
    for one in workers:
        one.join()


def waits_for_child_that_waits():
    """subprocess.run of a program that reads from the pipe that only its parent would write to."""
    at("main")
    subprocess.run(["cat", fifo()], check=True)


def module_level_pool():
    """A module maps over a thread pool while it is imported; the tasks import from the module."""
    source = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def load(n):\n    from registry import TABLE\n    return TABLE[n]\n"
        "with ThreadPoolExecutor(1) as pool:\n    values = list(pool.map(load, range(2)))\n"
        "TABLE = dict.fromkeys(range(2))\n"
    )
    Path(sys.argv[2], "registry.py").write_text(source)
    sys.path.insert(0, sys.argv[2])
    at("main")
    __import__("registry")


PROGRAMS = {
    "thread-needs-loop": tokenizer_thread_needs_loop,
    "loop-wants-lock": loop_wants_lock,
    "slots-of-requests": tasks_of_one_semaphore,
    "callback-takes-rlock": callback_takes_rlock,
    "barrier-of-threads": barrier_of_threads,
    "connection-pool": connection_pool,
    "logging-to-full-queue": logging_to_full_queue,
    "join-at-exit": join_at_exit,
    "done-callback": done_callback_asks_pool,
    "worker-died": worker_died_before_join,
    "sqlite-transaction": two_connections_of_sqlite,
    "own-file-lock": own_file_lock,
    "own-pipe": reader_and_own_pipe,
    "condition-of-two": condition_of_two_kinds,
    "three-locks": three_locks,
    "child-waits": waits_for_child_that_waits,
    "module-level-pool": module_level_pool,
}

if __name__ == "__main__":
    run(PROGRAMS)
