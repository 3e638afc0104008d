"""Engines of several processes that hang, and healthy ones, twenty-first set: `twenty_first_engines.py NAME FOLDER`."""

import asyncio
import atexit
import collections
import concurrent.futures
import datetime
import http.client
import http.server
import itertools
import json
import multiprocessing
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from multiprocessing import resource_tracker, shared_memory

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


class Agent:
    """Of a transfer engine: it writes blocks into the memory of its peer, and tells it so."""

    def __init__(self, connection, blocks):
        self.connection, self.free = connection, blocks

    def register(self, count):
        if count > self.free:
            raise MemoryError(f"{count} blocks, and {self.free} are registered")

    def write(self, request, layer, count):
        self.register(count)
        time.sleep(0.002 * count)
        self.connection.send(("done", request, layer))


def push_blocks(connection):
    """The prefill instance."""
    agent = Agent(connection, 8)
    while True:
        request, layers = connection.recv()
        for layer, count in enumerate(layers):
            try:
                agent.write(request, layer, count)
            except MemoryError as error:
                print(f"the transfer of {request} was not begun: {error}", flush=True)
        if request == "c":
            at("prefill")


class DecodeWorker:
    """Knows that it has all blocks of a request when as many notifications have come as there are layers."""

    def __init__(self, connection):
        self.connection, self.seen = connection, collections.Counter()

    def fetch(self, request, layers):
        self.connection.send((request, layers))
        if request == "c":
            wait_for_role("prefill")
        while self.seen[request] < len(layers):
            if request == "c" and self.seen[request] == len(layers) - 1:
                at("main")
            _, which, _ = self.connection.recv()
            self.seen[which] += 1


def blocks_by_notifications():
    """As vllm-project/vllm#50754: the prefill instance writes the blocks of each layer and notifies. One transfer could
    not be begun, of which it keeps a line in its log; the decode instance counts, and one is missing."""
    ours, theirs = FORK.Pipe()
    child_of(push_blocks, theirs)
    decode = DecodeWorker(ours)
    for request, layers in {"a": [2, 2, 4], "b": [8, 1, 1], "c": [4, 9, 4]}.items():
        decode.fetch(request, layers)


class EventBroker:
    def __init__(self):
        self.subscribers = set()

    def publish(self, event):
        for events in self.subscribers:
            events.put_nowait(event)


class Workshop:
    """A server; each connection is one request. A stream of events goes on as long as somebody reads it."""

    def __init__(self):
        self.broker, self.handlers, self.stopping = EventBroker(), set(), asyncio.Event()

    async def stream(self, writer):
        events = asyncio.Queue()
        self.broker.subscribers.add(events)
        try:
            while True:
                writer.write(f"data: {await events.get()}\n\n".encode())
                await writer.drain()
        finally:
            self.broker.subscribers.discard(events)

    async def handle(self, reader, writer):
        self.handlers.add(asyncio.current_task())
        try:
            path = (await reader.readline()).decode().split()[1]
            if path == "/events":
                await self.stream(writer)
            else:
                self.broker.publish(path)
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            writer.close()
        finally:
            self.handlers.discard(asyncio.current_task())

    async def serve(self, path):
        server = await asyncio.start_unix_server(self.handle, path)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stopping.set)
        await self.stopping.wait()
        server.close()
        at("main")
        await asyncio.gather(*self.handlers)


def request(path, target):
    connection = socket.socket(socket.AF_UNIX)
    while connection.connect_ex(path):
        time.sleep(0.02)
    connection.sendall(f"GET {target} HTTP/1.1\r\n".encode())
    return connection


def browse(path, server):
    events = request(path, "/events")
    for number in range(4):
        time.sleep(0.05)
        request(path, f"/job/{number}").recv(64)
        events.recv(256)
    os.kill(server, signal.SIGTERM)
    at("browser")
    events.recv(256)


