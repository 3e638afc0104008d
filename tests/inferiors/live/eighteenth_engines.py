"""Engines of several processes that hang, and healthy ones, eighteenth set: `eighteenth_engines.py NAME FOLDER`."""

import asyncio
import concurrent.futures
import ctypes
import dataclasses
import hashlib
import http.client
import http.server
import io
import itertools
import json
import logging
import marshal
import multiprocessing
import os
import queue
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
import zlib
from multiprocessing.connection import Client, Listener

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def upside_down(picture):
    import torch

    from tests.inferiors.live.eighteenth_extension import extension

    turned = torch.empty_like(picture)
    source, target = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (picture, turned))
    extension().turn(source, target, *picture.shape)
    return turned


class Pictures:
    """A dataset, whose pictures are turned by the threads of a library."""

    def __len__(self):
        return 64

    def __getitem__(self, number):
        import torch

        if not os.path.exists(in_folder("worker")):
            at("worker")
        return upside_down(torch.full((32, 48), float(number)))


def transform_threads_before_the_fork():
    """As pytorch/pytorch#1838: the library that changes pictures has been used before the workers are forked, and has
    its threads by then. The worker has none of them, and waits until they have done their part."""
    import torch.utils.data

    print("mean", float(upside_down(torch.ones(32, 48)).mean()), flush=True)
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=4, num_workers=1, multiprocessing_context="fork")
    batches = iter(loader)
    wait_for_role("worker")
    at("main")
    next(batches)


@dataclasses.dataclass
class Request:
    number: int
    priority: int
    blocks: int
    remote: bool
    tokens: int = 5
    loading: bool = False


class Connector:
    """Gets the blocks of a prompt from the engine that has computed them."""

    def __init__(self):
        self.wanted, self.lock, self.finished = queue.SimpleQueue(), threading.Lock(), set()
        for _ in range(2):
            thread(self.transfer)

    def transfer(self):
        while True:
            number = self.wanted.get()
            time.sleep(1.5)
            with self.lock:
                self.finished.add(number)

    def take_finished(self):
        with self.lock:
            finished, self.finished = self.finished, set()
        return finished


class Scheduler:
    """The requests that wait are in the order of their priority. Who is first must fit in before the others are."""

    def __init__(self, tell):
        self.connector, self.tell, self.free = Connector(), tell, 10
        self.waiting, self.running, self.received = [], [], set()

    def add(self, request):
        self.waiting.append(request)
        self.waiting.sort(key=lambda waiting: waiting.priority)

    def schedule(self):
        self.received |= self.connector.take_finished()
        skipped = []
        while self.waiting:
            request = self.waiting[0]
            if request.loading and request.number not in self.received:
                skipped.append(self.waiting.pop(0))
                continue
            if not request.loading:
                if request.blocks > self.free:
                    break
                self.free -= request.blocks
            if request.remote and not request.loading:
                request.loading = True
                self.connector.wanted.put(request.number)
                self.tell({"loads": request.number})
                continue
            self.running.append(self.waiting.pop(0))
        for request in skipped:
            self.add(request)

    def step(self):
        work_for(0.005)
        for request in list(self.running):
            request.tokens -= 1
            if request.tokens == 0:
                self.running.remove(request)
                self.free += request.blocks
                self.tell({"done": request.number})


def run_engine(name):
    import zmq

    context = zmq.Context()
    requests, answers = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    requests.bind(f"ipc://{name}-in")
    answers.bind(f"ipc://{name}-out")
    scheduler, without = Scheduler(answers.send_json), 0
    while True:
        idle = not scheduler.waiting and not scheduler.running
        while requests.poll(None if idle else 0):
            scheduler.add(Request(**requests.recv_json()))
            idle = False
        scheduler.schedule()
        if scheduler.running:
            scheduler.step()
            without = 0
            continue
        without += 1
        if without == 4000:
            at("engine")
        time.sleep(0.001)


