"""Servers that wait for requests, with and without ranks behind them, all healthy: `serving.py NAME FOLDER`."""

import asyncio
import http.server
import multiprocessing
import os
import queue
import select
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from tests.inferiors.live.place import LONG, at, run, thread, work_for

RANK = int(os.environ.get("RANK", "0"))


def followers(front):
    """Rank 0 waits for requests in `front`; the others wait in a broadcast for what it tells them to do."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=LONG)
    dist.barrier()
    command = [None]
    at(RANK)
    while True:
        if RANK == 0:
            command = [front()]
        dist.broadcast_object_list(command, src=0)


def http_front():
    """One request of a plain HTTP server."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.handle_request()


def asyncio_front():
    """An event loop that serves until a request comes."""

    async def serve():
        arrived = asyncio.Event()
        async with await asyncio.start_server(lambda *_: arrived.set(), "127.0.0.1", 0):
            await arrived.wait()

    asyncio.run(serve())


def queue_front():
    """The requests come by a queue from a process that listens."""
    fork = multiprocessing.get_context("fork")
    requests = fork.Queue()

    def listen():
        with socket.create_server(("127.0.0.1", 0)) as server:
            while True:
                requests.put(server.accept()[1])

    fork.Process(target=listen, daemon=True).start()
    return requests.get()


def thread_front():
    """The main thread waits for a queue that a thread with the socket fills."""
    requests = queue.Queue()

    def listen():
        with socket.create_server(("127.0.0.1", 0)) as server:
            while True:
                requests.put(server.accept())

    thread(listen)
    return requests.get()


def asyncio_server():
    async def serve():
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        at("main")
        await server.serve_forever()

    asyncio.run(serve())


def asyncio_with_jobs():
    """An event loop with a timer and an executor that works now and then."""

    async def serve():
        at("main")
        while True:
            await asyncio.get_running_loop().run_in_executor(None, work_for, 0.05)
            await asyncio.sleep(0.2)

    asyncio.run(serve())


def http_with_pool():
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work_for, [0.01] * 16))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        at("main")
        server.serve_forever()


def executor_of_processes():
    """A server whose processes have nothing to do yet."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(work_for, [0.05] * 4))
        with socket.create_server(("127.0.0.1", 0)) as server:
            at("main")
            server.accept()


def prefork():
    """A parent that looks after two children which accept on one socket."""
    server = socket.create_server(("127.0.0.1", 0))
    for number in (1, 2):
        if os.fork() == 0:
            at(f"child{number}")
            while True:
                server.accept()[0].close()
    at("main")
    while True:
        select.select([], [], [], 1.0)
        os.waitpid(-1, os.WNOHANG)


def pauses_for_signals():
    """The main thread waits for a signal, threads do their rounds."""

    def rounds():
        while True:
            work_for(0.01)
            time.sleep(0.2)

    for _ in range(3):
        thread(rounds)
    at("main")
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def consumer_of_a_queue():
    """A daemon: one thread accepts, the main thread takes what it put."""
    at("main")
    thread_front()


def spool_and_condition():
    """A worker that waits for jobs; a thread looks every 100 ms whether somebody put one into the folder."""
    jobs = threading.Condition()

    def watch():
        while True:
            if any(name.endswith(".job") for name in os.listdir(sys.argv[2])):
                with jobs:
                    jobs.notify()
            time.sleep(0.1)

    thread(watch)
    at("main")
    with jobs:
        jobs.wait()


PROGRAMS = {
    "http-leader": lambda: followers(http_front),
    "asyncio-leader": lambda: followers(asyncio_front),
    "queue-leader": lambda: followers(queue_front),
    "thread-leader": lambda: followers(thread_front),
    "asyncio-server": asyncio_server,
    "asyncio-jobs": asyncio_with_jobs,
    "http-pool": http_with_pool,
    "executor-idle": executor_of_processes,
    "prefork": prefork,
    "sigwait": pauses_for_signals,
    "queue-daemon": consumer_of_a_queue,
    "spool": spool_and_condition,
}

if __name__ == "__main__":
    run(PROGRAMS)
