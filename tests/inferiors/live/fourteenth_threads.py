"""Engines of one process that hang, fourteenth set: `fourteenth_threads.py NAME FOLDER`."""

import asyncio
import atexit
import ctypes
import socket
import time

from tests.inferiors.live.fourteenth_extension import extension
from tests.inferiors.live.place import at, run

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)


class Generator:
    """Something of a thread that has not been ended. Its end wants a thread's state."""

    def __init__(self, library):
        self.library = library

    def __del__(self):
        self.library.thread_state_new()


def lock_of_thread_states():
    """As python/cpython#102126: at the interpreter's end the states of threads are cleared with the lock of their list.
    What one of them had is freed by that, and runs code that wants the lock."""
    library = extension(ctypes.PyDLL)
    frames = {}

    def clear(state):
        frames.pop(state, None)

    clear_state = CALLBACK(clear)
    atexit.register(library.thread_states_clear, clear_state)
    for _ in range(4):
        frames[library.thread_state_new()] = [b"frame"]
    frames[2].append(Generator(library))
    at("main")


class Client:
    """A client of a broker, which tells of its socket by callbacks, from whichever thread calls it."""

    def __init__(self, loop):
        self.loop, self.sock = loop, None

    def connect(self):
        self.sock, self.broker = socket.socketpair()
        self.sock.setblocking(False)
        self.on_socket_register_write()

    def publish(self, payload):
        try:
            self.sock.send(payload)
        except BlockingIOError:
            self.on_socket_register_write()

    def on_socket_register_write(self):
        """It need not be the loop's thread, so the loop is asked, and the answer waited for."""

        async def add_writer():
            self.loop.add_writer(self.sock, self.loop_write)

        asyncio.run_coroutine_threadsafe(add_writer(), self.loop).result()

    def loop_write(self):
        self.loop.remove_writer(self.sock)


async def serve():
    loop = asyncio.get_running_loop()
    client = Client(loop)
    await loop.run_in_executor(None, client.connect)
    for _ in range(20):
        client.publish(b"state: online")
        await asyncio.sleep(0.01)
    at("main")
    while True:
        client.publish(b"x" * (1 << 16))


def loop_waits_for_own_coroutine():
    """As empicano/aiomqtt#174: the callback was written for another thread, in which it is called first. When the
    socket is full it is called from the loop's own thread, and waits for what the loop would do."""
    asyncio.run(serve())


class Worker:
    def __init__(self, library, work):
        self.library, self.work = library, CALLBACK(work)
        self.library.worker_new.restype = ctypes.c_void_p
        self.native = ctypes.c_void_p(library.worker_new(self.work))

    def __del__(self):
        self.library.worker_delete(self.native)


def worker_joined_by_destructor():
    """As pybind/pybind11#1446: the last reference to a worker goes, and its destructor joins the thread, with the
    interpreter's lock. The thread is about to call Python."""
    seen = []
    workers = {"one": Worker(extension(ctypes.PyDLL), seen.append)}
    while len(seen) < 5:
        time.sleep(0.01)
    at("main")
    workers.clear()


PROGRAMS = {
    "lock-of-thread-states": lock_of_thread_states,
    "loop-waits-for-own-coroutine": loop_waits_for_own_coroutine,
    "worker-joined-by-destructor": worker_joined_by_destructor,
}

if __name__ == "__main__":
    run(PROGRAMS)