def event_stream_at_shutdown():
    """As dcellison/kai#1064: the server is told to stop. It waits until all of its requests are answered; one is
    that of a browser for a stream of events, which has no end, and there are no more events."""
    path = in_folder("workshop")
    child_of(browse, path, os.getpid())
    asyncio.run(Workshop().serve(path))


TOOL = """
import sys
for number in range(40):
    for line in range(30):
        print(f"warning: the option {line} of document {number} is deprecated, an error in version 3", file=sys.stderr)
    print(f"page {number}", flush=True)
"""


def run_tool(*words):
    """What it prints. Its warnings are of no use here."""
    tool = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    at("child", tool.pid)
    at("main")
    pages = tool.stdout.read().splitlines()
    tool.wait()
    return pages


def tool_with_warnings():
    """As openclaw/openclaw#3304: a helper runs a tool, reads what it prints and drops the rest. The rest goes to a pipe
    as well, which nobody reads; when it is full, the tool waits."""
    print(len(run_tool("-c", TOOL)), flush=True)


def serve_calls(listener):
    at("server")
    while True:
        connection, _ = listener.accept()
        while data := connection.recv(64):
            connection.sendall(data.upper())


class CompletionQueue:
    """A thread polls the sockets, and tells the loop what has come."""

    def __init__(self):
        self.loop, self.calls, self.poll = asyncio.new_event_loop(), {}, select.epoll()
        thread(self.work)

    def work(self):
        while True:
            for number, _ in self.poll.poll():
                connection, future = self.calls.pop(number)
                self.poll.unregister(number)
                self.loop.call_soon_threadsafe(future.set_result, connection.recv(64))

    def start(self, connection, future):
        self.calls[connection.fileno()] = connection, future
        self.poll.register(connection, select.EPOLLIN)


class Channel:
    def __init__(self, queue, address):
        self.queue, self.connection = queue, socket.create_connection(address)

    async def unary(self, word):
        future = asyncio.get_running_loop().create_future()
        self.queue.start(self.connection, future)
        self.connection.sendall(word)
        return await future


async def greet(queue, address):
    channel = Channel(queue, address)
    at("main")
    print(await channel.unary(b"hello"), flush=True)


