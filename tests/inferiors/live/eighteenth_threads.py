"""Engines of one process that hang, eighteenth set: `eighteenth_threads.py NAME FOLDER`."""

import asyncio
import atexit
import concurrent.futures
import ctypes
import functools
import json
import queue
import signal
import socket
import sqlite3
import subprocess
import threading
import time

from tests.inferiors.live.eighteenth_extension import extension
from tests.inferiors.live.place import at, in_folder, run, thread, work_for


class Saver:
    """Checkpoints of the threads of an agent, in a database. There is one connection, and a lock for it."""

    def __init__(self, path):
        self.lock = asyncio.Lock()
        self.connection = sqlite3.connect(path, check_same_thread=False)
        self.connection.execute("create table checkpoints (agent text, number integer, state text)")

    async def put(self, agent, number, state):
        async with self.lock:
            await asyncio.to_thread(self.write, agent, number, json.dumps(state))

    def write(self, *row):
        with self.connection:
            self.connection.execute("insert into checkpoints values (?, ?, ?)", row)

    async def list(self, agent):
        query = "select number, state from checkpoints where agent = ? order by number desc"
        async with self.lock:
            cursor = await asyncio.to_thread(self.connection.execute, query, (agent,))
            while True:
                row = await asyncio.to_thread(cursor.fetchone)
                if row is None:
                    return
                yield row[0], json.loads(row[1])


async def rewind(saver):
    for number in range(5):
        await saver.put("planner", number, {"step": number, "done": number == 2})
    async for number, state in saver.list("planner"):
        if state["done"]:
            at("main")
            await saver.put("planner", 5, {**state, "from": number})


def write_while_the_listing_is_paused():
    """As langchain-ai/langgraph#8558: the checkpoints are listed one by one, and the lock of the database is kept from
    the first to the last. Who goes through them writes one, while the listing is paused."""
    asyncio.run(rewind(Saver(in_folder("checkpoints.db"))))


class Loop:
    """Of the main thread: what it is given runs one after the other."""

    def __init__(self):
        self.ready, self.clients = queue.SimpleQueue(), concurrent.futures.ThreadPoolExecutor(2)

    def call_soon(self, function, *arguments):
        self.ready.put(functools.partial(function, *arguments))

    def fetch(self, address):
        """What is at an address; the future is set in the loop."""
        answer = concurrent.futures.Future()
        self.clients.submit(fetch, address).add_done_callback(
            lambda done: self.call_soon(answer.set_result, done.result())
        )
        return answer

    def start(self):
        while True:
            self.ready.get()()


def fetch(address):
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET\n")
        return connection.recv(64)


def coroutine(function):
    """It runs in the loop, and goes on when that which it yields is there."""

    @functools.wraps(function)
    def started(loop, *arguments):
        result, steps = concurrent.futures.Future(), function(loop, *arguments)

        def step(value=None):
            try:
                awaited = steps.send(value)
            except StopIteration as end:
                result.set_result(end.value)
            else:
                awaited.add_done_callback(lambda done: step(done.result()))

        step()
        return result

    return started


@coroutine
def price_of(loop, address):
    answer = yield loop.fetch(address)
    return int(answer)


def total(loop, address, count):
    """Called by what knows nothing of coroutines."""
    return count * price_of(loop, address).result()


def serve_prices(listener):
    while True:
        connection = listener.accept()[0]
        connection.recv(64)
        connection.sendall(b"42")
        connection.close()


def result_in_the_loop_that_would_set_it():
    """As tornadoweb/tornado#924: a function that is not a coroutine calls one and waits for its result. It runs in the
    thread of the loop, and only the loop would let the coroutine go on."""
    listener = socket.create_server(("127.0.0.1", 0))
    thread(serve_prices, listener)
    loop, address = Loop(), listener.getsockname()

    def order(_):
        at("main")
        print(total(loop, address, 3), flush=True)

    loop.call_soon(lambda: price_of(loop, address).add_done_callback(order))
    loop.start()


class Logger:
    """It writes one message after the other."""

    def __init__(self, path):
        self.lock, self.path = threading.Lock(), path

    def info(self, message, *rows):
        with self.lock, open(self.path, "a") as file:
            file.write(f"{time.time():.3f} {message}\n")
            for row in rows:
                work_for(0.01)
                file.write(f"    {row}\n")


def child_ended_while_the_log_was_written():
    """As Delgan/loguru#390: a child process has ended, and what is called by its signal writes that to the log. The
    same thread was writing to the log when the signal came, and has its lock."""
    log = Logger(in_folder("log"))

    def child_ended(*_):
        log.info("a child has ended")

    signal.signal(signal.SIGCHLD, child_ended)
    subprocess.Popen(["sleep", "0"]).wait()
    log.info("ready")
    child = subprocess.Popen(["sleep", "0.3"])
    at("main")
    log.info("the jobs of this night", *range(400))
    child.wait()


class Protocol:
    """Moves a robot. The robot has a loop in a thread of a pool, which is told to stop at the exit of the program."""

    def __init__(self):
        self.loop, self.pool = asyncio.new_event_loop(), concurrent.futures.ThreadPoolExecutor(1)
        self.running = self.pool.submit(self.loop.run_forever)
        atexit.register(self.close)

    def move(self, x, y):
        return asyncio.run_coroutine_threadsafe(self.moved(x, y), self.loop).result()

    async def moved(self, x, y):
        await asyncio.sleep(0.01)
        return x, y

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.running.result()


def exit_handler_after_the_threads():
    """As Opentrons/opentrons#12970: what would stop the thread is called at the exit of the program, and that is after
    all threads have been joined."""
    protocol = Protocol()
    for number in range(10):
        protocol.move(number, number * 2)
    print("moved", flush=True)
    at("main")


def serve_store(listener):
    while True:
        connection = listener.accept()[0]
        while connection.recv(64):
            connection.sendall(b"store 5\n")


def forward(listener, address):
    """To a store that is behind a wall, as `ssh -L` does it."""
    while True:
        connection = listener.accept()[0]
        behind = socket.create_connection(address)
        behind.sendall(connection.recv(64))
        connection.sendall(behind.recv(64))
        connection.close()
        behind.close()


def handshake_through_a_thread_of_its_own():
    """As ecmwf/fdb#292: the connection to a store goes through a thread of the same process, in Python. The library of
    the store waits for the first answer, and has the lock of the interpreter; an older one let go of it."""
    store, tunnel = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    thread(serve_store, store)
    thread(forward, tunnel, store.getsockname())
    port = tunnel.getsockname()[1]
    print("version", extension().connect_store(port), flush=True)
    library = extension(ctypes.PyDLL)
    at("main")
    print("version", library.connect_store(port), flush=True)


PROGRAMS = {
    "write-while-the-listing-is-paused": write_while_the_listing_is_paused,
    "result-in-the-loop-that-would-set-it": result_in_the_loop_that_would_set_it,
    "child-ended-while-the-log-was-written": child_ended_while_the_log_was_written,
    "exit-handler-after-the-threads": exit_handler_after_the_threads,
    "handshake-through-a-thread-of-its-own": handshake_through_a_thread_of_its_own,
}

if __name__ == "__main__":
    run(PROGRAMS)
