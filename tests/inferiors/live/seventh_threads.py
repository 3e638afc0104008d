"""Engines of one process with threads that hang, and their healthy twins, seventh set: `seventh_threads.py NAME
FOLDER`."""

import contextlib
import ctypes
import http.client
import http.server
import itertools
import os
import queue
import select
import socket
import threading
import time
import zlib

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.seventh_extension import extension


def decode(images):
    """Until there is a None in the place of an image."""
    while (image := images.get()) is not None:
        zlib.compress(image, 9)


def decoders(images):
    made = [thread(decode, images) for _ in range(3)]
    at("main")
    for one in made:
        one.join()


def one_end_for_three():
    """All images are decoded. One None is put for three threads: the first that takes it ends, two wait for theirs."""
    images = queue.Queue()
    for _ in range(6):
        images.put(os.urandom(1 << 16))
    images.put(None)
    decoders(images)


def ends_for_all():
    """The twin: a None for each behind a long line of large images, and a thread that says how many are left."""
    images = queue.Queue()
    for image in (*[os.urandom(1 << 23)] * 10000, None, None, None):
        images.put(image)

    def report():
        while True:
            time.sleep(1.0)
            print(images.qsize(), "images left", flush=True)

    thread(report)
    decoders(images)


class Admin(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        if self.path == "/shutdown":
            at("main")
            self.server.shutdown()
        self.send_response(200)
        self.end_headers()


def post(address, path):
    client = http.client.HTTPConnection(*address)
    client.request("POST", path)
    client.getresponse()


def shutdown_in_handler():
    """A request ends the server: its handler waits for the end of the loop that it is called from."""
    with http.server.HTTPServer(("127.0.0.1", 0), Admin) as server:
        thread(post, server.server_address, "/shutdown")
        server.serve_forever()


def take_once(connection):
    return connection.recv(4096)


def take_all(connection):
    pieces = []
    with contextlib.suppress(BlockingIOError):
        while piece := connection.recv(4096):
            pieces.append(piece)
    return b"".join(pieces)


def serve_edges(server, take):
    """A loop that epoll tells of each arrival once; a request is a line, and so is its answer."""
    connection, text = server.accept()[0], b""
    connection.setblocking(False)
    arrivals = select.epoll()
    arrivals.register(connection, select.EPOLLIN | select.EPOLLET)
    while True:
        arrivals.poll()
        text += take(connection)
        while b"\n" in text:
            _, _, text = text.partition(b"\n")
            work_for(0.02)
            connection.sendall(b"done\n")


def ask(take, sizes):
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread(serve_edges, server, take)
        with socket.create_connection(server.getsockname()) as client:
            for number, size in enumerate(sizes):
                if number == 3:
                    at("main")
                client.sendall(b"x" * size + b"\n")
                client.recv(64)


def rest_is_not_read():
    """The fourth prompt is longer than what the server reads at once; its rest is there, and nothing more arrives."""
    ask(take_once, (100, 900, 2000, 6000))


def rest_is_read():
    """The twin: the server reads until there is nothing."""
    ask(take_all, itertools.cycle((100, 900, 2000, 6000, 40000)))


FILLS = threading.Event()


@ctypes.CFUNCTYPE(ctypes.c_long)
def fill():
    """How many operators there are: counts the files of a folder, one by one."""
    FILLS.set()
    count = 0
    for number in range(20):
        time.sleep(0.1)
        count += os.path.exists(f"/proc/{number}")
    return count


def static_and_interpreter():
    """A thread fills a static variable of a C++ function, by Python code that lets go of the interpreter's lock; the
    main thread comes to the same variable meanwhile, and waits for it with the interpreter's lock kept."""
    library = extension(ctypes.PyDLL)
    thread(library.operators_count, fill)
    FILLS.wait()
    at("main")
    library.operators_count(fill)


PROGRAMS = {
    "one-end-for-three": one_end_for_three,
    "ends-for-all": ends_for_all,
    "shutdown-in-handler": shutdown_in_handler,
    "rest-is-not-read": rest_is_not_read,
    "rest-is-read": rest_is_read,
    "static-and-interpreter": static_and_interpreter,
}

if __name__ == "__main__":
    run(PROGRAMS)