def head_of_queue_needs_what_others_hold():
    """As vllm-project/vllm#45388: two requests have their blocks, and wait for what is to be in them. It has come,
    which would be seen when the queue is gone through. That ends at the first request, which needs more blocks than
    are free."""
    import zmq

    name = in_folder("engine.ipc")
    child_of(run_engine, name)
    context = zmq.Context()
    requests, answers = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    requests.connect(f"ipc://{name}-in")
    answers.connect(f"ipc://{name}-out")
    requests.send_json({"number": 0, "priority": 1, "blocks": 4, "remote": False})
    print(answers.recv_json(), flush=True)
    for number in (1, 2):
        requests.send_json({"number": number, "priority": 1, "blocks": 4, "remote": True})
    for _ in range(2):
        print(answers.recv_json(), flush=True)
    requests.send_json({"number": 3, "priority": 0, "blocks": 6, "remote": False})
    wait_for_role("engine")
    at("main")
    for _ in range(3):
        print(answers.recv_json(), flush=True)


def cluster():
    import ray

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    return ray


class Store:
    """Results of the parts of a graph, by their keys. Who asks for one waits until it is there."""

    CALLS = 4

    def __init__(self, arguments):
        sys.argv = list(arguments)
        self.results, self.changed, self.waiting = {}, asyncio.Condition(), 0

    async def get(self, key):
        async with self.changed:
            self.waiting += 1
            if self.waiting == self.CALLS:
                at("store")
            await self.changed.wait_for(lambda: key in self.results)
            self.waiting -= 1
            return self.results[key]

    async def put(self, key, result):
        async with self.changed:
            self.results[key] = result
            self.changed.notify_all()


def calls_wait_for_a_call_behind_them():
    """As mars-project/mars#2170: an actor runs so many calls at the same time, and all of them wait for what a later
    call will bring. That one is in the queue until one of them has ended."""
    ray = cluster()
    store = ray.remote(num_cpus=0, max_concurrency=Store.CALLS)(Store).remote(sys.argv)
    ray.get(store.put.remote("first", 1))
    print(ray.get(store.get.remote("first")), flush=True)
    waiting = [store.get.remote(f"part{number % 2}") for number in range(Store.CALLS)]
    wait_for_role("store")
    stored = [store.put.remote(f"part{number}", number) for number in range(2)]
    at("main")
    ray.get(stored)
    ray.get(waiting)


class Engine:
    """Of ray. It makes texts; when the trainer has newer weights, it stops and gets them."""

    def __init__(self, arguments, address):
        sys.argv = list(arguments)
        self.address, self.weights = address, [0.0]

    def check_background_threads(self):
        return all(one.is_alive() for one in threading.enumerate())

    def generate(self, prompts):
        work_for(0.05)
        return [f"{prompt} and so on" for prompt in prompts]

    def update_weights(self):
        with Client(self.address, "AF_UNIX") as group:
            at("engine")
            self.weights = group.recv()


class TrainingActor:
    """Of ray. It has the weights."""

    def __init__(self, arguments, address):
        sys.argv = list(arguments)
        self.listener, self.weights = Listener(address, "AF_UNIX"), [0.0] * 512

    def ready(self):
        return True

    def train(self, texts):
        work_for(0.05)
        self.weights = [weight + 0.01 * len(texts) for weight in self.weights]
        at("trainer")

    def broadcast(self):
        with self.listener.accept() as group:
            group.send(self.weights)


class WeightSync:
    """A thread that brings the weights to the engine, once for each step."""

    def __init__(self, ray, engine, trainer):
        self.ray, self.engine, self.trainer = ray, engine, trainer
        self.wanted, self.trainer_at_step = threading.Event(), threading.Event()
        thread(self.run)

    def run(self):
        while True:
            self.wanted.wait()
            self.wanted.clear()
            updated = self.engine.update_weights.remote()
            self.trainer_at_step.wait()
            self.trainer_at_step.clear()
            self.ray.get([self.trainer.broadcast.remote(), updated])


def health_asked_before_the_broadcast():
    """As allenai/open-instruct#1454: an engine does one thing at a time, and waits for the weights of the last step.
    The next step begins with the question whether all is well, which the engine would answer after that; the trainer
    sends the weights in the course of that step."""
    ray = cluster()
    address = in_folder("weights.socket")
    trainer = ray.remote(num_cpus=0)(TrainingActor).remote(sys.argv, address)
    engine = ray.remote(num_cpus=0)(Engine).remote(sys.argv, address)
    ray.get(trainer.ready.remote())
    sync = WeightSync(ray, engine, trainer)
    for step in range(3):
        if step == 1:
            wait_for_role("engine")
            at("main")
        if not ray.get(engine.check_background_threads.remote()):
            raise RuntimeError("a thread of the engine has ended")
        if step > 0:
            sync.trainer_at_step.set()
        texts = ray.get(engine.generate.remote(["Once", "There was"]))
        ray.get(trainer.train.remote(texts))
        sync.wanted.set()


