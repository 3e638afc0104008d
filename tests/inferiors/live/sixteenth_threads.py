"""Engines of one process that hang, sixteenth set: `sixteenth_threads.py NAME FOLDER`."""

import asyncio
import ctypes

from tests.inferiors.live.place import at, run, thread
from tests.inferiors.live.sixteenth_extension import extension

CALLBACK = ctypes.CFUNCTYPE(None)


def on_token():
    print("a token", flush=True)


def generate(library, callback):
    at("main")
    library.call_back(callback)


def acquires_what_it_has():
    """As pybind/pybind11#1556: a thread of Python calls C++, which calls back. The library knows only its own threads,
    takes this one for one without the lock of the interpreter, and waits for the lock that it has."""
    library, callback = extension(ctypes.PyDLL), CALLBACK(on_token)
    thread(generate, library, callback).join()


class Engine:
    """Its requests are coroutines of a loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.timers = asyncio.new_event_loop()  # of the main thread, as for all that asks for the usual one
        thread(self.loop.run_forever)

    def pause(self, seconds):
        paused = self.loop.create_future()
        self.timers.call_later(seconds, self.loop.call_soon_threadsafe, paused.set_result, None)
        return paused

    async def process(self, number):
        if number % 4 == 3:
            await self.pause(0.1)
        return number

    def request(self, number):
        return asyncio.run_coroutine_threadsafe(self.process(number), self.loop)


def timer_in_a_loop_that_stands():
    """As python/asyncio#312: the loop runs in a thread. A request sleeps, and its timer is in the loop of the main
    thread, which nobody runs."""
    engine = Engine()
    for number in range(8):
        if number == 3:
            at("main")
        engine.request(number).result()


PROGRAMS = {
    "acquires-what-it-has": acquires_what_it_has,
    "timer-in-a-loop-that-stands": timer_in_a_loop_that_stands,
}

if __name__ == "__main__":
    run(PROGRAMS)
