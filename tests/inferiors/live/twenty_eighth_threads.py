"""Engines of one process that hang, and healthy ones, twenty-eighth set: `twenty_eighth_threads.py NAME FOLDER`."""

import asyncio
import collections
import concurrent.futures
import ctypes
import functools
import itertools
import os
import queue
import re
import signal
import socket
import threading
import time

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.twenty_eighth_extension import extension

BODY = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int)


def square(number):
    return float(number * number)


def function_of_the_user():
    """As pybind/pybind11#2093: a function in Python is called by the threads of a parallel loop in C++. Who began the
    loop has the interpreter's lock, and waits for them."""
    body, library, keeping = BODY(square), extension(), extension(ctypes.PyDLL)
    library.parallel_sum.restype = keeping.parallel_sum.restype = ctypes.c_double
    print(library.parallel_sum(4, body), flush=True)
    at("main")
    print(keeping.parallel_sum(4, body), flush=True)


DONE = object()


class Runtime:
    """Handlers are coroutines, and run in a loop of their own. What they yield is sent by the thread of a request."""

    def __init__(self):
        self.loop, self.chunks = asyncio.new_event_loop(), None
        thread(self.loop.run_forever)

    def invoke(self, generator):
        chunks = self.chunks = queue.Queue(maxsize=100)

        async def produce():
            async for chunk in generator:
                chunks.put(chunk)
            chunks.put(DONE)

        asyncio.run_coroutine_threadsafe(produce(), self.loop)
        while True:
            chunk = chunks.get()
            if chunk is DONE:
                return
            yield chunk


async def tokens_of_an_answer(count):
    for number in range(count):
        yield f"data: token {number}\n\n".encode() * 64
        await asyncio.sleep(0)


def answer(runtime, connection, count):
    for chunk in runtime.invoke(tokens_of_an_answer(count)):
        try:
            connection.sendall(chunk)
        except OSError:
            return
    connection.close()


def read_some(connection, size):
    while size > 0:
        size -= len(connection.recv(4096)) or size
    connection.close()


def client_that_leaves():
    """As aws/bedrock-agentcore-sdk-python#482: a client leaves in the midst of an answer, and nobody takes the rest of
    it. The coroutine puts it into a queue, which is full, and keeps the thread of the loop. The next request waits."""
    runtime = Runtime()
    for number, (count, size) in enumerate(((10, 1 << 30), (1000, 20_000), (10, 1 << 30))):
        ours, theirs = socket.socketpair()
        thread(read_some, theirs, size)
        if number == 2:
            while not runtime.chunks.full():
                time.sleep(0.01)
            at("main")
        answer(runtime, ours, count)


class Limit:
    """So many at a time. Who waits is woken up by a release, one at a time."""

    def __init__(self, value):
        self.value, self.waiters = value, collections.deque()

    async def acquire(self):
        while self.value <= 0:
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self.waiters:
                    self.waiters.remove(waiter)
        self.value -= 1

    def release(self):
        self.value += 1
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(True)
                break


async def request(limit, seconds):
    await limit.acquire()
    try:
        await asyncio.sleep(seconds)
    finally:
        limit.release()


async def two_that_wait():
    limit = Limit(1)
    await asyncio.gather(*(request(limit, 0.01) for _ in range(5)))
    await limit.acquire()
    one, other = asyncio.ensure_future(request(limit, 0.01)), asyncio.ensure_future(request(limit, 0.01))
    await asyncio.sleep(0.1)
    limit.release()
    one.cancel()
    await asyncio.wait([one])
    asyncio.get_running_loop().call_later(0.1, at, "main")
    await other


def cancelled_when_woken_up():
    """As python/asyncio#270: two wait for a semaphore. It is released, and before the one that was woken up runs, it is
    cancelled. The other one waits, though nobody has the semaphore."""
    asyncio.run(two_that_wait())


