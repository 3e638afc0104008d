"""Services, workers and daemons without ranks, all healthy, second set: `second_services.py NAME FOLDER`."""

import asyncio
import hashlib
import multiprocessing.connection
import os
import queue
import socket
import socketserver
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from xmlrpc.server import SimpleXMLRPCServer

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.processes import fork, started


def worker_processes():
    """An API process in its event loop; two engine workers wait for work at one queue."""
    work = fork.Queue()

    def engine(role):
        at(role)
        while True:
            work_for(work.get())

    started((engine, "one"), (engine, "two"))

    async def serve():
        server = await asyncio.start_server(lambda *_: work.put(0.1), "127.0.0.1", 0)
        at("main")
        await server.serve_forever()

    asyncio.run(serve())


def supervisor():
    """A parent that waits for the end of its children, which serve pipes without requests."""
    children, pipes = [], []
    for number in range(2):
        here, there = fork.Pipe()
        pipes.append(here)
        children += started((serve_pipe, there, f"child{number}"))
    at("main")
    multiprocessing.connection.wait([one.sentinel for one in children])


def serve_pipe(pipe, role):
    at(role)
    while True:
        pipe.send(pipe.recv())


def manager_and_workers():
    """Workers that wait for jobs at the queue of a manager."""
    with fork.Manager() as manager:
        jobs = manager.Queue()

        def work(role):
            at(role)
            while True:
                work_for(jobs.get())

        started((work, "one"), (work, "two"))
        with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as server:
            server.register_function(jobs.put)
            at("main")
            server.serve_forever()


def follows_log():
    """A log shipper: lines of `tail -f` of a file that nobody writes to now."""
    path = os.path.join(sys.argv[2], "engine.txt")
    with open(path, "w") as file:
        file.write("started\n")
    with subprocess.Popen(["tail", "-f", path], stdout=subprocess.PIPE, text=True) as tail:
        tail.stdout.readline()
        at("main")
        for line in tail.stdout:
            print(line)


def watches_trainer():
    """A watchdog looks after a trainer each second; the trainer computes in numpy."""
    import numpy

    def train():
        at("trainer")
        one = numpy.ones((700, 700))
        while True:
            one = one @ one
            one /= one.max()

    (trainer,) = started(train)
    at("main")
    while trainer.is_alive():
        time.sleep(1.0)


def process_pool_of_tasks():
    """Futures of a process pool, as many at a time as it has workers."""
    with ProcessPoolExecutor(2, mp_context=fork) as pool:
        at("main")
        while True:
            for one in [pool.submit(work_for, 0.2) for _ in range(2)]:
                one.result()


def continuous_batching():
    """An event loop whose scheduler waits for requests, with a metrics timer and an idle executor."""

    async def serve():
        requests = asyncio.Queue()

        async def schedule():
            while True:
                await loop.run_in_executor(pool, work_for, await requests.get())

        async def metrics():
            while True:
                await asyncio.sleep(5)

        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(2)
        await loop.run_in_executor(pool, work_for, 0.05)
        tasks = [asyncio.create_task(one()) for one in (schedule, metrics)]
        async with await asyncio.start_server(lambda *_: requests.put_nowait(0.1), "127.0.0.1", 0):
            at("main")
            await asyncio.gather(*tasks)

    asyncio.run(serve())


def database_queue():
    """A worker asks a table for jobs twice a second."""
    jobs = sqlite3.connect(os.path.join(sys.argv[2], "jobs.db"))
    jobs.execute("CREATE TABLE jobs (id INT)")
    at("main")
    while not jobs.execute("SELECT id FROM jobs").fetchall():
        time.sleep(0.5)


def kernel():
    """A notebook's kernel: a heartbeat in a thread, the main thread polls its sockets."""
    import zmq

    context = zmq.Context.instance()

    def beat():
        heart = context.socket(zmq.REP)
        heart.bind(f"ipc://{sys.argv[2]}/heart")
        while True:
            heart.send(heart.recv())

    thread(beat)
    poller = zmq.Poller()
    for name in ("shell", "control"):
        one = context.socket(zmq.ROUTER)
        one.bind(f"ipc://{sys.argv[2]}/{name}")
        poller.register(one, zmq.POLLIN)
    at("main")
    while not poller.poll():
        pass


def zmq_pipeline():
    """An engine process and its front end: the front end waits for clients, the engine for the front end."""
    import zmq

    def engine():
        inbox = zmq.Context().socket(zmq.PULL)
        inbox.connect(f"ipc://{sys.argv[2]}/inbox")
        at("engine")
        while True:
            work_for(inbox.recv_pyobj())

    started(engine)
    outbox = zmq.Context().socket(zmq.PUSH)
    outbox.bind(f"ipc://{sys.argv[2]}/inbox")
    with socket.create_server(("127.0.0.1", 0)) as server:
        at("main")
        while True:
            server.accept()[0].close()
            outbox.send_pyobj(0.1)


def listener_of_connections():
    """multiprocessing's Listener with a connected client that says nothing, a thread for each connection."""
    listener = multiprocessing.connection.Listener(("127.0.0.1", 0))
    clients = []

    def serve():
        while True:
            thread(listener.accept().recv)

    thread(serve)
    clients.append(multiprocessing.connection.Client(listener.address))

    class Control(socketserver.StreamRequestHandler):
        def handle(self):
            clients.append(self.rfile.readline())

    with socketserver.TCPServer(("127.0.0.1", 0), Control) as server:
        at("main")
        server.serve_forever()


def matrix_product():
    """torch's own threads compute."""
    import torch

    torch.set_num_threads(2)
    one = torch.rand(1200, 1200)
    at("main")
    while True:
        one = torch.nn.functional.normalize(one @ one)


def loads_weights():
    """Reads shards from the disk and checks their sums, as at a start."""
    path = os.path.join(sys.argv[2], "shard")
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
    at("main")
    while True:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            digest = hashlib.sha256()
            while block := file.read(1 << 20):
                digest.update(block)


def loop_with_program():
    """An event loop waits for a program that computes."""

    async def main():
        at("main")
        while True:
            child = await asyncio.create_subprocess_exec("sha256sum", "/proc/self/exe", stdout=asyncio.subprocess.PIPE)
            await child.communicate()
            child = await asyncio.create_subprocess_shell("head -c 400000000 /dev/zero | sha256sum > /dev/null")
            await child.wait()

    asyncio.run(main())


def thread_workers_and_timer():
    """Job threads wait at a queue with a time limit, as many libraries do, so that they can be told to end."""
    jobs, ended = queue.Queue(), threading.Event()

    def work():
        while not ended.is_set():
            try:
                jobs.get(timeout=2.0)()
            except queue.Empty:
                continue

    for _ in range(3):
        thread(work)
    at("main")
    while not ended.wait(30.0):
        jobs.put(time.monotonic)


PROGRAMS = {
    "worker-processes": worker_processes,
    "supervisor": supervisor,
    "manager-and-workers": manager_and_workers,
    "follows-log": follows_log,
    "watches-trainer": watches_trainer,
    "process-pool": process_pool_of_tasks,
    "continuous-batching": continuous_batching,
    "database-queue": database_queue,
    "kernel": kernel,
    "zmq-pipeline": zmq_pipeline,
    "listener": listener_of_connections,
    "matrix-product": matrix_product,
    "loads-weights": loads_weights,
    "loop-with-program": loop_with_program,
    "job-threads": thread_workers_and_timer,
}

if __name__ == "__main__":
    run(PROGRAMS)
