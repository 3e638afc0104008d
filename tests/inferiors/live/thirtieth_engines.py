"""Engines of several processes that hang, and healthy ones, thirtieth set: `thirtieth_engines.py NAME FOLDER`."""

import asyncio
import http.client
import http.server
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

from tests.inferiors.live.place import at, child_of, in_folder, read_for_ever, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def serve_engine(role, ports, last):
    """Takes requests; at the last one the device does not come back."""
    import zmq

    requests = zmq.Context().socket(zmq.PULL)
    requests.rcvhwm = 4
    ports.send(requests.bind_to_random_port("tcp://127.0.0.1"))
    for number in itertools.count():
        if number == 3:
            at(role)
        requests.recv()
        if number == last:
            read_for_ever()
        work_for(0.005)


class EngineClient:
    """Of all engines; what is sent to one of them is sent as a whole."""

    def __init__(self, ports):
        import zmq

        self.lock, self.full, self.sockets, self.ready = threading.Lock(), threading.Event(), {}, zmq.POLLOUT
        context = zmq.Context()
        for role, port in ports.items():
            self.sockets[role] = context.socket(zmq.PUSH)
            self.sockets[role].sndhwm = 4
            self.sockets[role].connect(f"tcp://127.0.0.1:{port}")

    def send(self, role, request):
        with self.lock:
            if not self.sockets[role].poll(500, self.ready):
                self.full.set()
            self.sockets[role].send(request)


def generate(client, role, requests):
    for _ in range(requests):
        client.send(role, bytes(200_000))


def sends_with_one_lock():
    """As smg-project/smg#2094: a client of several engines sends with a lock, and waits there for as long as an engine
    takes nothing. One of them does not come back from its device; nobody can send to the other one."""
    ports = {}
    for role, last in (("a", -1), ("b", 3)):
        here, there = FORK.Pipe()
        child_of(serve_engine, role, there, last)
        ports[role] = here.recv()
    client = EngineClient(ports)
    generate(client, "a", 4)
    thread(generate, client, "b", 1000)
    client.full.wait()
    wait_for_role("a")
    wait_for_role("b")
    thread(generate, client, "a", 4)
    at("main")
    generate(client, "a", 4)


def run_code(code, items, results):
    """In a process of its own, with what the code makes of the items."""
    made = [eval(code, {}, {"item": item}) for item in items]
    if len(made) > 100:
        at("child")
    results.put(made)


class TaskRunner:
    """Runs the code of a user beside itself."""

    def execute(self, code, items):
        results = FORK.Queue()
        child = FORK.Process(target=run_code, args=(code, items, results))
        child.start()
        if len(items) > 100:
            wait_for_role("child")
            at("main")
        child.join()
        return results.get()


def waits_for_its_runner():
    """As n8n-io/n8n#19084: what the code gave is larger than the buffer of a pipe, so that its process writes until
    somebody reads. Its parent waits for that process to end before it reads."""
    runner = TaskRunner()
    for count in (3, 4000):
        print(len(runner.execute("{'text': item * 8}", [f"item{number}" for number in range(count)])), flush=True)


def synthesize(requests, results):
    """A worker with a model; there is not enough memory for a long text."""
    while True:
        number, text = requests.get()
        if len(text) > 1000:
            os.kill(os.getpid(), signal.SIGKILL)
        work_for(0.02)
        results.put((number, len(text)))


class VoiceServer:
    """Has a worker, and a future for each request."""

    def __init__(self):
        self.requests, self.results, self.futures = FORK.Queue(), FORK.Queue(), {}
        self.worker = child_of(synthesize, self.requests, self.results)
        self.loop, self.numbers = asyncio.get_running_loop(), itertools.count()
        thread(self.take_results)

    def take_results(self):
        while True:
            number, length = self.results.get()
            self.loop.call_soon_threadsafe(self.futures.pop(number).set_result, length)

    async def generate(self, text):
        number = next(self.numbers)
        self.futures[number] = future = self.loop.create_future()
        self.requests.put((number, text))
        if len(text) > 1000:
            multiprocessing.connection.wait([self.worker.sentinel])
            at("main")
        return await future


