"""Engines of several processes that hang, and healthy ones, twenty-third set: `twenty_third_engines.py NAME FOLDER`."""

import asyncio
import contextlib
import http.client
import http.server
import json
import multiprocessing
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")

CHECKER = """
import sys
for number in range(3000):
    print(f"checked file {number}")
    if number % 2:
        print(f"file{number}.py: a line is too long, and its name is not in the list of names", file=sys.stderr)
"""


def execute(words, role=None):
    """What a command writes, and its errors after that."""
    command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if role:
        at(role, command.pid)
        at("main")
    output = command.stdout.read()
    errors = command.stderr.read()
    return command.wait(), output, errors


def output_before_errors():
    """As pypy/pypy#470: a command's output is read to its end, and its errors after that. There are more errors than
    go into the pipe, so that the command does not come to the end of its output."""
    execute([sys.executable, "-c", "print('hello')"])
    execute([sys.executable, "-c", CHECKER], "child")


def predict(spectrum):
    """One of them needs more memory than there is, and the kernel ends the process."""
    if spectrum == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    work_for(0.05)
    return spectrum * 2


def pool_for_large_spectra():
    """As wilhelm-lab/oktoberfest#372: a worker of a pool is killed for want of memory. It cannot tell that, and its
    result is waited for, for three hours."""
    with FORK.Pool(2) as pool:
        results = [pool.apply_async(predict, (spectrum,)) for spectrum in range(12)]
        pool.close()
        for number, result in enumerate(results):
            if number == 5:
                for later in results[6:]:
                    later.wait()
                at("main")
            print(result.get(timeout=3 * 3600), flush=True)