def unanswered_request():
    """As zeromq/pyzmq#102: a request is sent to a service that does not run. The socket is closed, and the end of the
    context waits until the request is sent."""
    import zmq

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = zmq.Context()
    requests = context.socket(zmq.REQ)
    requests.setsockopt(zmq.LINGER, -1)
    requests.connect(f"tcp://127.0.0.1:{port}")
    requests.send(b"status")
    if not requests.poll(300):
        print("no answer", flush=True)
    requests.close()
    at("main")
    context.term()


LOCK = threading.Lock()


def synchronized(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        with LOCK:
            return function(*arguments)

    return wrapper


class Downloader:
    """Its threads are joined and its queue is saved when it halts, once."""

    def __init__(self):
        self.stopped, self.leaving = False, threading.Event()
        self.threads = [thread(self.download, number) for number in range(3)]
        signal.signal(signal.SIGTERM, self.on_signal)

    def download(self, number):
        while not self.leaving.wait(0.05):
            work_for(0.005)
        if number == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    @synchronized
    def halt(self):
        self.leaving.set()
        for one in self.threads:
            one.join()
        for _ in range(20):
            work_for(0.01)

    def on_signal(self, *_):
        print("signal caught", flush=True)
        if not self.stopped:
            if self.leaving.is_set():
                at("main")
            self.halt()
            self.stopped = True


def signal_while_it_halts():
    """As sabnzbd/sabnzbd#3534: a second signal comes while the first one is handled, which takes a while. Its handler
    wants the lock that the interrupted one has, in the same thread."""
    Downloader()
    os.kill(os.getpid(), signal.SIGTERM)


async def echo(reader, writer):
    while True:
        data = await reader.read(4096)
        if not data:
            return
        writer.write(data)
        await writer.drain()


async def serve_with_threads():
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        await asyncio.gather(*(loop.run_in_executor(pool, time.sleep, 0.1) for _ in range(8)))
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(b"hello")
        print(await reader.read(4096), flush=True)
        at("main")
        async with server:
            await server.serve_forever()


def threads_said_to_be_active():
    """Healthy, as benfred/py-spy#92: a loop waits for events, and the threads of a pool for work. A profile has them as
    active ones."""
    asyncio.run(serve_with_threads())


PARAGRAPH = re.compile(r"^(?:[^\w]|[*#~+.]+)+$")


def is_decoration(paragraph):
    return PARAGRAPH.search(paragraph) is not None


def pattern_for_paragraphs():
    """Healthy, as allenai/dolma#284: a pattern looks for paragraphs without words. One repetition is inside another
    one, so that forty characters take a minute, and there are many such paragraphs."""
    print(is_decoration("*** ###"), is_decoration("a word"), flush=True)
    at("main")
    found = 0
    for number in itertools.count():
        found += is_decoration("*" * (20 + number % 2) + "word")


def loss_of(rows, weights):
    total = 0.0
    for row in rows:
        total += sum(value * weight for value, weight in zip(row, weights)) ** 2
    return total / len(rows)


def iterations_of_a_network():
    """Healthy, as jcjohnson/torch-rnn#112: it is stuck at the thousandth iteration, where the loss of all validation
    data is computed. There is much of it."""
    training = [[float(number * factor % 7) for factor in range(16)] for number in range(64)]
    validation, weights = training * 400, [0.5] * 16
    for iteration in range(1, 1_000_000):
        loss = loss_of(training[iteration % 60 :][:4], weights)
        weights = [weight - 1e-9 * loss for weight in weights]
        if iteration % 1000 == 0:
            print(f"iteration {iteration}", flush=True)
            at("main")
            print(sum(loss_of(validation, weights) for _ in range(20_000)), flush=True)


PROGRAMS = {
    "maps-in-parallel": function_of_the_user,
    "streams-an-answer": client_that_leaves,
    "limits-its-requests": cancelled_when_woken_up,
    "asks-and-leaves": unanswered_request,
    "halts-once-more": signal_while_it_halts,
    "has-idle-threads": threads_said_to_be_active,
    "tags-paragraphs": pattern_for_paragraphs,
    "validates-now-and-then": iterations_of_a_network,
}

if __name__ == "__main__":
    run(PROGRAMS)
