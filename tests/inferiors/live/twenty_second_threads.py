"""Engines of one process that hang, and a healthy one, twenty-second set: `twenty_second_threads.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import contextlib
import ctypes
import itertools
import os
import queue
import signal
import threading
import time

from tests.inferiors.live.place import at, in_folder, run, work_for
from tests.inferiors.live.twenty_second_extension import extension

CREDENTIALS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def find_credentials(number):
    return len(f"certificate {number % 10}")


def server_before_fork():
    """As grpc/grpc#14258: before a fork, the server's thread is waited for. It asks Python for credentials, for which
    it needs the lock of the interpreter; who forks has it."""
    library, callback = extension(), CREDENTIALS(find_credentials)
    library.start_server(callback)
    while library.served() < 20:
        time.sleep(0.01)
    at("main")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    library.served()


class Chunk:
    """Of the staging buffer. It goes back when nobody refers to it."""

    def __init__(self, buffer, number):
        self.buffer, self.number, self.references = buffer, number, 1

    def reference_down(self):
        self.references -= 1
        if self.references == 0:
            self.buffer.free.append(self.number)


class StagingBuffer:
    """Of the host, for what is on its way from the disk to the device."""

    def __init__(self, count, hot):
        self.free, self.hot, self.cached = list(range(count)), hot, []

    def allocate(self):
        while not self.free:
            if self.hot and self.cached:
                self.cached.pop(0).reference_down()
            else:
                time.sleep(0.1)
        return Chunk(self, self.free.pop())


class DiskBackend:
    """Blocks of a cache that are on the disk."""

    def __init__(self, buffer):
        self.buffer = buffer

    def load(self, keys):
        chunks = []
        for key in keys:
            if key == 16:
                at("main")
            chunks.append(self.buffer.allocate())
            with open(in_folder("block"), "w") as file:
                file.write(str(key))
        return chunks


def staging_buffer():
    """As LMCache/LMCache#2942: blocks are loaded into a buffer that is not used as a cache. It is full, nothing in it
    may be taken away, and who loads tries again and again; all that is in it is of the same load."""
    backend = DiskBackend(StagingBuffer(12, hot=False))
    for keys in (range(8), range(4), range(4, 40)):
        for chunk in backend.load(keys):
            chunk.reference_down()


async def provide(reader, writer):
    while line := await reader.readline():
        if line == b"a slow hello\n":
            await asyncio.sleep(3600)
        writer.write(b"ok\n")


class ConnectionPool:
    """One connection to a provider of notifications, for whoever has its lock."""

    def __init__(self, address):
        self.address, self.lock, self.connection = address, asyncio.Lock(), None

    async def acquire(self):
        await self.lock.acquire()
        if self.connection is None:
            self.connection = await asyncio.open_connection(*self.address)
        return self.connection

    async def send(self, text):
        reader, writer = await self.acquire()
        writer.write(f"{text}\n".encode())
        answer = await reader.readline()
        self.lock.release()
        return answer


async def notify():
    server = await asyncio.start_server(provide, "127.0.0.1", 0)
    pool = ConnectionPool(server.sockets[0].getsockname())
    for text in ("hello", "a slow hello", "hello again"):
        with contextlib.suppress(asyncio.TimeoutError):
            if text == "hello again":
                at("main")
                await pool.send(text)
            else:
                await asyncio.wait_for(pool.send(text), 0.3)


def notifies_with_a_limit():
    """As Fatal1ty/aioapns#42: a notification was not sent in time, and was cancelled. It had the lock of the pool, and
    the next one waits for that."""
    asyncio.run(notify())


class Step:
    """Of a pipeline. It takes documents from its queue, and gives them to the next step."""

    def __init__(self, name, following=None):
        self.name, self.following, self.inbox = name, following, queue.Queue(maxsize=4)

    def work(self):
        while (document := self.inbox.get()) is not None:
            work_for(0.002)
            if self.following:
                self.following.inbox.put([*document, self.name])
        if self.following:
            self.following.inbox.put(None)


def steps_in_one_pool():
    """As nsoft/jesterj#44: the steps of a pipeline are run by one pool. There are more steps than threads, the queues
    are full, and the step that would empty the last of them waits for a thread."""
    index = Step("index")
    clean = Step("clean", index)
    scan = Step("scan", clean)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for step in (scan, clean, index):
            pool.submit(step.work)
        for number in itertools.count():
            if number == 12:
                at("main")
            scan.inbox.put([number])


class DownloadLock:
    """A file that is there for as long as somebody downloads."""

    def __init__(self, path):
        self.path = path

    def acquire(self):
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except FileExistsError:
            return False

    def __enter__(self):
        count = 0
        while not self.acquire():
            count += 1
            if count % 100 == 0:
                print(f"waiting to acquire {self.path}", flush=True)
            time.sleep(0.1)

    def __exit__(self, *_):
        os.unlink(self.path)


def download(name):
    with DownloadLock(in_folder(f"{name}.lock")), open(in_folder(name), "ab") as file:
        while file.tell() < 1 << 20:
            file.write(bytes(4096))
            file.flush()
            time.sleep(0.01)


def fetches_weights():
    """As noonghunna/club-3090#726: a download was interrupted. The file that is its lock is still there, and the next
    attempt waits until it is gone."""
    first = os.fork()
    if first == 0:
        download("model.safetensors")
        os._exit(0)
    while not os.path.exists(in_folder("model.safetensors")):
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    at("main")
    download("model.safetensors")


class Logger:
    """Writes to coroutines, each of which is a sink. The lock is for threads."""

    def __init__(self):
        self.lock, self.tasks, self.lines = threading.Lock(), [], []

    async def sink(self, line):
        await asyncio.sleep(0.05)
        self.lines.append(line)

    def log(self, line):
        with self.lock:
            self.tasks.append(asyncio.get_running_loop().create_task(self.sink(line)))

    async def complete(self):
        with self.lock:
            for task in self.tasks:
                await task
            self.tasks.clear()


async def answer(logger, number):
    if number == 6:
        at("main")
    logger.log(f"request {number}")
    await asyncio.sleep(0.01)
    logger.log(f"answer {number}")


async def serve_requests():
    logger = Logger()
    for number in range(5):
        await answer(logger, number)
        await logger.complete()
    await asyncio.gather(answer(logger, 5), logger.complete(), answer(logger, 6))


def completes_its_sinks():
    """As Delgan/loguru#972: all that was logged is waited for, with the lock of the logger. A coroutine that logs at
    that time takes the lock in the thread of the loop."""
    asyncio.run(serve_requests())


def lines_to_tokens():
    """Healthy, as huggingface/transformers#5944: all lines of a large file become tokens before the first step, in one
    thread, and nothing is said about that."""
    known, examples = {}, []
    with open(in_folder("corpus"), "w") as file:
        for number in range(4000):
            file.write(f"line {number} of a text, with word{number % 977} and word{number % 31} in it\n")
    for number in itertools.count():
        with open(in_folder("corpus")) as file:
            examples = [[known.setdefault(word, len(known)) for word in line.split()] for line in file]
        if number == 2:
            at("main")
    return examples


PROGRAMS = {
    "server-before-fork": server_before_fork,
    "staging-buffer": staging_buffer,
    "notifies-with-a-limit": notifies_with_a_limit,
    "steps-in-one-pool": steps_in_one_pool,
    "fetches-weights": fetches_weights,
    "completes-its-sinks": completes_its_sinks,
    "lines-to-tokens": lines_to_tokens,
}

if __name__ == "__main__":
    run(PROGRAMS)