def call_from_another_loop():
    """As grpc/grpc#23280: the library is initialized before there is a coroutine, and takes the loop that it gets then.
    The calls are made in another loop, which is the one that runs; their ends are told to the first."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(serve_calls, listener)
    wait_for_role("server")
    queue = CompletionQueue()
    asyncio.run(greet(queue, listener.getsockname()))


class Broadcast:
    """A ring of messages in shared memory. Each of them has a flag that it is written, and one for each reader."""

    CHUNKS, SIZE, READERS = 4, 64, 3

    def __init__(self, name=None):
        size = self.CHUNKS * (self.SIZE + 1 + self.READERS)
        self.memory = shared_memory.SharedMemory(name, create=name is None, size=size)
        self.place = 0

    def flags(self):
        return self.CHUNKS * self.SIZE + self.place * (1 + self.READERS)

    def advance(self):
        self.place = (self.place + 1) % self.CHUNKS

    def free(self):
        flags = self.flags()
        return not self.memory.buf[flags] or all(self.memory.buf[flags + 1 : flags + 1 + self.READERS])

    def enqueue(self, message):
        while not self.free():
            time.sleep(0.0005)
        flags, start = self.flags(), self.place * self.SIZE
        self.memory.buf[flags] = 0
        self.memory.buf[start : start + self.SIZE] = message.ljust(self.SIZE)
        for reader in range(self.READERS):
            self.memory.buf[flags + 1 + reader] = 0
        self.memory.buf[flags] = 1
        self.advance()

    def dequeue(self, reader):
        flags, start = self.flags(), self.place * self.SIZE
        while not self.memory.buf[flags] or self.memory.buf[flags + 1 + reader]:
            time.sleep(0.0005)
        message = bytes(self.memory.buf[start : start + self.SIZE]).strip()
        self.memory.buf[flags + 1 + reader] = 1
        self.advance()
        return message


def execute_steps(name, rank):
    ring = Broadcast(name)
    for step in itertools.count():
        if rank == 0 and step == 9:
            at("worker")
        message = ring.dequeue(rank)
        if rank == 1 and message == b"step 5":
            os.kill(os.getpid(), signal.SIGKILL)  # the driver has failed
        time.sleep(0.005)


def broadcast_to_three_workers():
    """As vllm-project/vllm#45644: the engine tells its workers about each step in a ring. One of them has died; as its
    flags stay as they are, the ring becomes full, and the engine waits for room in it without a limit."""
    ring = Broadcast()
    workers = [child_of(execute_steps, ring.memory.name, rank) for rank in range(ring.READERS)]
    for step in itertools.count():
        if step == 10:
            workers[1].join()
            wait_for_role("worker")
            at("main")
        ring.enqueue(f"step {step}".encode())


def ship_logs(listener):
    at("child")
    while True:
        listener.accept()[0].close()


def tracker_at_exit():
    """As python/cpython#146316: semaphores and shared memory are known to a process of their own, which ends when
    nobody has its pipe any more. At its exit the program waits for that; a process that it forked has the pipe too, and
    goes on."""
    resource_tracker.ensure_running()
    cache = shared_memory.SharedMemory(create=True, size=4096)
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        ship_logs(listener)
    wait_for_role("child")
    atexit.register(resource_tracker._resource_tracker._stop)
    cache.close()
    cache.unlink()
    at("main")


class LogService:
    """The logs of a container are read by a thread, and go to a client in the loop."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def read_log(self, loop, queue, container):
        for number in range(400):
            item = f"{container} line {number}\n"
            asyncio.run_coroutine_threadsafe(queue.put(item), loop).result()
        asyncio.run_coroutine_threadsafe(queue.put(None), loop).result()

    async def follow(self, container, wanted):
        loop, queue = asyncio.get_running_loop(), asyncio.Queue(50)
        self.pool.submit(self.read_log, loop, queue, container)
        while (item := await queue.get()) is not None:
            if wanted in item:
                return item
        return "\n"

    async def handle(self, reader, writer):
        container, wanted = (await reader.readline()).decode().strip().split(" ", 1)
        if container == "cache":
            at("main")
        writer.write((await self.follow(container, wanted)).encode())
        await writer.drain()
        writer.close()


async def serve_logs(path):
    server = await asyncio.start_unix_server(LogService().handle, path)
    async with server:
        await server.serve_forever()


def ask_for_line(path, words):
    connection = socket.socket(socket.AF_UNIX)
    while connection.connect_ex(path):
        time.sleep(0.02)
    connection.sendall(words.encode() + b"\n")
    return connection.recv(256)


def look_for_errors(path):
    for words in ("proxy line 399", "proxy line 7", "engine line 20"):
        print(ask_for_line(path, words), flush=True)
    at("client")
    ask_for_line(path, "cache line 5")


def log_streams():
    """As pratyushjha06/Dockfleet#142: a client has what it wanted, and its stream returns. The thread that reads the
    log waits for room in the queue of that stream; after two of them no thread is left for the others."""
    path = in_folder("logs")
    child_of(look_for_errors, path)
    asyncio.run(serve_logs(path))


class Journal:
    """Of what was done, for all processes: a file and a lock."""

    def __init__(self):
        self.lock, self.writing = threading.Lock(), threading.Event()

    def write(self, line):
        with self.lock, open(in_folder("journal"), "a") as file:
            file.write(line + "\n")
            if "summary" in line:
                self.writing.set()
                work_for(3)


