"""One process with threads or an event loop that waits for itself for ever, and busy ones: `threads.py NAME FOLDER`."""

import asyncio
import atexit
import ctypes
import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.lock_hangs import LIBRARY_FLAGS, build


def loop_waits_for_itself():
    """A callback of the loop waits for a coroutine that the same loop should run."""

    async def value():
        return 1

    async def main():
        at("main")
        asyncio.run_coroutine_threadsafe(value(), asyncio.get_running_loop()).result()

    asyncio.run(main())


def loop_calls_own_server():
    """A handler of the event loop asks its own server with a blocking client."""

    async def main():
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        at("main")
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health")

    asyncio.run(main())


def own_server():
    """The same with a server of one thread that asks itself."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            at("main")
            urllib.request.urlopen(f"http://127.0.0.1:{port}/again")

    server = HTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_port
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
    server.serve_forever()


def coroutines_with_two_locks():
    async def take(first, second):
        async with first:
            await asyncio.sleep(0.05)
            async with second:
                pass

    async def main():
        one, two = asyncio.Lock(), asyncio.Lock()
        tasks = asyncio.gather(take(one, two), take(two, one))
        await asyncio.sleep(0.2)
        at("main")
        await tasks

    asyncio.run(main())


def pool_in_pool():
    """Each task waits for a task of the same pool, and the pool is full."""
    pool, full = ThreadPoolExecutor(2), threading.Barrier(2)

    def outer():
        full.wait()
        return pool.submit(int).result()

    tasks = [pool.submit(outer) for _ in range(2)]
    at("main")
    tasks[0].result()


def task_not_done():
    """A worker forgot task_done(): join() waits, the worker waits for the next task."""
    tasks = queue.Queue()

    def work():
        while True:
            tasks.get()

    thread(work)
    tasks.put(1)
    at("main")
    tasks.join()


def threads_join_each_other():
    met = threading.Barrier(2)

    def first():
        met.wait()
        other.join()

    one = threading.Thread(target=first)
    other = threading.Thread(target=lambda: (met.wait(), one.join()))
    one.start()
    other.start()
    at("main")
    one.join()


def handler_takes_lock():
    """A signal comes while the lock is held; its handler wants the lock."""
    lock = threading.Lock()

    def report(*_):
        at("main")
        with lock:
            pass

    signal.signal(signal.SIGUSR1, report)
    with lock:
        signal.raise_signal(signal.SIGUSR1)
        work_for(1)


def finaliser_takes_lock():
    """The collector comes while the cache is locked, and an entry's finaliser locks the cache."""
    lock = threading.Lock()

    class Entry:
        def __del__(self):
            with lock:
                pass

    entry = Entry()
    entry.me = entry
    del entry
    with lock:
        at("main")
        gc.collect()


def two_locks():
    one, two, met = threading.Lock(), threading.RLock(), threading.Barrier(2)

    def take(first, second):
        with first:
            met.wait()
            with second:
                pass

    thread(take, two, one)
    at("main")
    take(one, two)


def import_in_thread():
    """A module that starts a thread when it is imported, which imports the module, and waits for it."""
    source = (
        "import threading\nt = threading.Thread(target=lambda: __import__('plugin').x)\nt.start()\nt.join()\nx = 1\n"
    )
    Path(sys.argv[2], "plugin.py").write_text(source)
    sys.path.insert(0, sys.argv[2])
    at("main")
    __import__("plugin")


def left_locked():
    """An exception between acquire() and release(): nobody holds the lock any more."""
    lock = threading.Lock()

    def fail():
        lock.acquire()
        sys.exit(1)

    thread(fail).join()
    at("main")
    lock.acquire()


def exit_waits_for_worker():
    """The interpreter joins a pool's thread at exit; it waits for an event that a later exit handler sets."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(1)
    atexit.register(stop.set)
    pool.submit(stop.wait)
    at("main")


def missed_notify():
    """The notify came before the wait."""
    ready = threading.Condition()
    with ready:
        ready.notify_all()
    at("main")
    with ready:
        ready.wait()


def full_queue():
    """The only consumer of a full queue is who puts."""
    tasks = queue.Queue(maxsize=2)
    at("main")
    for number in range(3):
        tasks.put(number)


def constructor_and_gil():
    """dlopen keeps the GIL; the library's constructor waits for a thread of its own that wants the GIL."""
    library = build("libplugin_gil.so", "live/plugin.c", LIBRARY_FLAGS)
    at("main")
    ctypes.CDLL(library)


def callback_and_gil():
    """An extension calls in with the GIL kept (PyDLL), and joins a thread that calls back into Python."""
    library = ctypes.PyDLL(build("libplugin_join.so", "live/plugin.c", (*LIBRARY_FLAGS, "-DQUIET")))
    at("main")
    library.join_a_thread_that_calls_back()


def threads_compute():
    """Workers hash, which needs no GIL; the main thread joins them."""
    import hashlib

    block = os.urandom(1 << 22)

    def work():
        while True:
            hashlib.sha256(block).digest()

    workers = [thread(work) for _ in range(2)]
    at("main")
    for one in workers:
        one.join()


def producers_and_consumers():
    tasks = queue.Queue(8)

    def produce():
        while True:
            tasks.put(os.urandom(64))
            time.sleep(0.02)

    def consume():
        while True:
            tasks.get()

    for work in (produce, produce, consume, consume):
        last = thread(work)
    at("main")
    last.join()


def contended_lock():
    """Four threads that compute under one lock in turns."""
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                work_for(0.02)

    for _ in range(4):
        last = thread(work)
    at("main")
    last.join()


def loads_modules():
    """Compiles the standard library's modules again and again, as a first start does."""
    paths = sorted(Path(os.__file__).parent.glob("*.py"))
    at("main")
    while True:
        for path in paths:
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def backoff():
    """Asks a server that is not there yet, and waits a bit longer each time."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = probe.getsockname()
    at("main")
    while True:
        try:
            socket.create_connection(address, timeout=1).close()
        except OSError:
            time.sleep(0.3)


PROGRAMS = {
    "loop-waits-for-itself": loop_waits_for_itself,
    "loop-calls-own-server": loop_calls_own_server,
    "own-server": own_server,
    "coroutines-with-two-locks": coroutines_with_two_locks,
    "pool-in-pool": pool_in_pool,
    "task-not-done": task_not_done,
    "threads-join-each-other": threads_join_each_other,
    "handler-takes-lock": handler_takes_lock,
    "finaliser-takes-lock": finaliser_takes_lock,
    "two-locks": two_locks,
    "import-in-thread": import_in_thread,
    "left-locked": left_locked,
    "exit-waits-for-worker": exit_waits_for_worker,
    "missed-notify": missed_notify,
    "full-queue": full_queue,
    "constructor-and-gil": constructor_and_gil,
    "callback-and-gil": callback_and_gil,
    "threads-compute": threads_compute,
    "producers-and-consumers": producers_and_consumers,
    "contended-lock": contended_lock,
    "loads-modules": loads_modules,
    "backoff": backoff,
}

if __name__ == "__main__":
    run(PROGRAMS)