async def ask_for_voices():
    server = VoiceServer()
    for text in ("Hello", "How are you?", "Once upon a time " * 100):
        print(await server.generate(text), flush=True)


def asks_a_dead_worker():
    """As a710128/nanovllm-voxcpm#84: the worker has been killed, as there was not enough memory. What waits for its
    results does not know about that, and the requests wait for ever."""
    asyncio.run(ask_for_voices())


def tool():
    """On the other side of a connection: it says much about what it does, and then one line."""
    at("tool")
    for number in range(20_000):
        print(f"pulling layer {number} of the image", file=sys.stderr)
    print("done")


def reads_output_first():
    """As alfredodeza/remoto#62: the output of a remote command is read to its end, and its errors after that. It writes
    more errors than a pipe takes, before there is an end of the output."""
    words = [sys.executable, "-m", "tests.inferiors.live.thirtieth_engines", "tool", sys.argv[2]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for_role("tool")
        at("main")
        output = process.stdout.read()
        errors = process.stderr.read()
        print(output, len(errors), flush=True)


class Statsd:
    """A client for metrics; its socket has a lock."""

    def __init__(self, port):
        self.lock, self.sending, self.buffer = threading.Lock(), threading.Event(), []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))

    def increment(self, name):
        with self.lock:
            self.socket.send(f"{name}:1|c".encode())

    def flush(self, forked):
        """Of a thread: as long as there is something to send."""
        with self.lock:
            self.sending.set()
            while not forked.is_set():
                self.socket.send(b"requests:1|c")


def count_a_task(statsd):
    at("child")
    statsd.increment("tasks")


def sends_metrics():
    """As DataDog/datadogpy#836: a thread sends metrics, with the lock of the socket, when a process is forked. The new
    one has that lock as it was, and sends a metric as well."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        statsd, forked = Statsd(server.getsockname()[1]), threading.Event()
        statsd.increment("starts")
        thread(statsd.flush, forked)
        statsd.sending.wait()
        child = child_of(count_a_task, statsd)
        forked.set()
        wait_for_role("child")
        at("main")
        child.join()


def tokenize(turns):
    """A conversation: for each turn, all that was said before is tokenized again, to know what is learnt from."""
    if turns > 100:
        at("worker")
    known = {}
    for turn in range(turns):
        for word in range(40 * (turn % 4000 + 1)):
            known.setdefault(f"word{word % 5000}", len(known))
    return len(known)


def tokenizes_the_long_ones():
    """Healthy, as axolotl-ai-cloud/axolotl#2396: a dataset is tokenized by two processes, at thousands of conversations
    a second. The long ones are at its end, and come to one of them."""
    turns = [2] * 400 + [10_000_000]
    with FORK.Pool(2) as pool:
        for done, _ in enumerate(pool.imap_unordered(tokenize, turns), 1):
            if done == 400:
                print(f"{done} of {len(turns)}", flush=True)
                wait_for_role("worker")
                at("main")


KERNEL = """
double kernel{number}(const double *rows, int size)
{{
    double total = 0;
    for (int row = 0; row < size; ++row)
        total += {terms};
    return total;
}}
"""


def build_kernels():
    """One after the other, for all shapes."""
    for number in itertools.count():
        terms = " + ".join(f"rows[row * {number + 2} + {term}] * {term}.5" for term in range(300))
        source = in_folder(f"kernel{number % 4}.c")
        with open(source, "w") as file:
            file.write(KERNEL.format(number=number, terms=terms))
        if number == 1:
            at("server")
        subprocess.run(["gcc", "-O2", "-c", "-o", source + ".o", source], check=True)


class FirstRequest(http.server.BaseHTTPRequestHandler):
    """The server listens before its backend has worked for the first time."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        build_kernels()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def first_request_builds():
    """Healthy, as sgl-project/sglang#146: the server is up, and its first request is extremely slow. With that one the
    backend takes its memory and builds its kernels."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FirstRequest)
    child_of(serve_for_ever, server)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    connection.request("POST", "/generate", json.dumps({"text": "Hello"}))
    wait_for_role("server")
    at("main")
    connection.getresponse()


class Images:
    """Each is decoded when it is wanted, line by line."""

    WIDTH, HEIGHT = 640, 360

    def __init__(self):
        line = bytes([2]) + bytes(number % 7 for number in range(self.WIDTH))
        self.file = zlib.compress(line * self.HEIGHT)

    def __len__(self):
        return 10_000_000

    def __getitem__(self, number):
        import torch

        if number == 3:
            at("worker")
        data, above = zlib.decompress(self.file), bytes(self.WIDTH)
        for line in range(self.HEIGHT):
            begin = line * (self.WIDTH + 1) + 1
            above = bytes((a + b) & 255 for a, b in zip(data[begin : begin + self.WIDTH], above))
        return torch.tensor(list(above), dtype=torch.float32)


def decodes_an_image_a_step():
    """Healthy, as nerfstudio-project/gsplat#1058: a step of the training is short, and the image for it is decoded by a
    worker that has just begun to. The accelerator waits for the loader, and nothing says so."""
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(Images(), batch_size=4, num_workers=1, prefetch_factor=1)
    weights = torch.zeros(Images.WIDTH)
    for step, images in enumerate(loader):
        if step == 2:
            at("main")
        weights += 0.01 * (images.mean(dim=0) - weights)


class Mail(http.server.BaseHTTPRequestHandler):
    """There is a limit of requests; who has had too many gets one now and then."""

    count = itertools.count()

    def do_GET(self):
        number = next(self.count)
        self.send_response(200 if number < 20 or number % 6 == 0 else 429)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if number == 21:
            at("server")

    def log_message(self, *words):
        pass


def backs_off():
    """Healthy, as gauteh/lieer#8: a mailbox is fetched message by message, and the server says that there were too many
    requests. It waits, twice as long each time, and less after ten that were answered."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mail)
    child_of(serve_for_ever, server)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    delay, good = 0.5, 0
    for number in itertools.count():
        connection.request("GET", f"/message/{number}")
        answer = connection.getresponse()
        answer.read()
        if answer.status == 429:
            good, delay = 0, min(delay * 2, 60)
            if delay == 4:
                at("main")
            time.sleep(delay)
        else:
            good += 1
            delay = delay / 2 if good % 10 == 0 and delay > 0.5 else delay