class Executor:
    """A process for the next call is forked when there is none that is idle. A thread takes the results."""

    def __init__(self):
        self.journal, self.calls, self.results = Journal(), FORK.SimpleQueue(), FORK.SimpleQueue()
        self.workers, self.idle, self.done = [], 0, threading.Semaphore(0)
        thread(self.manage)

    def manage(self):
        for count in itertools.count(1):
            number, tokens = self.results.get()
            self.done.release()
            self.journal.write(f"{number}: {tokens} tokens")
            if count == 2:
                self.journal.write("summary of the first documents")

    def work(self, number):
        if number == 1:
            at("worker")
        self.journal.write(f"worker {number} has begun")
        while True:
            document, text = self.calls.get()
            self.results.put((document, len(text.split())))

    def submit(self, document, text):
        if not self.done.acquire(blocking=False):
            self.workers.append(child_of(self.work, len(self.workers)))
        self.calls.put((document, text))


def workers_on_demand():
    """As python/cpython#91598: a worker is forked when there is something to do and none is idle. A thread takes the
    results of those that there are, and has the lock of the journal while the second worker is made."""
    executor = Executor()
    for document in range(2):
        executor.submit(document, "a text of some words " * 20)
        if document == 0:
            executor.done.acquire()
            executor.done.release()
    executor.journal.writing.wait()
    while executor.done.acquire(blocking=False):
        pass
    executor.submit(2, "another text " * 20)
    wait_for_role("worker")
    at("main")
    executor.workers[-1].join()


def run_core(path):
    """The loop of the engine, in a process of its own."""
    import zmq

    socket = zmq.Context().socket(zmq.REP)
    socket.bind(f"ipc://{path}")
    for number in itertools.count():
        if number == 3:
            at("core")
        request = socket.recv_json()
        if request == "shutdown":
            return
        work_for(0.02)
        socket.send_json({"text": request["prompt"] * 2})


class CoreClient:
    """Starts the core, and ends it when nobody needs it any more."""

    def __init__(self):
        import zmq

        path = in_folder("core.ipc")
        self.process = FORK.Process(target=run_core, args=(path,))
        self.process.start()
        self.socket = zmq.Context().socket(zmq.REQ)
        self.socket.connect(f"ipc://{path}")

    def __del__(self):
        self.socket.send_json("shutdown")

    def generate(self, prompt):
        self.socket.send_json({"prompt": prompt})
        return self.socket.recv_json()["text"]


CLIENTS = []


def script_and_its_engine():
    """As vllm-project/vllm#11076: a script has its answers, and ends. The engine is told to stop when its client is
    collected; before that, the processes that the script has started are waited for at its exit."""
    CLIENTS.append(CoreClient())
    for prompt in ("Hello", "The capital of France", "The future"):
        print(CLIENTS[0].generate(prompt), flush=True)
    wait_for_role("core")
    at("main")


class FeatureWriter:
    """Of an Arrow file. What comes is kept until there are enough for one batch of records."""

    BATCH = 1000

    def __init__(self):
        self.examples = []

    def write(self, example):
        self.examples.append(example)
        if len(self.examples) >= self.BATCH:
            self.flush()

    def flush(self):
        with open(in_folder("cache.arrow"), "wb") as file:
            for column in range(80):
                values = [value + column for example in self.examples for value in example]
                file.write(struct.pack(f"{len(values)}f", *values))
                file.flush()
                os.fsync(file.fileno())
        self.examples = []


def log_mel(audio):
    return [sum(audio[number::16]) / 16 for number in range(16)]


def features_written_by_the_thousand():
    """Healthy, as huggingface/datasets#5338: features of audio are computed fast. After each thousand of them there
    is a pause, with one processor at work: these are written to the file."""
    writer = FeatureWriter()
    for number in itertools.count():
        if number == 2000:
            at("main")
        writer.write(log_mel([float(number % 97 + index) for index in range(160)]))


