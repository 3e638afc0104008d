"""Engines of one process that hang, nineteenth set: `nineteenth_threads.py NAME FOLDER`."""

import asyncio
import collections
import concurrent.futures
import contextlib
import ctypes
import os
import signal
import socket
import threading
import time

from tests.inferiors.live.nineteenth_extension import extension
from tests.inferiors.live.place import at, in_folder, run, thread, work_for


class LogFile:
    """All threads of a server write to it, one after the other."""

    def __init__(self, path):
        self.lock, self.writing = threading.Lock(), threading.Event()
        self.file = open(path, "w")  # noqa: SIM115 - as long as the server runs

    def write(self, message):
        with self.lock:
            self.writing.set()
            for line in message.splitlines():
                self.file.write(f"{time.time():.3f} {line}\n")
                if line.endswith("00 done"):
                    self.file.flush()
            self.file.flush()
            self.writing.clear()


class Reactor:
    def __init__(self, log):
        self.log, self.stopped = log, False
        signal.signal(signal.SIGTERM, self.on_signal)

    def on_signal(self, number, frame):
        at("main")
        self.log.write("received a signal, shutting down")
        self.stopped = True

    def run(self):
        report = "\n".join(f"request {number} done" for number in range(20_000))
        while not self.stopped:
            self.log.write(report)
            time.sleep(0.05)


def stop_when_it_writes(log):
    time.sleep(0.2)
    while True:
        log.writing.wait()
        time.sleep(0.001)
        if log.writing.is_set():
            os.kill(os.getpid(), signal.SIGTERM)
            return


def stop_signal_while_the_log_is_written():
    """As twisted/twisted#7736: the handler of a signal writes to the log. It runs in the main thread, which was about
    to write to the log, and has its lock."""
    log = LogFile(in_folder("server.log"))
    reactor = Reactor(log)
    thread(stop_when_it_writes, log)
    reactor.run()


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_int)
streams = {}


def release_stream(number):
    del streams[number]


def database_closed_by_a_relation():
    """As duckdb/duckdb#10854: the last relation is freed by Python, and its database with it, which waits for its
    threads. One of these frees a stream of Python; for that it needs the lock of the interpreter, which is not let go
    of by the main thread."""
    release = RELEASE(release_stream)
    library, keeps = extension(), extension(ctypes.PyDLL)
    for loaded in (library, keeps):
        loaded.make_relation.restype = ctypes.c_void_p
        loaded.drop_relation.argtypes = [ctypes.c_void_p]
    streams.update({1: iter([1, 2]), 2: iter([3])})
    library.drop_relation(library.make_relation(release, 1))
    print(f"{len(streams)} left", flush=True)
    relation = keeps.make_relation(release, 2)
    at("main")
    keeps.drop_relation(relation)


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def unsent_when_the_context_ends():
    """As zeromq/libzmq#58: messages were sent to a peer that is not there. The context waits until they are sent before
    it ends, and nobody comes to take them."""
    import zmq

    context = zmq.Context()
    results = context.socket(zmq.PUSH)
    results.connect(f"tcp://127.0.0.1:{unused_port()}")
    for number in range(10):
        results.send(f"result {number}".encode())
    results.close()
    at("main")
    context.term()


class Lock:
    """Of coroutines. Who waits has a future, and the first of them is told when the lock is free."""

    def __init__(self):
        self.locked, self.waiters = False, collections.deque()

    async def acquire(self):
        if not self.locked and not self.waiters:
            self.locked = True
            return
        turn = asyncio.get_running_loop().create_future()
        self.waiters.append(turn)
        try:
            await turn
            self.locked = True
        finally:
            self.waiters.remove(turn)

    def release(self):
        self.locked = False
        for turn in self.waiters:
            if not turn.done():
                turn.set_result(True)
                break

    @contextlib.asynccontextmanager
    async def held(self):
        await self.acquire()
        try:
            yield
        finally:
            self.release()


async def use_connection(lock, answers, number):
    async with lock.held():
        await asyncio.sleep(0.02)
        answers.append(number)


async def serve_requests():
    lock, answers = Lock(), []
    await asyncio.gather(*(use_connection(lock, answers, number) for number in range(3)))
    async with lock.held():
        given_up = asyncio.create_task(use_connection(lock, answers, 3))
        waiting = asyncio.create_task(use_connection(lock, answers, 4))
        await asyncio.sleep(0.05)
    given_up.cancel()
    at("main")
    await asyncio.gather(given_up, waiting, return_exceptions=True)
    print(answers, flush=True)


def cancelled_when_its_turn_came():
    """As python/cpython#2038: the lock is free, and the first that waits for it has been told. It is cancelled before
    it runs; the next one is not told, and waits for a lock that nobody has."""
    asyncio.run(serve_requests())


class Dataset:
    """Not more than two are loaded at once."""

    loading = threading.Semaphore(2)

    def __init__(self, name, size):
        self.name, self.size = name, size

    def prepared(self):
        self.loading.acquire()
        documents = self.load()
        self.loading.release()
        return documents

    def load(self):
        work_for(0.05)
        if self.size == 0:
            raise ValueError(f"{self.name} has no documents")
        return list(range(self.size))


def run_experiment(dataset):
    return sum(dataset.prepared())


def permits_lost_with_errors():
    """As dice-group/gerbil#348: what limits how many load at once is not given back when there is an error. After two
    of them, all threads wait for it."""
    sizes = [5, 0, 3, 0, 4, 6, 2, 8]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        experiments = [pool.submit(run_experiment, Dataset(f"dataset {n}", size)) for n, size in enumerate(sizes)]
        failed = 0
        for experiment in concurrent.futures.as_completed(experiments):
            failed += experiment.exception() is not None
            if failed == 2:
                at("main")
                failed += 1


class Beacon:
    """Counts what happens, and sends the counts every now and then."""

    INTERVAL = 5

    def __init__(self):
        self.counts = collections.Counter()
        self.schedule()

    def schedule(self):
        threading.Timer(self.INTERVAL, self.send).start()

    def send(self):
        with open(in_folder("counts.txt"), "w") as file:
            file.write(repr(dict(self.counts)))
        self.schedule()


def timer_that_is_no_daemon():
    """As deepsourcelabs/beacon-py#18: a program is at its end, and waits for its threads. One is a timer that is none
    of those which are left alone; it sends, and sets the next one, for ever."""
    beacon = Beacon()
    for number in range(50):
        beacon.counts["even" if number % 2 == 0 else "odd"] += 1
        work_for(0.005)
    print("all is done", flush=True)
    at("main")


PROGRAMS = {
    "stop-signal-while-the-log-is-written": stop_signal_while_the_log_is_written,
    "database-closed-by-a-relation": database_closed_by_a_relation,
    "unsent-when-the-context-ends": unsent_when_the_context_ends,
    "cancelled-when-its-turn-came": cancelled_when_its_turn_came,
    "permits-lost-with-errors": permits_lost_with_errors,
    "timer-that-is-no-daemon": timer_that_is_no_daemon,
}

if __name__ == "__main__":
    run(PROGRAMS)