class ResponseStream:
    """To a client; who writes waits while there is no room."""

    def __init__(self, connection):
        self.connection, self.rows = connection, queue.Queue(16)
        thread(self.send)

    def send(self):
        while True:
            self.connection.sendall(self.rows.get())

    def write(self, row):
        self.rows.put(row)


def answer_query(server):
    connection, _ = server.accept()
    stream = ResponseStream(connection)
    for number in itertools.count():
        if number == 1000:
            at("server")
        stream.write(json.dumps({"row": number, "text": "x" * 4000}).encode() + b"\n")


def writes_to_a_slow_client():
    """Healthy, as confluentinc/ksql#5386: a query has no end, and its client takes a row now and then. What writes the
    rows is stopped until there is room again."""
    server = socket.create_server(("127.0.0.1", 0))
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    child_of(answer_query, server)
    with socket.socket() as connection, connection.makefile("rb") as rows:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        connection.connect(server.getsockname())
        for number, _ in enumerate(rows):
            if number == 1200:
                at("main")
            time.sleep(0.0 if number < 1200 else 0.1)


PROGRAMS = {
    "sends-with-one-lock": sends_with_one_lock,
    "waits-for-its-runner": waits_for_its_runner,
    "asks-a-dead-worker": asks_a_dead_worker,
    "tool": tool,
    "reads-output-first": reads_output_first,
    "sends-metrics": sends_metrics,
    "tokenizes-the-long-ones": tokenizes_the_long_ones,
    "first-request-builds": first_request_builds,
    "decodes-an-image-a-step": decodes_an_image_a_step,
    "backs-off": backs_off,
    "writes-to-a-slow-client": writes_to_a_slow_client,
}

if __name__ == "__main__":
    run(PROGRAMS)