class Node:
    """Answers questions about the state of a chain. What may block is done by a pool of threads."""

    WORKERS = 4

    def __init__(self):
        self.blocking = concurrent.futures.ThreadPoolExecutor(self.WORKERS)
        self.loop, self.asked = None, 0

    def block_on(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def read_state(self, account):
        work_for(0.002)
        return zlib.crc32(account.encode())

    async def balance(self, account):
        self.asked += 1
        await asyncio.sleep(1)  # which block is the latest
        if self.asked == self.WORKERS + 1:
            at("server")
        return await self.loop.run_in_executor(self.blocking, self.read_state, account)

    async def answer(self, reader, writer):
        account = (await reader.readline()).decode().strip()
        balance = await self.loop.run_in_executor(self.blocking, self.block_on, self.balance(account))
        writer.write(f"{balance}\n".encode())
        await writer.drain()

    async def serve(self, path):
        self.loop = asyncio.get_running_loop()
        server = await asyncio.start_unix_server(self.answer, path)
        async with server:
            await server.serve_forever()


def run_node(path):
    asyncio.run(Node().serve(path))


def ask_node(path, account):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(account.encode() + b"\n")
        return int(connection.recv(64))


def pool_waits_for_its_own_reads():
    """As bnb-chain/reth-bsc#476: each request takes a thread of a pool, which waits for what the loop does for it. That
    needs a thread of the same pool to read the state, and there are as many requests as threads."""
    path = in_folder("node.socket")
    child_of(run_node, path)
    while not os.path.exists(path):
        time.sleep(0.02)
    time.sleep(0.1)
    print(ask_node(path, "0x0"), flush=True)
    with concurrent.futures.ThreadPoolExecutor(Node.WORKERS) as pool:
        balances = [pool.submit(ask_node, path, f"0x{number}") for number in range(1, Node.WORKERS + 1)]
        wait_for_role("server")
        at("main")
        concurrent.futures.wait(balances)


def send_frame(connection, **frame):
    connection.sendall(json.dumps(frame).encode() + b"\n")


def run_broker(listener):
    """It sends so many messages as it has credit for, and takes more credit."""
    connection = listener.accept()[0]
    numbers = itertools.count()
    for line in connection.makefile("rb"):
        frame = json.loads(line)
        if frame["kind"] == "credit":
            for _ in range(frame["count"]):
                send_frame(connection, kind="delivery", body=f"message {next(numbers)}")
        send_frame(connection, kind="answer", number=frame["number"])
        if frame["kind"] == "flow":
            at("broker")


class Connection:
    """All that comes in is read by one thread. A delivery goes to the pool of its consumer."""

    def __init__(self, address, handle):
        self.socket = socket.create_connection(address)
        self.work, self.handle = queue.Queue(16), handle
        self.numbers, self.answered = itertools.count(), {}
        thread(self.read)
        thread(self.consume)

    def read(self):
        for line in self.socket.makefile("rb"):
            frame = json.loads(line)
            if frame["kind"] == "delivery":
                self.work.put(frame["body"])
            else:
                self.answered[frame["number"]].set()

    def consume(self):
        while True:
            self.handle(self.work.get())

    def call(self, kind, **words):
        number = next(self.numbers)
        self.answered[number] = threading.Event()
        send_frame(self.socket, kind=kind, number=number, **words)
        self.answered[number].wait()
        del self.answered[number]


class Consumer:
    """A message is settled when it is sent. Now and then the credit is looked after."""

    def __init__(self, address):
        self.handled, self.checksum, self.done = 0, 0, threading.Event()
        self.connection = Connection(address, self.handle)

    def handle(self, body):
        self.handled, self.checksum = self.handled + 1, zlib.crc32(body.encode(), self.checksum)
        if self.handled % 8 == 0:
            self.connection.call("flow")
        if self.handled == 128:
            self.done.set()


def deliveries_into_a_full_pool():
    """As rabbitmq/rabbitmq-amqp-java-client#328: the thread that reads from the connection hands a delivery to a pool,
    which is full. The pool waits for an answer of the broker, which only that thread could read."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(run_broker, listener)
    consumer = Consumer(listener.getsockname())
    consumer.connection.call("credit", count=4)
    at("main")
    consumer.connection.call("credit", count=124)
    consumer.done.wait()


def download_on_another_node(lock, target):
    """The folder is on a file system of many nodes. This one is stopped in the midst of it, for its memory."""
    import filelock

    socket.gethostname = lambda: "node-7"
    with filelock.SoftFileLock(lock), open(target, "wb") as file:
        file.write(bytes(4096))
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def soft_lock_of_a_node_that_is_gone():
    """As huggingface/huggingface_hub#3944: the file system has no locks, and so there is a file that says that it is
    locked. Who had made it was killed on another node, and the file stays; there is no limit to the wait."""
    import filelock

    lock, target = in_folder("weights.lock"), in_folder("weights.incomplete")
    killed = child_of(download_on_another_node, lock, target)
    killed.join()
    at("main")
    while True:
        try:
            filelock.SoftFileLock(lock).acquire(timeout=10)
            break
        except filelock.Timeout:
            logging.warning("still waiting for %s", lock)


CHECK = """
import sys
for number in range(5000):
    print(f"src/part{number % 40}.cpp:{number}: an access specifier should be one space in  [whitespace/indent] [3]",
          file=sys.stderr)
sys.exit(1)
"""


def style_errors_that_nobody_reads():
    """As HewlettPackard/foedus_code#136: what a checker writes goes into pipes. It has more to say than there is room
    for, and who has started it waits for its end before anything is read."""
    checker = subprocess.Popen([sys.executable, "-c", CHECK], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    at("child", checker.pid)
    at("main")
    checker.wait()
    print(checker.stderr.read(), flush=True)


def source_of(module):
    names = random.Random(module)
    return "".join(
        f"def step_{number}(values):\n"
        f"    total = {names.randrange(100)}\n"
        f"    for value in values:\n"
        f"        total = (total * {names.randrange(2, 9)} + value) % 65521\n"
        f"    return total\n\n\n"
        for number in range(200)
    )


def build_modules():
    """And each of them is tested, which is what takes long."""
    for module in range(20_000):
        if module == 3:
            at("build")
        code, names = compile(source_of(module), f"module{module}.py", "exec"), {}
        with open(in_folder(f"module{module % 16}.pyc"), "wb") as file:
            marshal.dump(code, file)
        exec(code, names)
        for number in range(200):
            names[f"step_{number}"](range(500))


def builds_in_quiet_mode():
    """Healthy, as gchq/sleeper#4378: all modules are built for the first time, which takes up to an hour. It is done in
    quiet mode, so that there is nothing to see until it is done."""
    print("building in quiet mode", flush=True)
    build = child_of(build_modules)
    wait_for_role("build")
    at("main")
    build.join()


def make_layer(path):
    lines = random.Random(7)
    with tarfile.open(path, "w:xz", preset=1) as archive:
        for number in range(40):
            data = "".join(f"{lines.getrandbits(40):x} package {line}\n" for line in range(4000)).encode()
            member = tarfile.TarInfo(f"usr/lib/part{number}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


class Setup:
    """Of a system of its own: download, unpack and configure are a third each."""

    LAYERS = 3000

    def __init__(self):
        self.percent, self.done = 0, threading.Event()

    def install(self):
        make_layer(in_folder("system.tar.xz"))
        self.percent = 33
        for number in range(self.LAYERS):
            self.unpack(in_folder("system"))
            if number == 0:
                at("main")
        self.percent = 66
        self.done.set()

    def unpack(self, folder):
        with tarfile.open(in_folder("system.tar.xz")) as archive:
            archive.extractall(folder, filter="data")
        shutil.rmtree(folder)

    def show(self):
        shown = None
        while not self.done.wait(0.5):
            if self.percent != shown:
                shown = self.percent
                print(f"{shown} %", flush=True)


def unpacks_after_the_download():
    """Healthy, as localdesktop/localdesktop.github.io#172: what is shown stays at 33 %. Nothing is downloaded any more;
    what there is has to be unpacked, for which there is but the processor."""
    setup = Setup()
    thread(setup.install)
    setup.show()


class HistoryTree:
    """The hashes of all events. The upper ones are kept in memory, and made anew from the store at the start."""

    STORED, EVENTS = 4096, 20_000_000

    def __init__(self, path):
        self.store, self.cache = sqlite3.connect(path), {}
        self.store.execute("create table nodes (number integer primary key, hash blob)")
        rows = ((number, hashlib.sha256(b"%d" % number).digest()) for number in range(self.STORED))
        with self.store:
            self.store.executemany("insert into nodes values (?, ?)", rows)

    def rebuild(self):
        for first in range(0, self.EVENTS, 256):
            if first == 2560:
                at("server")
            top = hashlib.sha256()
            for number in range(first, first + 256):
                query = "select hash from nodes where number = ?"
                top.update(self.store.execute(query, (number % self.STORED,)).fetchone()[0])
            self.cache[first] = top.digest()
            time.sleep(0.02)  # the store is not on this machine


def serve_history(ready):
    tree = HistoryTree(in_folder("history.db"))
    tree.rebuild()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.sendto(b"READY=1", ready)
        while True:
            server.accept()[0].close()


def rebuilds_its_cache_before_it_listens():
    """Healthy, as BBVA/qed#118: a server makes its cache anew before it listens, and until then nothing can be asked,
    not even what it does. Who has started it waits for its word."""
    ready = in_folder("ready.socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(ready)
        child_of(serve_history, ready)
        wait_for_role("server")
        at("main")
        print(notified.recv(64), flush=True)


EVENTS = [
    re.compile(rf"^(.{{29}})?: \[{kind}( \({why}\))?:? (\d+)K->(\d+)K\((\d+)K\), (\d+\.\d+) secs\]{end}$")
    for kind in ("GC", "Full GC", "CMS", "ParNew", "PSYoungGen", "G1 pause", "remark", "cleanup")
    for why in ("Allocation Failure", "Metadata", "System.gc", "Ergonomics")
    for end in ("", r" \[Times: .*\]", r"\s*")
]


def write_log(path):
    numbers = random.Random(3)
    with open(path, "w") as file:
        for line in range(100_000):
            before = numbers.randrange(200_000, 900_000)
            kind = numbers.choice(["Full GC (Ergonomics)", "cleanup", "G1 pause (System.gc)", "unknown"])
            sizes = f"{before}K->{before // 3}K(1048576K)"
            file.write(f"2023-03-30T12:00:00.{line:06d}+02: [{kind}: {sizes}, 0.0123 secs]\n")


def reads_a_large_log():
    """Healthy, as mgm3746/garbagecat#190: a tool goes through a large log. Each line may be of one of many kinds, which
    are tried one after the other; nothing is on the screen until all lines are read."""
    path, pauses = in_folder("gc.log"), []
    write_log(path)
    for file in range(500):
        with open(path) as log:
            for number, line in enumerate(log):
                if file == 0 and number == 2000:
                    at("main")
                found = next(filter(None, (event.match(line) for event in EVENTS)), None)
                if found:
                    pauses.append(float(found.group(6)))
    print("longest", max(pauses), flush=True)


class Gateway:
    """Who asks for jobs when there are none gets his answer later: when there is one, or after ten seconds."""

    def __init__(self):
        self.created, self.jobs, self.asked = asyncio.Condition(), [1, 2], 0

    async def activate(self):
        async with self.created:
            self.asked += 1
            if self.asked == 4:
                at("main")
            try:
                await asyncio.wait_for(self.created.wait_for(lambda: self.jobs), 10)
            except asyncio.TimeoutError:
                return []
            return [self.jobs.pop()]

    async def answer(self, reader, writer):
        while await reader.readline():
            jobs = await self.activate()
            writer.write(json.dumps(jobs).encode() + b"\n")

    async def serve(self, path):
        server = await asyncio.start_unix_server(self.answer, path)
        async with server:
            await server.serve_forever()


def work_on_jobs(role, path):
    while not os.path.exists(path):
        time.sleep(0.02)
    time.sleep(0.1)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    answers = connection.makefile("rb")
    for number in itertools.count():
        connection.sendall(b"activate\n")
        if number == 1:
            at(role)
        for _ in json.loads(answers.readline()):
            work_for(0.2)


def workers_in_long_polling():
    """Healthy, as camunda/camunda#2430: there are no jobs for some minutes. The workers have asked for some, and the
    gateway keeps their requests until one is created."""
    path = in_folder("gateway.socket")
    for role in "ab":
        child_of(work_on_jobs, role, path)
    asyncio.run(Gateway().serve(path))


class Albums(http.server.BaseHTTPRequestHandler):
    """So many pages, and then none for some minutes."""

    protocol_version = "HTTP/1.1"
    pages, limited = 0, 0.0

    def do_GET(self):
        if Albums.pages == 6:
            Albums.pages, Albums.limited = 0, time.monotonic() + 390
            at("site")
        status = 429 if time.monotonic() < Albums.limited else 200
        Albums.pages += status == 200
        data = b"{}" if status == 429 else json.dumps({"pictures": list(range(20))}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def load_page(port, number, retries=10):
    for left in range(retries, 0, -1):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", f"/album/{number}")
        answer = connection.getresponse()
        data = json.loads(answer.read())
        if answer.status != 429:
            return data["pictures"]
        print(f"the limit is reached, sleeping for 400000 ms, {left} retries remaining", flush=True)
        at("main")
        time.sleep(400)
    raise RuntimeError("the limit is reached")


def sleeps_for_the_rate_limit():
    """Healthy, as RipMeApp/ripme#1844: a site answers that there were too many requests. The program sleeps for 400
    seconds, and goes on after that."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Albums)
    child_of(serve_for_ever, server)
    for number in itertools.count():
        for _ in load_page(server.server_address[1], number):
            work_for(0.002)


def boot(door):
    """An image is unpacked and started, a quarter of an hour long, and then somebody can log in."""
    blocks, until = random.Random(5), time.monotonic() + 900
    for number in itertools.count():
        if number == 50:
            at("instance")
        if time.monotonic() > until:
            break
        packed = zlib.compress(blocks.getrandbits(8 * 20_000).to_bytes(20_000, "big"), 9)
        with open(in_folder(f"block{number % 32}"), "wb") as file:
            file.write(hashlib.sha256(zlib.decompress(packed)).digest())
        time.sleep(0.01)
    door.listen()
    while True:
        door.accept()[0].sendall(b"SSH-2.0\r\n")


def waits_for_an_instance_to_boot():
    """Healthy, as awslabs/libfabric-ci-scripts#6: a script wants to log in on an instance that still boots. Its
    connections are refused, and it sleeps between one and the next."""
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    address = door.getsockname()
    child_of(boot, door)
    door.close()
    wait_for_role("instance")
    for number in range(400):
        if number == 1:
            at("main")
        try:
            with socket.create_connection(address, timeout=10) as connection:
                print(connection.recv(64), flush=True)
            return
        except ConnectionRefusedError:
            time.sleep(5)


class Disk:
    """All jobs of the disk are done by one thread, one after the other."""

    def __init__(self):
        self.jobs = queue.SimpleQueue()
        thread(self.run)

    def run(self):
        while True:
            job, arguments, done = self.jobs.get()
            done.set_result(job(*arguments))

    def submit(self, job, *arguments):
        done = concurrent.futures.Future()
        self.jobs.put((job, arguments, done))
        return done


def write_piece(path, number, data):
    with open(path, "r+b" if os.path.exists(path) else "wb") as file:
        file.seek(number % 64 * len(data))
        file.write(data)


def move_storage(source, target):
    """To a disk that takes eighty kilobytes in a second."""
    with open(source, "rb") as old, open(target, "wb") as new:
        while True:
            data = old.read(1 << 14)
            if not data:
                break
            new.write(data)
            new.flush()
            os.fsync(new.fileno())
            time.sleep(0.2)
    os.remove(source)


def download_pieces(disk, role, wanted):
    pieces = random.Random(role)
    for number in itertools.count():
        data = pieces.getrandbits(8 * 16_384).to_bytes(16_384, "big")
        hashlib.sha1(data).digest()
        disk.submit(write_piece, in_folder(f"incomplete{role}"), number, data).result()
        wanted.put(number)
        time.sleep(0.01)


def moves_a_file_to_a_slow_disk():
    """Healthy, as arvidn/libtorrent#708: a download is complete and is moved to a slow disk. The thread that does so is
    that of all files, and the other downloads wait until it is there."""
    disk, written = Disk(), queue.Queue()
    complete = in_folder("complete")
    with open(complete, "wb") as file:
        file.truncate(64 << 20)
    for role in range(2):
        thread(download_pieces, disk, role, written)
    for number in itertools.count():
        written.get()
        if number == 40:
            disk.submit(move_storage, complete, in_folder("moved"))
            at("main")


class ObjectHeap:
    """Of a database that has its objects in memory; each knows some others. In a collection all else stands still."""

    OBJECTS, REGIONS = 100_000, 400

    def __init__(self):
        numbers = random.Random(11)
        self.links = [
            (number + 1, numbers.randrange(self.OBJECTS)) if number + 1 < self.OBJECTS else ()
            for number in range(self.OBJECTS)
        ]
        self.world = threading.Lock()

    def mark(self):
        seen, found = bytearray(self.OBJECTS), [0]
        while found:
            number = found.pop()
            if not seen[number]:
                seen[number] = 1
                found.extend(self.links[number])
        return sum(seen)

    def collect(self):
        return sum(self.mark() for _ in range(self.REGIONS))

    def find(self, name):
        with self.world:
            return len(self.links[zlib.crc32(name) % self.OBJECTS])


def collect_now_and_then(heap):
    for number in itertools.count():
        time.sleep(1.5)
        with heap.world:
            if number == 0:
                at("server")
            heap.collect()


def serve_objects(listener):
    heap = ObjectHeap()
    thread(collect_now_and_then, heap)

    def serve(connection):
        while True:
            name = connection.recv(64)
            if not name:
                return
            connection.sendall(b"%d" % heap.find(name))

    while True:
        thread(serve, listener.accept()[0])


def collects_a_large_heap():
    """Healthy, as RIPE-NCC/whois#192: once in a while the collector stops all that a server does. No query is answered
    in that time, and all of them after it."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(serve_objects, listener)
    connection = socket.create_connection(listener.getsockname())
    for number in itertools.count():
        if os.path.exists(in_folder("server")) and not os.path.exists(in_folder("main")):
            at("main")
        connection.sendall(b"AS%d" % number)
        connection.recv(64)
        time.sleep(0.02)


def attested(address):
    """How an address is written in the index."""
    if not os.path.exists(in_folder("migration")):
        at("migration")
    name = address.encode()
    for _ in range(5000):
        name = hashlib.sha256(name).digest()
    return name.hex()


def migrate(path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.create_function("attested", 1, attested, deterministic=True)
    for number in itertools.count():
        connection.execute(f"create index activity_{number} on activity (attested(address || {number}))")
        connection.execute(f"drop index activity_{number}")
        time.sleep(1)


def index_build_holds_off_the_writers():
    """Healthy, as margince/margince#302: an index of a large table is built, and nobody else can write until it is. The
    mail that comes in waits for some minutes."""
    path = in_folder("mail.db")
    connection = sqlite3.connect(path, timeout=3600, isolation_level=None)
    connection.execute("create table activity (address text, subject text)")
    connection.execute("begin")
    rows = ((f"person{number}@example.com", "a subject") for number in range(60_000))
    connection.executemany("insert into activity values (?, ?)", rows)
    connection.execute("commit")
    child_of(migrate, path)
    wait_for_role("migration")
    at("main")
    for number in itertools.count():
        connection.execute("insert into activity values (?, ?)", (f"new{number}@example.com", "another subject"))
        time.sleep(0.1)


PROGRAMS = {
    "transform-threads-before-the-fork": transform_threads_before_the_fork,
    "head-of-queue-needs-what-others-hold": head_of_queue_needs_what_others_hold,
    "calls-wait-for-a-call-behind-them": calls_wait_for_a_call_behind_them,
    "health-asked-before-the-broadcast": health_asked_before_the_broadcast,
    "pool-waits-for-its-own-reads": pool_waits_for_its_own_reads,
    "deliveries-into-a-full-pool": deliveries_into_a_full_pool,
    "soft-lock-of-a-node-that-is-gone": soft_lock_of_a_node_that_is_gone,
    "style-errors-that-nobody-reads": style_errors_that_nobody_reads,
    "builds-in-quiet-mode": builds_in_quiet_mode,
    "unpacks-after-the-download": unpacks_after_the_download,
    "rebuilds-its-cache-before-it-listens": rebuilds_its_cache_before_it_listens,
    "reads-a-large-log": reads_a_large_log,
    "workers-in-long-polling": workers_in_long_polling,
    "sleeps-for-the-rate-limit": sleeps_for_the_rate_limit,
    "waits-for-an-instance-to-boot": waits_for_an_instance_to_boot,
    "moves-a-file-to-a-slow-disk": moves_a_file_to_a_slow_disk,
    "collects-a-large-heap": collects_a_large_heap,
    "index-build-holds-off-the-writers": index_build_holds_off_the_writers,
}

if __name__ == "__main__":
    run(PROGRAMS)
