"""Engines of one process with threads that hang, and healthy ones, eighth set: `eighth_threads.py NAME FOLDER`."""

import asyncio
import contextlib
import ctypes
import itertools
import queue
import threading
import time

from tests.inferiors.live.eighth_extension import extension
from tests.inferiors.live.place import at, run, thread, work_for


class Streams:
    """Tokens of the engine's thread, handed to the stream of each request."""

    def __init__(self):
        self.outputs, self.streams = asyncio.Queue(), {}
        self.requests, self.loop = queue.SimpleQueue(), asyncio.get_running_loop()
        thread(self.step)
        self.dispatcher = self.loop.create_task(self.dispatch())

    def step(self):
        """The engine: 64 tokens for each request."""
        while True:
            number = self.requests.get()
            for token in range(64):
                self.loop.call_soon_threadsafe(self.outputs.put_nowait, (number, token))

    async def dispatch(self):
        while True:
            number, token = await self.outputs.get()
            await self.streams[number].put(token)

    async def generate(self, number):
        stream = self.streams[number] = asyncio.Queue(maxsize=16)
        self.requests.put(number)
        for _ in range(64):
            yield await stream.get()
        del self.streams[number]


def client_has_gone():
    """A client ends its connection after a few tokens. Its stream stays known, is full soon, and the dispatcher waits
    for room in it, with the tokens of the next request behind."""

    async def handler(streams, number, wanted):
        async for token in streams.generate(number):
            if token == wanted:
                raise ConnectionResetError("client has gone")

    async def main():
        streams = Streams()
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        for number, wanted in enumerate((64, 5, 64)):
            if number == 2:
                at("main")
            with contextlib.suppress(ConnectionResetError):
                await handler(streams, number, wanted)
        await server.serve_forever()

    asyncio.run(main())


class Cache:
    """The scheduler's requests and the blocks of the cache, each with a lock of its own."""

    def __init__(self):
        self.requests_lock, self.blocks_lock = threading.Lock(), threading.Lock()
        self.requests, self.blocks = {number: [number] for number in range(8)}, set(range(64))
        self.both = threading.Barrier(2)

    def step(self):
        """Preempts who was last, to have blocks for the others."""
        with self.requests_lock:
            self.both.wait()
            number = max(self.requests)
            with self.blocks_lock:
                self.blocks.update(self.requests.pop(number))

    def free(self, numbers):
        """Blocks of finished requests: counts them first."""
        with self.blocks_lock:
            self.both.wait()
            for number in numbers:
                with self.requests_lock:
                    self.blocks.update(self.requests.pop(number, ()))

    def length(self):
        with self.requests_lock:
            return len(self.requests)


def step_and_free():
    """The scheduler's thread takes the requests' lock, then the blocks', the one that frees takes them the other way
    round. Four handlers, one after the other, ask for the length of the line."""
    cache = Cache()
    made = [thread(cache.step), thread(cache.free, [1, 2])]
    while not (cache.requests_lock.locked() and cache.blocks_lock.locked()):
        time.sleep(0.01)
    time.sleep(0.1)
    made += [thread(cache.length) for _ in range(4)]
    at("main")
    for one in made:
        one.join()


class Blocks:
    """Blocks of the cache; who wants more than there are waits until some have been given back."""

    def __init__(self, free, tell):
        self.free, self.changed, self.tell = free, threading.Condition(), tell

    def take(self, wanted):
        with self.changed:
            while self.free < wanted:
                self.changed.wait()
            self.free -= wanted

    def give(self, number):
        with self.changed:
            self.free += number
            (self.changed.notify_all if self.tell == "all" else self.changed.notify)()


def sequence(blocks, wanted, seconds, times):
    for _ in times:
        blocks.take(wanted)
        work_for(seconds)
        blocks.give(wanted)


def asleep(blocks, number):
    while len(blocks.changed._waiters) < number:
        time.sleep(0.01)


def one_told_of_two():
    """Six blocks come back and one thread is told: that which has waited longest, and wants 32. The one that wants four
    is not told."""
    blocks = Blocks(0, "one")
    made = []
    for number, wanted in enumerate((32, 4)):
        made.append(thread(sequence, blocks, wanted, 0.1, range(1)))
        asleep(blocks, number + 1)
    blocks.give(6)
    at("main")
    made[1].join()


def all_are_told():
    """Healthy: who waits for blocks is told each time; the large sequence has them for long and the others wait."""
    blocks = Blocks(32, "all")
    wishes = ((30, 1.5), (8, 0.3), (16, 0.6))
    made = [thread(sequence, blocks, wanted, seconds, itertools.count()) for wanted, seconds in wishes]
    at("main")
    for one in made:
        one.join()


MOVED = []


@ctypes.CFUNCTYPE(None, ctypes.c_long)
def moved(number):
    MOVED.append(number)


def stop_keeps_interpreter():
    """A thread of C++ reports to Python how many blocks it has moved. Who stops it waits for its end without giving the
    interpreter's lock away, which the last report needs."""
    library = extension(ctypes.PyDLL)
    library.mover_start(moved)
    while len(MOVED) < 10:
        time.sleep(0.01)
    at("main")
    library.mover_stop()


def packs_with_interpreter():
    """Healthy, if not good: packing a layer takes two seconds in C++ with the interpreter's lock, which reports from
    C++ and a Python thread wait for meanwhile."""
    library = extension(ctypes.PyDLL)
    library.weights_pack.argtypes, library.weights_pack.restype = [ctypes.c_double], ctypes.c_double
    library.mover_start(moved)

    def report():
        while True:
            time.sleep(0.5)
            print(len(MOVED), "blocks moved", flush=True)

    thread(report)
    at("main")
    while True:
        library.weights_pack(2.0)
        time.sleep(0.01)


PROGRAMS = {
    "client-has-gone": client_has_gone,
    "step-and-free": step_and_free,
    "one-told-of-two": one_told_of_two,
    "all-are-told": all_are_told,
    "stop-keeps-interpreter": stop_keeps_interpreter,
    "packs-with-interpreter": packs_with_interpreter,
}

if __name__ == "__main__":
    run(PROGRAMS)
