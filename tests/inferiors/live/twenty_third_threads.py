"""Engines of one process that hang, and a healthy one, twenty-third set: `twenty_third_threads.py NAME FOLDER`."""

import asyncio
import atexit
import contextlib
import ctypes
import http.client
import logging
import queue
import socket
import sys
import threading
import time

from tests.inferiors.live.place import at, in_folder, run, thread
from tests.inferiors.live.twenty_third_extension import extension

WARN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


class Status:
    """Of a request in the line: it has a connection, or none yet."""

    def __init__(self):
        self.connection, self.given = None, asyncio.Event()

    def give(self, connection):
        self.connection = connection
        self.given.set()


class ConnectionPool:
    """Connections to one service, as many as it allows. Requests stand in a line for them."""

    def __init__(self, address, size):
        self.address, self.size = address, size
        self.lock, self.line, self.idle, self.expired, self.opened = asyncio.Lock(), [], [], [], 0

    async def close_expired(self):
        while self.expired:
            _, writer = self.expired.pop()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            await asyncio.sleep(0.05)  # the other side says good bye

    async def serve_line(self):
        for status in self.line:
            if status.connection is not None:
                continue
            if not self.idle:
                if self.opened == self.size:
                    return
                self.opened += 1
                self.idle.append(await asyncio.open_connection(*self.address))
            status.give(self.idle.pop())

    async def request(self, word):
        status = Status()
        async with self.lock:
            self.line.append(status)
            await self.close_expired()
            await self.serve_line()
        await status.given.wait()
        reader, writer = status.connection
        try:
            writer.write(word + b"\n")
            return await reader.readline()
        finally:
            async with self.lock:
                self.line.remove(status)
                self.idle.append(status.connection)
                await self.serve_line()


async def echo(reader, writer):
    while True:
        line = await reader.readline()
        if not line:
            return
        await asyncio.sleep(0.3)
        writer.write(line)


async def send_requests():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    pool = ConnectionPool(address, 1)
    await pool.request(b"one")
    slow = asyncio.create_task(pool.request(b"two"))
    await asyncio.sleep(0.1)
    pool.expired.append(await asyncio.open_connection(*address))
    given_up = asyncio.create_task(pool.request(b"three"))
    await asyncio.sleep(0.02)
    given_up.cancel()
    await slow
    at("main")
    await pool.request(b"four")


def line_for_connections():
    """As encode/httpcore#830: a request is cancelled when it stands in the line and before it waits for its turn. It
    stays in the line, and the next connection is given to it, for ever."""
    asyncio.run(send_requests())


def warn(number):
    logging.getLogger("ensemble").warning("realization %d is not complete", number)
    return 0


def write_realizations(lines):
    for number, count in enumerate(lines):
        with open(in_folder(f"realization-{number}"), "w") as file:
            file.writelines(f"{value}.5\n" for value in range(count))


def loads_realizations():
    """As equinor/ert#3450: results are loaded by futures in C++, for which the caller waits without giving up the lock
    of the interpreter. One result is not complete, and that is logged by Python."""
    log, folder = WARN(warn), in_folder("").encode()
    library = extension(ctypes.PyDLL)
    write_realizations([50] * 4)
    print(library.load_ensemble(folder, 4, 50, log), flush=True)
    write_realizations([50, 50, 31, 50])
    at("main")
    library.load_ensemble(folder, 4, 50, log)


class Core:
    """Below the server: what was begun comes out as an event when it is done, by a thread that is ended at the exit."""

    def __init__(self):
        self.begun, self.events, self.open = queue.Queue(), queue.Queue(), True
        self.poller = thread(self.poll)
        atexit.register(self.end)

    def poll(self):
        while True:
            tag = self.begun.get()
            if not self.open:
                return
            self.events.put(tag)

    def end(self):
        self.open = False
        self.begun.put("end")
        self.poller.join()


class Server:
    """Its threads take events; the last one says that it is shut down."""

    def __init__(self):
        self.core, self.finished, self.calls = None, threading.Event(), []
        atexit.register(self.stop)

    def start(self):
        self.core = Core()
        thread(self.serve)
        self.core.begun.put("a call")

    def serve(self):
        while True:
            tag = self.core.events.get()
            if tag == "shutdown":
                self.finished.set()
                return
            self.calls.append(tag)

    def stop(self):
        self.core.begun.put("shutdown")
        self.finished.wait()


