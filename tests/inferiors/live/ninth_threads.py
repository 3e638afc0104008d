"""Engines of one process with threads that hang, and healthy ones, ninth set: `ninth_threads.py NAME FOLDER`."""

import asyncio
import ctypes
import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tests.inferiors.live.ninth_extension import extension
from tests.inferiors.live.place import at, child_of, run, thread, work_for


class Engine:
    """An executor of its own: requests in turns, without those that were cancelled meanwhile."""

    def __init__(self, dropped):
        self.requests, self.dropped = queue.Queue(), dropped
        thread(self.step)

    def submit(self, seconds):
        future = Future()
        self.requests.put((future, seconds))
        return future

    def step(self):
        while True:
            future, seconds = self.requests.get()
            if self.dropped(future):
                continue
            work_for(seconds)
            future.set_result(seconds)


def cancelled_not_notified():
    """A request is cancelled before its turn. The engine asks whether it is and drops it, which tells those nothing
    that wait for all the requests of the batch, the last of which is done."""
    engine = Engine(lambda future: future.cancelled())
    futures = [engine.submit(0.5) for _ in range(3)]
    futures[1].cancel()
    futures[2].result()
    at("main")
    wait(futures)


def cancelled_and_notified():
    """Healthy: of each batch one request is cancelled, and the rest takes 1.4 seconds."""
    engine = Engine(lambda future: not future.set_running_or_notify_cancel())
    at("main")
    while True:
        futures = [engine.submit(0.7) for _ in range(3)]
        futures[1].cancel()
        wait(futures)


BASES = {"chat-long": "chat", "chat": "chat-latest", "chat-latest": "chat-long"}
"""What each adapter is made of. A new name was given to the wrong one."""


class Adapters:
    """Each is loaded once: whoever wants it meanwhile waits for the one that loads it."""

    def __init__(self):
        self.lock, self.flights = threading.Lock(), {}

    def load(self, name):
        with self.lock:
            flight = self.flights.get(name)
            mine = flight is None
            if mine:
                flight = self.flights[name] = Future()
        if mine:
            base = self.load(BASES[name]) if name in BASES else b""
            flight.set_result(base + name.encode())
        return flight.result()


def adapter_of_itself():
    """The adapters' bases make a circle: the thread that loads the first one waits for itself in the end."""
    adapters = Adapters()
    with ThreadPoolExecutor(4) as pool:
        loaded = [pool.submit(adapters.load, name) for name in ("plain", "chat-long")]
        loaded[0].result()
        at("main")
        loaded[1].result()


class Decoder:
    """Outputs, one after the other; one that cannot be decoded is logged."""

    def __init__(self, survives):
        self.outputs, self.survives = asyncio.Queue(), survives

    async def run(self):
        while True:
            try:
                output = await self.outputs.get()
                print(output.decode(), flush=True)
            except self.survives as error:
                print("not decoded:", error, flush=True)


def cancel_is_swallowed():
    """At its end the engine cancels the decoder and waits for it; the decoder logs that as it logs everything."""

    async def main():
        decoder = Decoder(BaseException)
        running = asyncio.create_task(decoder.run())
        for output in (b"one", b"\xff", b"three"):
            decoder.outputs.put_nowait(output)
        await asyncio.sleep(0.1)
        at("main")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def restarts_decoder():
    """Healthy: a server without clients, whose decoder is ended and begun anew each second."""

    async def main():
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0):
            at("main")
            while True:
                running = asyncio.create_task(Decoder(Exception).run())
                await asyncio.sleep(1.0)
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def team(library, seconds):
    """Two threads that meet in C++ after each step."""
    go = threading.Event()

    def steps():
        go.wait()
        while True:
            library.team_wait()
            work_for(seconds)

    thread(steps)
    library.team_open(2)
    at("main")
    go.set()
    while True:
        library.team_wait()
        work_for(0.1)


def barrier_keeps_interpreter():
    """Who comes first waits with the interpreter's lock, without which the other one cannot come."""
    team(extension(ctypes.PyDLL), 0.01)


def barrier_gives_interpreter():
    """Healthy: the main thread waits in C++ for the other one, which needs 1.2 seconds for a step."""
    team(extension(), 1.2)


def fork_handler_and_interpreter():
    """The thread of C++ that reports to Python has a mutex meanwhile. fork() takes that mutex first, so that the child
    finds all in order, and Python forks a worker with the interpreter's lock, which the report needs to go on."""
    library, reporting = extension(), threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_long)
    def report(number):
        reporting.set()
        time.sleep(0.2)
        print(number, "blocks moved", flush=True)

    library.reporter_start(report)
    at("main")
    reporting.wait()
    while True:
        child_of(work_for, 0.1).join()


PROGRAMS = {
    "cancelled-not-notified": cancelled_not_notified,
    "cancelled-and-notified": cancelled_and_notified,
    "adapter-of-itself": adapter_of_itself,
    "cancel-is-swallowed": cancel_is_swallowed,
    "restarts-decoder": restarts_decoder,
    "barrier-keeps-interpreter": barrier_keeps_interpreter,
    "barrier-gives-interpreter": barrier_gives_interpreter,
    "fork-handler-and-interpreter": fork_handler_and_interpreter,
}

if __name__ == "__main__":
    run(PROGRAMS)