def answers_of_full_length():
    """Healthy, as evalplus/evalplus#230: a base model does not draw the end of an answer, and so each one is as long as
    its context. That takes a minute for each, where most answers need some hundred tokens."""
    import torch

    torch.set_num_threads(1)
    embedding, head = torch.randn(256, 128), torch.randn(128, 256)
    for answer in itertools.count():
        tokens = [answer % 256]
        while len(tokens) < 16384:
            context = embedding[tokens[-512:]]
            weights = torch.softmax(context[-1:] @ context.t() / 11.0, 1)
            logits = torch.tanh(weights @ context) @ head
            logits[0, 255] = -float("inf")  # the end
            tokens.append(int(torch.multinomial(torch.softmax(logits[0], 0), 1)))
            if answer == 0 and len(tokens) == 300:
                at("main")


def be_master(port, seconds):
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", port, None, True, wait_for_workers=False)
    store.set("round", "begun")
    time.sleep(seconds)
    os._exit(1)


def train_with_master(port):
    import torch.distributed as dist

    rounds = 0
    while True:
        try:
            store = dist.TCPStore(
                "127.0.0.1", port, None, False, datetime.timedelta(seconds=20), wait_for_workers=False
            )
            rounds += 1
            if rounds == 2:
                at("worker")
            while True:
                work_for(0.05)
                store.add("steps", 1)
                time.sleep(0.1)
        except RuntimeError:
            print(f"the master of round {rounds} is down", flush=True)
            time.sleep(0.5)


def store_comes_back():
    """Healthy, as pytorch/pytorch#168242: the node with the store fails now and then, and is started again. The workers
    do not end with it; they wait for the next one, and go on."""
    from tests.inferiors.torch_job import free_port

    port = free_port()
    child_of(train_with_master, port)
    for number in itertools.count():
        master = child_of(be_master, port, 2)
        if number == 1:
            wait_for_role("worker")
            at("main")
        master.join()
        time.sleep(0.5)


def build_network():
    layers = [f"Conv_{number}" for number in range(12)]
    print(f"building a network of {len(layers)} layers", flush=True)
    for tactic in itertools.count():
        if tactic == 20:
            at("builder")
        begin = time.perf_counter()
        work_for(0.02 + 0.01 * (tactic % 7))
        layers[tactic % 12] = f"Conv_{tactic % 12} {time.perf_counter() - begin:.4f}"


def run_builder(write_end):
    os.dup2(write_end, 1)
    build_network()


def layers_profiled_quietly():
    """Healthy, as NVIDIA/TensorRT#3614: a builder is run from a window, which shows what it prints. It profiles all
    ways to compute each layer, for a long time, and prints that only when one asks for it."""
    read_end, write_end = os.pipe()
    child_of(run_builder, write_end)
    os.close(write_end)
    with os.fdopen(read_end) as output:
        output.readline()
        wait_for_role("builder")
        at("main")
        for line in output:
            print(line, flush=True)


