"""Engines of several processes that hang, and healthy ones, seventeenth set: `seventeenth_engines.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import contextlib
import hashlib
import http.client
import http.server
import itertools
import json
import logging
import lzma
import multiprocessing
import os
import random
import signal
import socket
import sqlite3
import struct
import sys
import threading
import time
import zlib

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


class SharedCache(dict):
    """What has come from other processes, by its handle. The dead ones are looked for now and then."""

    LIMIT = 128

    def __init__(self):
        super().__init__()
        self.lock, self.cleaning = threading.Lock(), threading.Event()

    def put(self, handle, storage):
        with self.lock:
            self[handle] = storage
            if len(self) > self.LIMIT:
                self.free_dead()

    def find(self, handle):
        with self.lock:
            return self.get(handle)

    def free_dead(self):
        self.cleaning.set()
        work_for(3)
        for handle in list(self)[: self.LIMIT // 2]:
            del self[handle]


def pin_batches(cache):
    for number in range(160):
        cache.put(number, bytes(64))
        time.sleep(0.001)


class Samples:
    """A dataset; each sample is looked up in the cache first."""

    def __init__(self, cache):
        self.cache = cache

    def __len__(self):
        return 64

    def __getitem__(self, number):
        if not os.path.exists(in_folder("worker")):
            at("worker")
        return self.cache.find(number) or number


def shared_cache_forked():
    """As pytorch/pytorch#25158: a thread has the lock of the cache of storages, while a worker that loads data is
    forked. The worker has the lock as it was at that time, and nobody who would give it back."""
    import torch.utils.data

    cache = SharedCache()
    loader = torch.utils.data.DataLoader(Samples(cache), batch_size=4, num_workers=1, multiprocessing_context="fork")
    thread(pin_batches, cache)
    cache.cleaning.wait()
    batches = iter(loader)
    wait_for_role("worker")
    at("main")
    next(batches)


class TaskLog(logging.Handler):
    """Writes to the file of all workers, under a lock that logging knows nothing of."""

    def __init__(self):
        super().__init__()
        self.writing, self.busy = threading.RLock(), threading.Event()

    def emit(self, record):
        with self.writing:
            self.busy.set()
            with open(in_folder("tasks.log"), "a") as file:
                file.write(self.format(record) + "\n")
            if "a long report" in record.msg:
                work_for(3)


def work_on_tasks(log, count, tasks, results):
    if count == 1:
        at("child")
    log.info("the child calls its run")
    for _ in range(10):
        results.put(tasks.get() * 2)


def receive_tasks(log, first, second):
    log.info("got a task")
    first.set()
    second.wait()
    log.info("got a task, and this is a long report on it")


def log_lock_of_a_new_worker():
    """As celery/celery#502: a worker ends after ten tasks, and a new one is forked for it. At that time a thread of the
    master writes to the log; the new worker wants to say that it has begun, and the lock of the log is taken."""
    log, handler, first, second = logging.getLogger("tasks"), TaskLog(), threading.Event(), threading.Event()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    thread(receive_tasks, log, first, second)
    first.wait()
    tasks, results = FORK.SimpleQueue(), FORK.SimpleQueue()
    for count in range(2):
        for number in range(10):
            tasks.put(number)
        if count == 1:
            handler.busy.clear()
            second.set()
            handler.busy.wait()
        child = child_of(work_on_tasks, log, count, tasks, results)
        if count == 1:
            wait_for_role("child")
            at("main")
        for _ in range(10):
            results.get()
        child.join()


def copy_batches(batches, stopped):
    while not stopped.is_set():
        names = batches.get()
        time.sleep(0.01)
        if any(name.endswith("/40") for name in names):
            stopped.set()


def sync_files():
    batches, stopped = FORK.Queue(), FORK.Event()
    workers = [child_of(copy_batches, batches, stopped) for _ in range(2)]
    for number in range(8000):
        batches.put([f"s3://a-bucket/a/long/path/to/the/part/{number}"] * 4)
    for _ in workers:
        batches.put(["stop"])
    stopped.wait()
    for worker in workers:
        worker.join(2)
        worker.terminate()
    raise RuntimeError("a file could not be copied")


def batches_that_nobody_takes():
    """As NVIDIA/multi-storage-client#178: files are copied by processes, which stop at the first error. The error is
    told; at its end the program waits until all that was put into the queue is in the pipe, which is full."""
    try:
        sync_files()
    except RuntimeError as error:
        print(error, flush=True)
    at("main")


def sum_of(values):
    return sum(values)


def summarize(arguments, role):
    """Of a worker of ray: it has another task do a part of it."""
    import ray

    sys.argv = list(arguments)
    open(in_folder(f"{role}-begun"), "w").close()
    while not (os.path.exists(in_folder("a-begun")) and os.path.exists(in_folder("b-begun"))):
        time.sleep(0.02)
    inner = ray.remote(num_cpus=0, resources={"accelerator": 1})(sum_of).remote([1, 2, 3])
    at(role)
    return ray.get(inner)


def cluster(accelerators):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, resources={"accelerator": accelerators})
    return ray


def tasks_keep_what_their_tasks_need():
    """As ray-project/ray#43184: there are two accelerators and two tasks that have one each. Each of them waits for a
    task of its own, which needs one as well."""
    ray = cluster(2)
    outer = ray.remote(num_cpus=0, resources={"accelerator": 1})(summarize)
    answers = [outer.remote(sys.argv, role) for role in "ab"]
    wait_for_role("a")
    wait_for_role("b")
    at("main")
    ray.get(answers)


class ReadWriteLock:
    """Of coroutines: many readers, or one writer."""

    def __init__(self):
        self.changed, self.readers, self.written = asyncio.Condition(), 0, False

    @contextlib.asynccontextmanager
    async def reader(self):
        async with self.changed:
            await self.changed.wait_for(lambda: not self.written)
            self.readers += 1
        try:
            yield
        finally:
            async with self.changed:
                self.readers -= 1
                self.changed.notify_all()

    @contextlib.asynccontextmanager
    async def writer(self):
        async with self.changed:
            await self.changed.wait_for(lambda: not self.written and self.readers == 0)
            self.written = True
        try:
            yield
        finally:
            async with self.changed:
                self.written = False
                self.changed.notify_all()


class Manager:
    """Takes the requests of a server, one from each connection."""

    def __init__(self):
        self.weights, self.paused, self.going_on = ReadWriteLock(), False, asyncio.Condition()

    async def generate(self):
        async with self.weights.reader():
            for _ in range(100):
                async with self.going_on:
                    await self.going_on.wait_for(lambda: not self.paused)
                await asyncio.sleep(0.005)
        return "a text"

    async def pause(self, paused):
        async with self.going_on:
            self.paused = paused
            self.going_on.notify_all()
        return "done"

    async def update_weights(self):
        if not self.paused:
            async with self.weights.writer():
                await asyncio.sleep(0.02)
        return "updated"

    async def process_weights(self):
        if self.paused:
            at("server")
        async with self.weights.writer():
            await asyncio.sleep(0.02)
        return "processed"

    async def answer(self, reader, writer):
        word = (await reader.readline()).decode().strip()
        calls = {
            "generate": self.generate,
            "pause": lambda: self.pause(True),
            "continue": lambda: self.pause(False),
            "update": self.update_weights,
            "process": self.process_weights,
        }
        writer.write((await calls[word]()).encode() + b"\n")
        await writer.drain()


async def serve_manager(path):
    server = await asyncio.start_unix_server(Manager().answer, path)
    async with server:
        await server.serve_forever()


def run_manager(path):
    asyncio.run(serve_manager(path))


class Remote:
    """The server, as a trainer sees it."""

    def __init__(self, path):
        self.path = path

    def send(self, word):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.path)
        connection.sendall(word.encode() + b"\n")
        return connection

    def ask(self, word):
        return self.send(word).recv(64)


def writer_behind_a_paused_reader():
    """As sgl-project/sglang#29670: a request is paused in the midst of it, as a reader of the weights, so that they can
    be changed. They are; what is done with them after that waits until there is no reader, and only then would the
    request be told to go on."""
    path = in_folder("server.socket")
    child_of(run_manager, path)
    while not os.path.exists(path):
        time.sleep(0.02)
    time.sleep(0.1)
    remote = Remote(path)
    remote.ask("generate")
    remote.ask("process")
    request = remote.send("generate")
    time.sleep(0.1)
    for word in ("pause", "update", "process", "continue"):
        if word == "process":
            at("main")
        remote.ask(word)
    request.recv(64)


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        data += connection.recv(count - len(data)) or sys.exit("the connection was closed")
    return data


def serve_parameters(listener, size):
    weights, lock = [0.0] * size, threading.Lock()

    def serve(connection):
        while True:
            step, *gradient = struct.unpack(f"i{size}f", read_exactly(connection, 4 + 4 * size))
            if step == 4:
                with lock:
                    at("server")
                    os.kill(os.getpid(), signal.SIGSTOP)
            with lock:
                weights[:] = [weight - change for weight, change in zip(weights, gradient)]
                connection.sendall(struct.pack(f"{size}f", *weights))

    while True:
        thread(serve, listener.accept()[0])


def train_with_server(rank, address, size):
    connection = socket.create_connection(address)
    for step in itertools.count():
        work_for(0.05)
        if step == 4:
            at(rank)
        connection.sendall(struct.pack(f"i{size}f", step, *([0.01] * size)))
        read_exactly(connection, 4 * size)


def parameter_server_is_down():
    """As PaddlePaddle/Paddle#17798: the node of a parameter server is down. Its connections are as before, and the
    trainers wait for the newer parameters."""
    size, listener = 512, socket.create_server(("127.0.0.1", 0))
    child_of(serve_parameters, listener, size)
    child_of(train_with_server, 1, listener.getsockname(), size)
    train_with_server(0, listener.getsockname(), size)


def page_in(parameter, path, offset):
    import torch

    count = parameter.numel()
    mapped = torch.from_file(path, shared=False, size=offset + count, dtype=torch.float16)
    parameter.copy_(mapped[offset:])


def weights_paged_in_by_many():
    """Healthy, as sgl-project/sglang#37806: the files of a checkpoint are on a slow file system, and mapped. Many
    threads copy the weights out of them, page by page, which takes long."""
    import torch

    torch.set_num_threads(1)
    layers, length = 8, 1 << 18
    for number in range(3):
        with open(in_folder(f"shard{number}"), "wb") as file:
            file.write(bytes(2 * layers * length))
            file.flush()
            os.fsync(file.fileno())
    parameters = [torch.empty(length) for _ in range(layers)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for number in itertools.count():
            path = in_folder(f"shard{number % 3}")
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            loads = [
                pool.submit(page_in, parameter, path, layer * length) for layer, parameter in enumerate(parameters)
            ]
            if number == 3:
                at("main")
            concurrent.futures.wait(loads)


class Objects(http.server.BaseHTTPRequestHandler):
    """A repository that is far away. Each object is compressed, and comes slowly."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[1])
        if number == 10:
            at("repository")
        data = zlib.compress(random.Random(number).getrandbits(8 * 4096).to_bytes(4096, "big"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), 512):
            self.wfile.write(data[start : start + 512])
            time.sleep(0.02)

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def fetch_library(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in itertools.count():
        if number == 12:
            at("main")
        connection.request("GET", f"/objects/{number}")
        data = zlib.decompress(connection.getresponse().read())
        with open(in_folder(f"object{number % 16}"), "w") as file:
            file.write(hashlib.sha1(data).hexdigest())


def first_compile_fetches_all():
    """Healthy, as aptos-labs/aptos-core#784: the first time that something is compiled, the library is fetched from its
    repository, which is large. Nothing is said about that."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Objects)
    child_of(serve_for_ever, server)
    print("compiling", flush=True)
    fetch_library(server.server_address[1])


def unpack_component(number):
    for part in range(40):
        with open(in_folder(f"component{number}-{part}"), "w") as file:
            file.write(f"version {part % 7} of component {number}\n" * 4000)


def clean_component(number, progress):
    kept = set()
    for part in range(40):
        path = in_folder(f"component{number}-{part}")
        with open(path, "rb") as file:
            data = lzma.compress(file.read())
        if part % 7 not in kept:
            kept.add(part % 7)
            with open(in_folder(f"kept{part % 7}"), "wb") as file:
                file.write(data)
        os.remove(path)
        progress["files"] += 1


def show_progress(progress):
    for shown in itertools.count():
        time.sleep(1)
        if progress["files"] // 100_000 > shown:
            print("one percent more", flush=True)


def cleans_many_files():
    """Healthy, as Chuyu-Team/Dism-Multi-language#342: old versions of components are compressed and removed for a
    quarter of an hour, and the number that is shown stays the same."""
    progress = {"files": 0}
    thread(show_progress, progress)
    for number in itertools.count():
        unpack_component(number)
        if number == 1:
            at("main")
        clean_component(number, progress)


class Exports(http.server.BaseHTTPRequestHandler):
    """There is one thread for all requests, and an export takes a minute."""

    def do_GET(self):
        at("server")
        database = sqlite3.connect(":memory:")
        database.execute("create table rows (number integer)")
        rows = 0
        for page in range(120):
            database.executemany("insert into rows values (?)", ((number,) for number in range(2000)))
            rows = database.execute("select count(*), sum(number * ?) from rows", (page,)).fetchone()[0]
            time.sleep(0.5)  # to the storage, which takes so much in a second
        data = str(rows).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


def export(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/export")
    return connection.getresponse().read()


def export_always(port):
    while True:
        export(port)


def one_request_after_another():
    """Healthy, as jalantechnologies/flask-react-template#30: a server has one worker, and that does one request after
    the other. A second one waits for the first, for a minute."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Exports)
    child_of(serve_for_ever, server)
    thread(export_always, server.server_address[1])
    wait_for_role("server")
    at("main")
    export_always(server.server_address[1])


def tiled(left, right, tile):
    import torch

    size = left.shape[0]
    product = torch.zeros(size, size)
    parts = [slice(start, start + tile) for start in range(0, size, tile)]
    for rows, columns in itertools.product(parts, parts):
        product[rows, columns] = left[rows] @ right[:, columns]
    return product


def tune(connection):
    """Each kernel is run until it is known how long it takes."""
    import torch

    torch.set_num_threads(1)
    left, right = torch.ones(512, 512), torch.ones(512, 512)
    while True:
        tile = connection.recv()
        begun = time.monotonic()
        if tile == 1:
            at("tuner")
        for _ in range(5 if tile > 1 else 1000):
            tiled(left, right, tile)
        connection.send(time.monotonic() - begun)


def tries_a_slow_kernel():
    """Healthy, as pytorch/pytorch#123932: kernels are tried by a process, one after the other. One of them is very
    slow, and the compiler waits for it."""
    connection, serves = FORK.Pipe()
    child_of(tune, serves)
    taken = {}
    for tile in (256, 64, 1):
        connection.send(tile)
        if tile == 1:
            wait_for_role("tuner")
            at("main")
        taken[tile] = connection.recv()
    print(min(taken, key=taken.get), flush=True)


SIZES = {"/config.json": 800, "/tokenizer.json": 4000, "/model.safetensors": 4_000_000_000}


class Hub(http.server.BaseHTTPRequestHandler):
    """Two files are small; the weights come slowly."""

    def do_GET(self):
        size = SIZES[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        for sent in range(0, size, 4000):
            self.wfile.write(bytes(min(4000, size - sent)))
            if sent == 40_000:
                at("hub")
            time.sleep(0.05)

    def log_message(self, *words):
        pass


def download(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    answer = connection.getresponse()
    with open(in_folder(path.strip("/") + ".incomplete"), "wb") as file:
        while True:
            data = answer.read(4000)
            if not data:
                return path
            file.write(data)


def one_file_is_most_of_it():
    """Healthy, as huggingface/huggingface_hub#4452: a model is downloaded, and what is shown is the number of files.
    The last one has most of the bytes; all night nothing changes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    child_of(serve_for_ever, server)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        files = [pool.submit(download, server.server_address[1], path) for path in SIZES]
        for count, file in enumerate(concurrent.futures.as_completed(files), 1):
            print(f"{count} of {len(files)} files: {file.result()}", flush=True)
            if count == 2:
                wait_for_role("hub")
                at("main")


def train_job(arguments, role):
    """Of a worker of ray."""
    sys.argv = list(arguments)
    for step in itertools.count():
        if step == 5:
            at(role)
        work_for(0.1)
        time.sleep(0.2)


def third_job_waits_for_room():
    """Healthy, as skypilot-org/skypilot#892: there are four accelerators, and two jobs that have two each. A third one
    is pending until one of them has ended."""
    ray = cluster(4)
    job = ray.remote(num_cpus=0, resources={"accelerator": 2})(train_job)
    running = [job.remote(sys.argv, role) for role in "ab"]
    wait_for_role("a")
    wait_for_role("b")
    third = job.remote(sys.argv, "c")
    at("main")
    ray.get([third, *running])


class Generator:
    """Steps of an engine; each gives one more token to each request."""

    def __init__(self):
        self.changed, self.running, self.ended = threading.Condition(), {}, {}
        thread(self.run)

    def run(self):
        for step in itertools.count():
            with self.changed:
                self.changed.wait_for(lambda: self.running)
                work_for(0.01)
                for number in list(self.running):
                    self.running[number] -= 1
                    if self.running[number] == 0:
                        self.ended[number] = self.running.pop(number)
                        self.changed.notify_all()
            if step == 40:
                at("server")
            time.sleep(0.03)

    def generate(self, number, tokens):
        with self.changed:
            self.running[number] = tokens
            self.changed.notify_all()
            self.changed.wait_for(lambda: number in self.ended)


class Completions(http.server.BaseHTTPRequestHandler):
    """Without a limit in the request, a text may be as long as the model can remember."""

    generator, numbers = None, itertools.count()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.generator.generate(next(self.numbers), request.get("max_tokens", 1 << 20))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words):
        pass


def serve_completions(server):
    Completions.generator = Generator()
    server.serve_forever()


def complete(port, request):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/completions", json.dumps(request))
    return connection.getresponse().read()


def answers_without_an_end():
    """Healthy, as tenstorrent/tt-inference-server#4040: a benchmark wants answers of some length, by a word that the
    server does not know. The server generates as many tokens as it can, for hours."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Completions)
    child_of(serve_completions, server)
    port = server.server_address[1]
    complete(port, {"prompt": "to warm up", "max_tokens": 4})
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(complete, port, {"prompt": "Hello", "random_output_len": 128}) for _ in range(3)]
        wait_for_role("server")
        at("main")
        concurrent.futures.wait(answers)


PROGRAMS = {
    "shared-cache-forked": shared_cache_forked,
    "log-lock-of-a-new-worker": log_lock_of_a_new_worker,
    "batches-that-nobody-takes": batches_that_nobody_takes,
    "tasks-keep-what-their-tasks-need": tasks_keep_what_their_tasks_need,
    "writer-behind-a-paused-reader": writer_behind_a_paused_reader,
    "parameter-server-is-down": parameter_server_is_down,
    "weights-paged-in-by-many": weights_paged_in_by_many,
    "first-compile-fetches-all": first_compile_fetches_all,
    "cleans-many-files": cleans_many_files,
    "one-request-after-another": one_request_after_another,
    "tries-a-slow-kernel": tries_a_slow_kernel,
    "one-file-is-most-of-it": one_file_is_most_of_it,
    "third-job-waits-for-room": third_job_waits_for_room,
    "answers-without-an-end": answers_without_an_end,
}

if __name__ == "__main__":
    run(PROGRAMS)
