"""Engines of one process with threads that hang, and healthy ones, eleventh set: `eleventh_threads.py NAME FOLDER`."""

import asyncio
import ctypes
import faulthandler
import http.client
import http.server
import itertools
import socket
import threading
import time

from tests.inferiors.live.eleventh_extension import extension
from tests.inferiors.live.place import at, in_folder, run, thread, work_for

BLOCKS = b"k" * (1 << 24)
"""More than the sockets and the buffers of two streams have room for."""


def streams_drain_both():
    """Two nodes exchange their caches by streams of one loop: each writes its own and waits until that has gone,
    before it reads the other's."""

    async def exchange(reader, writer):
        writer.write(BLOCKS)
        await writer.drain()
        await reader.readexactly(len(BLOCKS))

    async def main():
        server = await asyncio.start_server(exchange, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        asyncio.get_running_loop().call_later(0.5, at, "main")
        await exchange(reader, writer)

    asyncio.run(main())


def streams_drain_slowly():
    """Healthy: one node sends and waits for room all the time, the other one takes a little every 0.2 seconds."""

    async def take(reader, _writer):
        while await reader.read(1 << 16):
            await asyncio.sleep(0.2)

    async def main():
        server = await asyncio.start_server(take, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        at("main")
        while True:
            writer.write(BLOCKS[: 1 << 17])
            await writer.drain()

    asyncio.run(main())


def sets_level_with_interpreter():
    """A thread of C++ logs by a function of Python, with the lock of the log for reading. Who sets the level of the log
    wants it for writing, and keeps the interpreter's lock, which the function needs to come to its end."""
    library, begun = extension(ctypes.PyDLL), threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def write(level):
        begun.set()
        with open(in_folder("lines"), "a") as file:
            time.sleep(0.3)  # a slow disk
            file.write(f"level {level}\n")

    library.log_start(write)
    begun.wait()
    at("main")
    library.log_set_level(1)


def answer_pings(connection):
    while message := connection.recv(4096):
        connection.sendall(message)


def close_wakes_nobody():
    """The client closes its connection and waits for the thread that reads from it: who is in recv() stays there."""
    here, there = socket.socketpair()
    thread(answer_pings, there)
    here.sendall(b"ping")

    def read():
        while here.recv(4096):
            pass

    reader = thread(read)
    time.sleep(0.3)
    at("main")
    here.close()
    reader.join()


class Updates:
    """New weights: who needs them waits for the event."""

    def __init__(self):
        self.loaded, self.version = threading.Event(), 0

    def begin(self):
        self.loaded = threading.Event()

    def end(self):
        self.version += 1
        self.loaded.set()


def event_was_replaced():
    """The loader begins a second update before the first one has ended, with an event of its own for it; the engine
    waits for the first event."""
    updates = Updates()

    def load():
        time.sleep(0.3)
        updates.begin()
        work_for(0.2)
        while True:
            updates.end()
            time.sleep(1.0)

    thread(load)
    at("main")
    updates.loaded.wait()


class Poll(http.server.BaseHTTPRequestHandler):
    """GET waits for news, which there are none of, and says so."""

    protocol_version = "HTTP/1.1"
    news = threading.Event()

    def do_GET(self):
        self.send_response(200 if self.news.wait(1.2) else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def polls_for_long():
    """Healthy: a client asks for news, is told after 1.2 seconds that there are none, and asks again."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Poll)
    thread(server.serve_forever)
    connection = http.client.HTTPConnection(*server.server_address)
    at("main")
    while True:
        connection.request("GET", "/news")
        connection.getresponse().read()


def watchdog_tells_stacks():
    """Healthy: a watchdog writes all stacks whenever a step takes more than a second, and each takes 1.6."""
    with open(in_folder("stacks"), "w") as file:
        done = threading.Event()
        thread(done.wait)
        at("main")
        while True:
            faulthandler.dump_traceback_later(1.0, file=file)
            work_for(1.6)
            faulthandler.cancel_dump_traceback_later()


def replays_at_its_pace():
    """Healthy: requests of a recorded trace are sent when it says so, one every 1.3 seconds, and answered after one."""

    async def answer(reader, writer):
        while line := await reader.readline():
            await asyncio.sleep(1.0)
            writer.write(line)

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        begin = time.monotonic()
        at("main")
        for number in itertools.count():
            await asyncio.sleep(begin + 1.3 * number - time.monotonic())
            writer.write(b"prompt\n")
            await reader.readline()

    asyncio.run(main())


PROGRAMS = {
    "streams-drain-both": streams_drain_both,
    "streams-drain-slowly": streams_drain_slowly,
    "sets-level-with-interpreter": sets_level_with_interpreter,
    "close-wakes-nobody": close_wakes_nobody,
    "event-was-replaced": event_was_replaced,
    "polls-for-long": polls_for_long,
    "watchdog-tells-stacks": watchdog_tells_stacks,
    "replays-at-its-pace": replays_at_its_pace,
}

if __name__ == "__main__":
    run(PROGRAMS)
