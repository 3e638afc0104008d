"""Engines of one process that hang, seventeenth set: `seventeenth_threads.py NAME FOLDER`."""

import asyncio
import ctypes
import queue
import socket
import sqlite3
import threading
import time

from tests.inferiors.live.place import at, run, thread
from tests.inferiors.live.seventeenth_extension import extension

STEP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def double(number):
    return number * 2


def interpreter_kept_by_who_waits():
    """As Kitware/kwiver#468: the steps of a pipeline are threads in C++, some of which are in Python. The main thread
    has the lock of the interpreter and does not let go of it; it waits for the threads."""
    step = STEP(double)
    print(extension().run_pipeline(step, 4), flush=True)
    library = extension(ctypes.PyDLL)
    at("main")
    library.run_pipeline(step, 4)


class Call:
    """What is typed and whether the key is pressed are waited for in threads, beside the loop."""

    def __init__(self):
        self.typed, self.pressed, self.spoken = queue.Queue(), threading.Event(), None

    def hear(self, loop):
        for word in ("hello", "how are you", "good bye"):
            time.sleep(0.1)
            loop.call_soon_threadsafe(self.spoken.put_nowait, word)

    async def talk(self):
        loop = asyncio.get_running_loop()
        self.spoken = asyncio.Queue()
        typed = loop.run_in_executor(None, self.typed.get)
        pressed = loop.run_in_executor(None, self.pressed.wait)
        thread(self.hear, loop)
        try:
            while await self.spoken.get() != "good bye":
                await asyncio.sleep(0.01)
        finally:
            typed.cancel()
            pressed.cancel()
            print("hung up", flush=True)
            at("main")


def loop_ends_and_its_threads_do_not():
    """As jaredrhod/backtalk#24: the program has ended, but for the threads of its loop. Their calls were cancelled, and
    still wait for what is typed and for a key; the loop waits for them before it is closed."""
    asyncio.run(Call().talk())


class Pool:
    """Two connections to a database. Who wants one waits for it."""

    def __init__(self):
        self.free = queue.Queue()
        for _ in range(2):
            self.free.put(sqlite3.connect(":memory:", check_same_thread=False))

    def checkout(self):
        if self.free.empty():
            at("main")
        return self.free.get()


class Service:
    """Each request is a coroutine of the one loop."""

    def __init__(self):
        self.pool = Pool()

    async def answer(self, reader, writer):
        await reader.readline()
        connection = self.pool.checkout()
        try:
            row = connection.execute("select 40 + 2").fetchone()
            await asyncio.sleep(0.05)  # it asks another service
        finally:
            self.pool.free.put(connection)
        writer.write(f"{row[0]}\n".encode())

    async def serve(self, port):
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname())
        await asyncio.Event().wait()


def ask(address, together):
    connections = [socket.create_connection(address) for _ in range(together)]
    for connection in connections:
        connection.sendall(b"select\n")
    for connection in connections:
        connection.recv(64)


def send_requests(port):
    address = port.get()
    for together in (1, 2, 3):
        ask(address, together)


def connection_awaited_in_the_loop():
    """As siddhantgoel/tornado-sqlalchemy#88: more requests come at once than there are connections. The third one waits
    for one in the thread of the loop, and those that have them cannot go on to give them back."""
    port = queue.Queue()
    thread(send_requests, port)
    asyncio.run(Service().serve(port))


class Client:
    """Of an engine; it has a context of its own."""

    def __init__(self, address):
        import zmq

        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.REQ)
        self.socket.linger = 0
        self.socket.connect(address)

    def ask(self, word):
        self.socket.send(word)
        return self.socket.recv()

    def close(self):
        self.context.term()


def echo(server, count):
    for _ in range(count):
        server.send(server.recv())


def context_before_its_socket():
    """As zeromq/libzmq#2312: the context is ended while its socket is open, in the thread that would close it. That
    nothing waits to be sent does not help: the context waits for the socket."""
    import zmq

    server = zmq.Context.instance().socket(zmq.REP)
    port = server.bind_to_random_port("tcp://127.0.0.1")
    thread(echo, server, 3)
    client = Client(f"tcp://127.0.0.1:{port}")
    for _ in range(3):
        client.ask(b"a prompt")
    at("main")
    client.close()


PROGRAMS = {
    "interpreter-kept-by-who-waits": interpreter_kept_by_who_waits,
    "loop-ends-and-its-threads-do-not": loop_ends_and_its_threads_do_not,
    "connection-awaited-in-the-loop": connection_awaited_in_the_loop,
    "context-before-its-socket": context_before_its_socket,
}

if __name__ == "__main__":
    run(PROGRAMS)