class Locks:
    """Of a scheduler, by their names; each is kept until who has it gives it back."""

    def __init__(self):
        self.owners, self.changed = {}, asyncio.Condition()

    async def acquire(self, name, client):
        async with self.changed:
            await self.changed.wait_for(lambda: name not in self.owners)
            self.owners[name] = client
        return "acquired"

    async def release(self, name, client):
        async with self.changed:
            if self.owners.get(name) == client:
                del self.owners[name]
            self.changed.notify_all()
        return "released"

    async def answer(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            async for line in reader:
                operation, name, client = json.loads(line)
                if client == "b":
                    at("scheduler")
                calls = {"acquire": self.acquire, "release": self.release}
                writer.write((await calls[operation](name, client)).encode() + b"\n")
                await writer.drain()
        writer.close()


async def serve_locks(path):
    server = await asyncio.start_unix_server(Locks().answer, path)
    async with server:
        await server.serve_forever()


def schedule(path):
    asyncio.run(serve_locks(path))


def connect(path):
    connection = socket.socket(socket.AF_UNIX)
    while True:
        try:
            connection.connect(path)
            return connection.makefile("rw")
        except OSError:
            time.sleep(0.02)


def ask(stream, *words):
    stream.write(json.dumps(words) + "\n")
    stream.flush()
    return stream.readline().strip()


def work_under_lock(path, name, results):
    scheduler = connect(path)
    if name == "b":
        at("b")
    ask(scheduler, "acquire", "table", name)
    if name == "a":
        os.kill(os.getpid(), signal.SIGKILL)
    work_for(0.1)
    ask(scheduler, "release", "table", name)
    results.put(name)


def lock_at_the_scheduler():
    """As dask/distributed#2362: a worker is lost while it has a lock. The lock is at the scheduler, which keeps it for
    the lost one; another worker waits for it, and the client for that one."""
    path, results = in_folder("scheduler.socket"), FORK.SimpleQueue()
    child_of(schedule, path)
    child_of(work_under_lock, path, "a", results).join()
    child_of(work_under_lock, path, "b", results)
    at("main")
    results.get()


class Blocks:
    """Of the cache of a prefill worker. Those of a request are kept until it is known that they were fetched."""

    def __init__(self, count):
        self.free, self.kept, self.changed = count, {}, threading.Condition()

    def allocate(self, request, count):
        with self.changed:
            self.changed.wait_for(lambda: self.free >= count)
            self.free -= count
            self.kept[request] = count

    def fetched(self, request):
        with self.changed:
            if request not in self.kept:
                print(f"no request {request} is known", flush=True)
                return
            self.free += self.kept.pop(request)
            self.changed.notify_all()


def take_notices(notices, blocks):
    while True:
        blocks.fetched(notices.get())


def prefill(role, requests, answers, notices):
    blocks = Blocks(16)
    thread(take_notices, notices, blocks)
    for number, request in enumerate(iter(requests.get, None)):
        if number == 4:
            at(role)
        blocks.allocate(request, 4)
        work_for(0.02)
        answers.put(request)


def decode(requests, answers, notices):
    """It has one part where the prefill has two. The first one gets a notice with its own name of the request."""
    for number, request in enumerate(iter(requests.get, None)):
        own = request.partition("-")[0] + f"-{hash(request) % 10_000:04}"
        work_for(0.02)
        notices[0].put(request)
        notices[1].put(own)
        answers.put(number)
        if number == 3:
            at("decode")


def blocks_freed_by_notice():
    """As vllm-project/vllm#36958: the blocks of a request are freed by a notice with its name. One of two prefill
    workers is told the name that the decoder has for it; that is another one, and all its blocks are kept."""
    requests = [FORK.Queue() for _ in range(3)]
    answers = [FORK.Queue() for _ in range(3)]
    notices = [FORK.Queue() for _ in range(2)]
    for number in range(2):
        child_of(prefill, f"prefill{number}", requests[number], answers[number], notices[number])
    child_of(decode, requests[2], answers[2], notices)
    for number in range(20):
        request = f"completion{number}-{number * 37 % 10_000:04}"
        for part in range(2):
            requests[part].put(request)
        if number == 4:
            at("main")
        for part in range(2):
            answers[part].get()
        requests[2].put(request)
        answers[2].get()


class Node:
    """A worker of a test run, as the controller sees it."""

    def __init__(self, name, events):
        self.name, self.events = name, events
        self.connection, worker = FORK.Pipe()
        self.process = FORK.Process(target=run_tests, args=(worker, name), daemon=True)
        self.process.start()
        worker.close()
        thread(self.listen)

    def listen(self):
        try:
            while True:
                kind, test = self.connection.recv()
                self.events.put((kind, self, test))
                if kind == "finished":
                    return
        except (EOFError, ConnectionError):
            self.events.put(("down", self, None))


def run_tests(connection, name):
    """Tests are run when it is told to, until it is told that there are no more."""
    if name == "worker2":
        at("replacement")
    for test in iter(connection.recv, "shutdown"):
        if test == 11:
            os._exit(139)
        work_for(0.02)
        connection.send(("report", test))
    connection.send(("finished", None))


class Controller:
    """Deals tests to its nodes, and is done when all of them have finished."""

    def __init__(self, tests):
        self.events, self.pending = queue.Queue(), list(range(tests))
        self.active, self.assigned, self.started = set(), {}, 0

    def start_node(self):
        node = Node(f"worker{self.started}", self.events)
        self.started += 1
        self.active.add(node)
        return node

    def deal(self, node):
        if self.pending:
            self.assigned[node] = self.pending.pop(0)
            node.connection.send(self.assigned[node])
        else:
            node.connection.send("shutdown")

    def run(self):
        for node in [self.start_node(), self.start_node()]:
            self.deal(node)
        while self.active:
            kind, node, test = self.events.get()
            if kind == "report":
                print(f"{node.name} passed {test}", flush=True)
                self.deal(node)
            elif kind == "finished":
                self.active.remove(node)
            else:
                print(f"{node.name} is down, at {self.assigned[node]}", flush=True)
                self.active.remove(node)
                self.start_node()
                at("main")


def replaces_a_worker():
    """As ohdearquant/lionagi#1440: the process of the last test dies, and another one is started for it. There are no
    tests for that one, and it is told nothing; the controller waits until all workers have finished."""
    Controller(12).run()


def load_model(path, progress):
    """From a disk that others want as well: some megabytes in a second."""
    with open(path, "rb") as file:
        while True:
            part = file.read(1 << 16)
            if not part:
                file.seek(0)
                continue
            numpy.frombuffer(part, dtype=numpy.float16).astype(numpy.float32)
            progress.value += len(part)
            if progress.value == 4 << 20:
                at("worker")
            time.sleep(0.05)


def models_on_a_slow_disk():
    """Healthy, as lllyasviel/Fooocus#238: a task waits until its model is there. It is loaded from a slow disk for half
    an hour, while the page shows a bar that does not move."""
    path, progress = in_folder("model.safetensors"), FORK.Value("q", 0)
    with open(path, "wb") as file:
        file.write(os.urandom(1 << 22))
    child_of(load_model, path, progress)
    wait_for_role("worker")
    at("main")
    while progress.value < 6_000_000_000:
        print(f"loading the model: {100 * progress.value // 6_000_000_000} %", flush=True)
        time.sleep(1)


def publish(listener):
    """A broker: two tasks, and none after that."""
    connection = listener.accept()[0]
    for number in range(2):
        connection.sendall(f"task {number}\n".encode())
    connection.recv(1)


def worker_without_tasks():
    """Healthy, as celery/billiard#158: the worker of a pool waits in its pipe for more work. There is none, as the
    broker has none for the one that asks it."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(publish, listener)
    with FORK.Pool(1) as pool:
        broker = socket.create_connection(listener.getsockname()).makefile()
        for number in range(2):
            pool.apply(len, (broker.readline(),))
            if number == 1:
                pool.apply(at, ("worker",))
                at("main")
        broker.readline()


class Draining:
    """A server whose connections are long. It is told to end by a signal, and waits for their handlers."""

    def __init__(self):
        self.handlers, self.told = set(), asyncio.Event()

    async def handle(self, reader, writer):
        self.handlers.add(asyncio.current_task())
        try:
            await reader.readline()
            writer.write(b"subscribed\n")
            await asyncio.sleep(1000)
        finally:
            self.handlers.discard(asyncio.current_task())

    async def run(self, path):
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.told.set)
        server = await asyncio.start_unix_server(self.handle, path)
        await self.told.wait()
        server.close()
        at("server")
        await asyncio.wait(self.handlers, timeout=600)
        for handler in self.handlers:
            handler.cancel()


def serve_draining(path):
    asyncio.run(Draining().run(path))


def drains_its_connections():
    """Healthy, as aio-libs/aiohttp#2200: a server is told to end while a client has a connection that is open for long.
    It waits for that, until its time for it is over."""
    path = in_folder("server.socket")
    server = child_of(serve_draining, path)
    stream = connect(path)
    ask(stream, "subscribe")
    os.kill(server.pid, signal.SIGINT)
    wait_for_role("server")
    at("main")
    stream.readline()


class Health(http.server.BaseHTTPRequestHandler):
    """Whether the process lives."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def warm_up():
    """Embeddings of all that is remembered, for the first search."""
    weights = numpy.random.default_rng(1).random((384, 384), dtype=numpy.float32)
    for number in range(20_000):
        rows = numpy.full((256, 384), number % 7, dtype=numpy.float32)
        for _ in range(12):
            rows = numpy.tanh(rows @ weights)
        if number == 20:
            at("server")


def serve_after_warm_up(port):
    warm_up()
    http.server.HTTPServer(("127.0.0.1", port), Health).serve_forever()


def lives(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def warms_up_first():
    """Healthy, as vectorize-io/hindsight#4374: a server loads and warms up its models before it takes connections. For
    so long it does not even answer whether it lives, which is asked every second."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    child_of(serve_after_warm_up, port)
    wait_for_role("server")
    at("main")
    while not lives(port):
        print("not yet", flush=True)
        time.sleep(1)


PROGRAMS = {
    "output-before-errors": output_before_errors,
    "pool-for-large-spectra": pool_for_large_spectra,
    "lock-at-the-scheduler": lock_at_the_scheduler,
    "blocks-freed-by-notice": blocks_freed_by_notice,
    "replaces-a-worker": replaces_a_worker,
    "models-on-a-slow-disk": models_on_a_slow_disk,
    "worker-without-tasks": worker_without_tasks,
    "drains-its-connections": drains_its_connections,
    "warms-up-first": warms_up_first,
}

if __name__ == "__main__":
    run(PROGRAMS)
