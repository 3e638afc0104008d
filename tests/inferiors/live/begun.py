"""Programs that wait as idle ones do and have begun something, and twins that have not: `begun.py NAME FOLDER`."""

import asyncio
import http.client
import http.server
import mmap
import multiprocessing
import os
import queue
import socket
import sys
import threading
from concurrent.futures import Future

from tests.inferiors.live.place import at, child_of, fifo, run, thread, work_for

FORK = multiprocessing.get_context("fork")


def beside_listener(tasks):
    """These, in a loop that also listens."""

    async def main():
        await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        made = [asyncio.create_task(one) for one in tasks()]
        asyncio.get_running_loop().call_later(0.1, at, "main")
        await asyncio.gather(*made)

    asyncio.run(main())


def slots_that_nobody_frees():
    def tasks():
        changed = asyncio.Condition()

        async def request():
            async with changed:
                await changed.wait()

        return [request(), request()]

    beside_listener(tasks)


def future_that_nobody_sets():
    async def request(future):
        await future

    beside_listener(lambda: [request(asyncio.get_running_loop().create_future())])


def consumers_without_work():
    def tasks():
        work = asyncio.Queue()
        return [work.get(), work.get()]

    beside_listener(tasks)


class Front(http.server.BaseHTTPRequestHandler):
    answered = threading.Event()
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/wait":
            at("main")
            self.answered.wait()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def server():
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)


def beside_server(wait):
    with server() as front:
        thread(front.serve_forever)
        at("main")
        wait()


def lock_beside_server():
    lock = threading.Lock()
    lock.acquire()
    beside_server(lock.acquire)


def result_beside_server():
    beside_server(Future().result)


def orders_beside_server():
    beside_server(queue.Queue().get)


def client(address, path):
    connection = http.client.HTTPConnection(*address)
    connection.request("GET", path)
    connection.getresponse().read()
    if path != "/wait":
        at("main", os.getppid())
    os.read(os.open(fifo(), os.O_RDONLY), 1)


def serves(path):
    with server() as front:
        child_of(client, front.server_address, path)
        front.serve_forever()


def request_that_waits():
    serves("/wait")


def client_that_stays():
    serves("/")


def accepts_beside(status):
    with socket.create_server(("127.0.0.1", 0)) as listens:
        child = child_of(os._exit, status)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        at("main")
        listens.accept()


def worker_failed():
    accepts_beside(1)


def worker_done():
    accepts_beside(0)


def both_spin():
    flags = mmap.mmap(-1, 4096)

    def until(number, role):
        at(role)
        while not flags[number]:
            pass

    child_of(until, 0, "worker")
    until(1, "main")


def both_compute():
    def steps(role):
        at(role)
        while True:
            work_for(0.1)

    child_of(steps, "worker")
    steps("main")


def traces(connection):
    with open(fifo()) as sys.stdin:
        at("worker")
        breakpoint()
        connection.send(connection.recv())


def left_at_prompt():
    ours, theirs = FORK.Pipe()
    child_of(traces, theirs)
    at("main")
    ours.recv()


PROGRAMS = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(slots_that_nobody_frees, future_that_nobody_sets, consumers_without_work),
        *(lock_beside_server, result_beside_server, orders_beside_server, request_that_waits, client_that_stays),
        *(worker_failed, worker_done, both_spin, both_compute, left_at_prompt),
    )
}

if __name__ == "__main__":
    run(PROGRAMS)