def server_left_by_an_error():
    """As grpc/grpc#17214: the main thread fails after it has started a server. At the exit the server is stopped by a
    tag in a queue, and waits until it comes out; the thread that would bring it out has ended before."""
    server = Server()
    server.start()
    while not server.calls:
        time.sleep(0.01)
    at("main")
    raise RuntimeError("the configuration has no port for metrics")


class SummarizedLog(logging.Handler):
    """Writes to a file until that is large, and then to another one, which begins with a summary of the program."""

    LIMIT = 4000

    def __init__(self):
        super().__init__()
        self.writing, self.number, self.written = threading.Lock(), 1, 0

    def rotate(self):
        self.number, self.written = self.number + 1, 0
        at("main")
        logging.getLogger("builds").info("version 0.4, with two workers, on %s", sys.platform)

    def emit(self, record):
        with self.writing:
            if self.written > self.LIMIT:
                self.rotate()
            with open(in_folder(f"builds.log.{self.number}"), "a") as file:
                self.written += file.write(self.format(record) + "\n")


def summary_in_a_new_log():
    """As box/ClusterRunner#48: a file of the log is full, and a new one is begun, with a summary. That is a message as
    any other one, and wants the lock that the handler has for the message before."""
    log = logging.getLogger("builds")
    log.addHandler(SummarizedLog())
    log.setLevel(logging.INFO)
    for number in range(1000):
        log.info("build %d has ended", number)
        time.sleep(0.002)


class Result:
    """Of a task: a value, or an error that is raised for who asks for it."""

    def __init__(self):
        self.done, self.value, self.error = threading.Event(), None, None

    def get(self):
        self.done.wait()
        if self.error is not None:
            raise self.error
        return self.value


class Executor:
    """Some threads that take tasks until they are told that there are no more."""

    def __init__(self, count):
        self.tasks = queue.Queue()
        self.threads = [thread(self.work, daemon=False) for _ in range(count)]

    def submit(self, function, *arguments):
        result = Result()
        self.tasks.put((result, function, arguments))
        return result

    def work(self):
        for result, function, arguments in iter(self.tasks.get, None):
            try:
                result.value = function(*arguments)
            except Exception as error:
                result.error = error
            result.done.set()

    def shutdown(self):
        for _ in self.threads:
            self.tasks.put(None)


def unload(begin, end):
    """A range of a table into a file."""
    with open(in_folder(f"rows.{begin}"), "w") as file:
        for key in range(begin, end):
            if key == 7301:
                raise ValueError("a value cannot be formatted")
            file.write(f"{key},{key * 0.5}\n")
    return end - begin


def unloads_a_table():
    """As brianmhess/cassandra-loader#92: a table is unloaded by some threads, and one of them meets an error. That is
    raised for the main thread, which ends; the threads wait for more tasks."""
    executor = Executor(4)
    results = [executor.submit(unload, begin, begin + 2000) for begin in range(0, 10_000, 2000)]
    try:
        total = sum(result.get() for result in results)
    except ValueError:
        at("main")
        raise
    executor.shutdown()
    print(total, flush=True)


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def fetch(port, path):
    """From the search service; it may need some time to start, so that this is tried again, later and later."""
    pause = 1
    for attempt in range(1, 9):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        except OSError:
            if attempt == 2:
                at("main")
            time.sleep(pause)
            pause = min(2 * pause, 60)
        finally:
            connection.close()
    return b""


def tests_with_retries():
    """Healthy, as certego/BuffaLogs#364: tests ask a service that does not run where they do. Each of them tries for
    some minutes, with longer and longer pauses, and then goes on without it."""
    port = unused_port()
    for number in range(200):
        found = fetch(port, f"/logins/_search?from={number}")
        print(f"test {number}: {'passed' if not found else 'failed'}", flush=True)


PROGRAMS = {
    "line-for-connections": line_for_connections,
    "loads-realizations": loads_realizations,
    "server-left-by-an-error": server_left_by_an_error,
    "summary-in-a-new-log": summary_in_a_new_log,
    "unloads-a-table": unloads_a_table,
    "tests-with-retries": tests_with_retries,
}

if __name__ == "__main__":
    run(PROGRAMS)