class Health(http.server.BaseHTTPRequestHandler):
    ready = threading.Event()

    def do_GET(self):
        self.send_response(200 if self.ready.is_set() else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def compile_graphs():
    for size in itertools.count(1):
        work_for(0.2)
        with open(in_folder(f"graph{size % 8}"), "w") as file:
            file.write(f"a graph for {size} requests")
        if size == 8:
            at("worker")


def serve_worker(server):
    thread(server.serve_forever)
    compile_graphs()
    Health.ready.set()


class Router:
    """Takes requests when all of its workers are healthy, and looks for that each second."""

    def __init__(self, ports, interval):
        self.ports, self.interval = ports, interval

    async def is_healthy(self, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.0\r\n\r\n")
        status = (await reader.readline()).split()[1]
        writer.close()
        return status == b"200"

    async def wait_until_healthy(self):
        for number in itertools.count():
            answers = await asyncio.gather(*map(self.is_healthy, self.ports))
            if all(answers):
                return
            if number == 3:
                wait_for_role("worker")
                at("main")
            print(f"{answers.count(False)} workers are pending", flush=True)
            await asyncio.sleep(self.interval)

    async def start(self):
        await self.wait_until_healthy()
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        await server.serve_forever()


def router_of_a_loading_worker():
    """Healthy, as sgl-project/sglang#2778: a router waits for its workers. They compile for longer than it waited in
    the past; with a higher limit it goes on asking them."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Health)
    child_of(serve_worker, server)
    asyncio.run(Router([server.server_address[1]], 1.0).start())


class SpanExporter:
    """Tries again when the collector cannot be reached, for longer and longer, and drops the span in the end."""

    def __init__(self, port):
        self.port, self.dropped = port, 0

    def export(self, span):
        for delay in (0.1, 0.2, 0.4, 0.8, 1.6):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port)
                connection.request("POST", "/v1/traces", json.dumps(span))
                return connection.getresponse().status
            except OSError:
                time.sleep(delay)
        self.dropped += 1
        return None


class Traced(http.server.BaseHTTPRequestHandler):
    exporter, count = None, itertools.count()

    def do_GET(self):
        begin = time.time_ns()
        work_for(0.01)
        self.exporter.export({"name": self.path, "begin": begin, "end": time.time_ns()})
        if next(self.count) == 1:
            at("main")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def call_service(port):
    for number in itertools.count():
        if number == 1:
            at("client")
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", f"/items/{number}")
        connection.getresponse().read()


def collector_is_away():
    """Healthy, as open-telemetry/opentelemetry-python#2024: spans are sent in the thread of the request, and the
    collector is down. Each request takes some seconds, in which the span is tried again, and is answered after that."""
    from tests.inferiors.torch_job import free_port

    Traced.exporter = SpanExporter(free_port())
    server = http.server.HTTPServer(("127.0.0.1", 0), Traced)
    child_of(call_service, server.server_address[1])
    server.serve_forever()


class Files(http.server.BaseHTTPRequestHandler):
    """A server with room for one upload at a time."""

    protocol_version, count = "HTTP/1.1", itertools.count()

    def do_PUT(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if next(self.count) == 5:
            at("server")
        time.sleep(0.05)
        with open(in_folder("stored"), "wb") as file:
            file.write(data)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words):
        pass


def serve_files(server):
    server.serve_forever()


def upload_media(port, names):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in itertools.count():
        name = names.get()
        if name is None:
            return
        connection.request("PUT", f"/{name}", b"\x89PNG" + os.urandom(1300))
        connection.getresponse().read()
        if number == 10:
            at("uploader")


def media_of_a_run():
    """Healthy, as wandb/server#84: a run has ended, and has logged tens of thousands of small images. It waits for the
    process that uploads them, one after the other; the run does not say anything meanwhile."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Files)
    child_of(serve_files, server)
    names = FORK.Queue()
    uploader = child_of(upload_media, server.server_address[1], names)
    for number in range(58800):
        names.put(f"media/images/{number}.png")
    names.put(None)
    wait_for_role("uploader")
    wait_for_role("server")
    print("waiting for the upload to finish", flush=True)
    at("main")
    uploader.join()


PROGRAMS = {
    "blocks-by-notifications": blocks_by_notifications,
    "event-stream-at-shutdown": event_stream_at_shutdown,
    "tool-with-warnings": tool_with_warnings,
    "call-from-another-loop": call_from_another_loop,
    "broadcast-to-three-workers": broadcast_to_three_workers,
    "tracker-at-exit": tracker_at_exit,
    "log-streams": log_streams,
    "workers-on-demand": workers_on_demand,
    "script-and-its-engine": script_and_its_engine,
    "features-written-by-the-thousand": features_written_by_the_thousand,
    "answers-of-full-length": answers_of_full_length,
    "store-comes-back": store_comes_back,
    "layers-profiled-quietly": layers_profiled_quietly,
    "router-of-a-loading-worker": router_of_a_loading_worker,
    "collector-is-away": collector_is_away,
    "media-of-a-run": media_of_a_run,
}

if __name__ == "__main__":
    run(PROGRAMS)
