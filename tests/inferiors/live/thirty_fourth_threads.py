"""Engines of one process that hang, and healthy ones, thirty-fourth set: `thirty_fourth_threads.py NAME FOLDER`."""

import ast
import asyncio
import concurrent.futures
import contextlib
import hashlib
import itertools
import mmap
import os
import queue
import signal
import socket
import sqlite3
import sys
import sysconfig
import threading
import zlib

import numpy

from tests.inferiors.live.place import at, in_folder, run, thread, work_for


class MqttClient:
    """Writes to its socket when the loop says that it takes more."""

    def __init__(self, loop):
        self.loop, self.packets, self.connected = loop, [], False
        self.sock, self.broker = socket.socketpair()
        thread(self.serve)

    def serve(self):
        while data := self.broker.recv(4096):
            print(f"broker: {data!r}", flush=True)

    def connect(self):
        self.packet_queue(b"CONNECT")
        self.connected = True

    def packet_queue(self, packet):
        self.packets.append(packet)
        self.on_socket_register_write()

    def on_socket_register_write(self):
        async def add_writer():
            self.loop.add_writer(self.sock, self.loop_write)

        asyncio.run_coroutine_threadsafe(add_writer(), self.loop).result()

    def loop_write(self):
        while self.packets:
            self.sock.sendall(self.packets.pop(0))
        self.loop.remove_writer(self.sock)

    def publish(self, topic, payload):
        self.packet_queue(f"PUBLISH {topic} {payload}".encode())


async def publish_measurements():
    client = MqttClient(asyncio.get_running_loop())
    await client.loop.run_in_executor(None, client.connect)
    await asyncio.sleep(0.2)
    at("main")
    for number in range(3):
        client.publish("humidity", number)
        await asyncio.sleep(0.1)


def registers_its_socket():
    """As empicano/aiomqtt#174: who connects does so in a thread of an executor, and who publishes in the loop."""
    asyncio.run(publish_measurements())


class ExitHandling:
    """Leaves once, whatever comes."""

    def __init__(self):
        self.lock, self.is_exiting = threading.Lock(), False
        self.events, self.recorded = queue.Queue(), threading.Event()

    def register(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.graceful_exit)

    def graceful_exit(self, number, frame):
        with self.lock:
            if self.is_exiting:
                return
            self.is_exiting = True
            self.events.put(f"leaving by {signal.Signals(number).name}")
            self.recorded.wait()
        sys.exit(0)


def supervise(handling):
    """As somebody who types it twice."""
    work_for(0.3)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)
    print(handling.events.get(), flush=True)
    at("main")
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    work_for(0.3)
    handling.recorded.set()


def is_told_twice_to_stop():
    """As flwrlabs/flower#7914: a signal comes while the one before is handled."""
    handling = ExitHandling()
    handling.register()
    thread(supervise, handling)
    while True:
        work_for(0.05)


class TaskRunner:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="task")

    def submit(self, task, *arguments):
        return self.pool.submit(task, *arguments)


def load(page):
    work_for(0.01)
    return {"page": page, "rows": page * 10}


class Flow:
    def __init__(self, workers):
        self.runner, self.begun = TaskRunner(workers), threading.Barrier(workers)

    def extract(self, first):
        self.begun.wait()
        pages = [self.runner.submit(load, page) for page in range(first, first + 3)]
        return sum(page.result()["rows"] for page in pages)

    def run(self, sources):
        states = [self.runner.submit(self.extract, source * 3) for source in sources]
        at("main")
        return sum(state.result() for state in states)


def flows_by_few_workers():
    """As PrefectHQ/prefect#14194: a task has tasks of its own, and waits for them."""
    print(Flow(4).runner.submit(load, 1).result(), flush=True)
    print(Flow(4).run(range(4)), flush=True)


class StatusLine:
    def __init__(self):
        self.changed, self.lines = threading.Condition(), []
        self.thread = threading.Thread(target=self.redraw, name="status")
        self.thread.start()

    def update(self, line):
        with self.changed:
            self.lines.append(line)
            self.changed.notify()

    def redraw(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.lines)
                print(f"[{self.lines.pop(0)}]", flush=True)


def shows_a_status_line():
    """As jline/jline3#562: one types a few commands, and then leaves."""
    status = StatusLine()
    for command in ("help", "ls", "tput", "exit"):
        status.update(f"last: {command}")
        work_for(0.05)
        if command == "exit":
            print("bye", flush=True)
            at("main")
            return


class ConsoleCapture:
    """What goes to the standard output is kept as well."""

    def __init__(self):
        self.lock, self.chunks, self.write = threading.Lock(), [], sys.stdout.write

    def install(self):
        sys.stdout.write = self.write_and_keep

    def write_and_keep(self, text):
        with self.lock:
            written = self.write(text)
            for line in text.splitlines():
                self.chunks.append({"line": line, "parts": [[word, len(word)] for word in line.split()]})
        return written


class Sweep:
    """An agent and its runs know one another."""

    def __init__(self, number):
        self.number, self.runs = number, [self]

    def __del__(self):
        print(f"sweep {self.number} is over")


def captures_the_console():
    """As wandb/wandb#11402: objects that know one another are given up in each step, and say so at their end."""
    ConsoleCapture().install()
    print("begins")
    at("main")
    for step in range(1000):
        Sweep(step)
        print(" ".join(f"metric{number}={step * number}" for number in range(60)))


class ServiceClient:
    """An actor that talks to a broker for who calls its methods."""

    HEARTBEAT = 2000

    def __init__(self, context, endpoint):
        import zmq

        self.zmq, self.context, self.endpoint = zmq, context, endpoint
        self.pipe = context.socket(zmq.PAIR)
        self.pipe.bind("inproc://client")
        thread(self.actor)

    def call(self, *words):
        self.pipe.send_multipart([word.encode() for word in words])
        return self.pipe.recv_string()

    def actor(self):
        pipe, broker = self.context.socket(self.zmq.PAIR), self.context.socket(self.zmq.DEALER)
        pipe.connect("inproc://client")
        broker.connect(self.endpoint)
        poller, state = self.zmq.Poller(), "idle"
        poller.register(pipe, self.zmq.POLLIN)
        poller.register(broker, self.zmq.POLLIN)
        while True:
            ready = dict(poller.poll(self.HEARTBEAT))
            if not ready:
                broker.send(b"PING")
            if pipe in ready:
                words = pipe.recv_multipart()
                if state == "connected":  # for some time, so that it may have gone
                    broker.send(b"PING")
                broker.send_multipart(words)
                state = "confirming"
            if broker in ready:
                state = self.handle(state, broker.recv_string(), pipe)

    def handle(self, state, message, pipe):
        if message == "PONG":
            return "connected"
        if state == "confirming":
            pipe.send_string(message)
            return "connected"
        return state


def broker(context, endpoint):
    import zmq

    router = context.socket(zmq.ROUTER)
    router.bind(endpoint)
    while True:
        client, *words = router.recv_multipart()
        router.send_multipart([client, b"PONG" if words[0] == b"PING" else b"OK"])


def offers_a_service():
    """As zeromq/malamute#178: a client connects, and offers a service a while later."""
    import zmq

    context = zmq.Context()
    endpoint = f"ipc://{in_folder('broker')}"
    thread(broker, context, endpoint)
    client = ServiceClient(context, endpoint)
    print(client.call("CONNECT"), flush=True)
    at("main")
    print(client.call("SERVICE OFFER", "printer"), flush=True)


class LazyElement:
    """Of a group; what it is is computed by a thread."""

    def __init__(self, compute):
        self.compute, self.value, self.done = compute, None, threading.Condition()

    def get(self):
        with self.done:
            while self.value is None:
                self.done.wait()
        return self.value


class Computations:
    def __init__(self):
        self.elements = queue.Queue()
        thread(self.work)

    def submit(self, element):
        self.elements.put(element)
        return element

    def work(self):
        while True:
            element = self.elements.get()
            with contextlib.suppress(Exception):
                value = element.compute()
                with element.done:
                    element.value = value
                    element.done.notify_all()


def pairing(left, right):
    if left["group"] == right["group"]:
        raise ValueError("a pairing is of two groups")
    return pow(left["exponent"], right["exponent"], 2**61 - 1)


def computes_a_pairing():
    """As cryptimeleon/math#134: pairings are computed beside what needs them."""
    first, second = {"group": 1, "exponent": 1234567}, {"group": 2, "exponent": 7654321}
    computations = Computations()
    print(computations.submit(LazyElement(lambda: pairing(first, second))).get(), flush=True)
    wrong = computations.submit(LazyElement(lambda: pairing(second, second)))
    at("main")
    print(wrong.get(), flush=True)


def snippets(path):
    try:
        with open(path, errors="replace") as file:
            source = file.read()
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, ast.get_source_segment(source, node) or ""


def embedding(text, size=64):
    vector = [0.0] * size
    for start in range(len(text) - 3):
        vector[hash(text[start : start + 4]) % size] += 1.0
    return ",".join(f"{value:.2f}" for value in vector)


def indexes_a_repository():
    """As helixml/kodit#118, healthy: each snippet of a large repository gets an embedding."""
    database = sqlite3.connect(in_folder("index.db"))
    database.execute("create table snippets (path text, name text, embedding text)")
    at("main")
    for commit in range(200):
        for folder, _, names in os.walk(sysconfig.get_paths()["stdlib"]):
            for name in (one for one in names if one.endswith(".py")):
                path = os.path.join(folder, name)
                rows = [(f"{commit}:{path}", found, embedding(text)) for found, text in snippets(path)]
                database.execute("delete from snippets where path = ?", (path,))
                database.executemany("insert into snippets values (?, ?, ?)", rows[:50])
        database.commit()


def solves_a_large_domain():
    """As usnistgov/fipy#694, healthy: diffusion on a grid with many more cells than the one before."""
    size = 700
    phase = numpy.random.default_rng(0).normal(0.5, 0.01, (size, size))
    at("main")
    for sweep in range(2_000_000):
        around = sum(numpy.roll(phase, shift, axis) for axis in (0, 1) for shift in (1, -1))
        phase += 0.05 * (around - 4 * phase) - 0.001 * phase * (1 - phase) * (1 - 2 * phase)
        if sweep % 1_000_000 == 999_999:
            print(f"sweep {sweep}: {phase.mean():.5f}", flush=True)


def pins_its_checkpoint():
    """As peonist-ai/halogen-flash-server#18, healthy: what a checkpoint has is read by pages, each from the disk."""
    path, size = in_folder("trunk.bin"), 48 << 20
    with open(path, "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    pinned = bytearray(mmap.PAGESIZE)
    at("main")
    for _ in range(2000):
        with open(path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as pages:
                for start in range(0, size, mmap.PAGESIZE):
                    pinned[:] = pages[start : start + mmap.PAGESIZE]
                    for _ in range(8):
                        zlib.crc32(pinned)


def block_digests(path, first, count, size=4096):
    with open(path, "rb", buffering=0) as file:
        file.seek(first * size)
        return [hashlib.blake2b(file.read(size)).digest() for _ in range(count)]


def hashes_small_blocks():
    """As markfasheh/duperemove#306, healthy: a very large file is hashed by blocks of four kilobytes, in threads."""
    path, blocks, known = in_folder("laptop.img"), 8192, {}
    with open(path, "wb") as file:
        for _ in range(blocks // 256):
            file.write(os.urandom(256 * 4096))
    at("main")
    with concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="csum") as pool:
        for scan in range(5000):
            parts = [pool.submit(block_digests, path, first, 1024) for first in range(0, blocks, 1024)]
            for number, digest in enumerate(itertools.chain.from_iterable(part.result() for part in parts)):
                known.setdefault(digest, []).append((scan, number))
                if len(known[digest]) > 16:
                    known[digest].clear()


PROGRAMS = {
    "registers-its-socket": registers_its_socket,
    "is-told-twice-to-stop": is_told_twice_to_stop,
    "flows-by-few-workers": flows_by_few_workers,
    "shows-a-status-line": shows_a_status_line,
    "captures-the-console": captures_the_console,
    "offers-a-service": offers_a_service,
    "computes-a-pairing": computes_a_pairing,
    "indexes-a-repository": indexes_a_repository,
    "solves-a-large-domain": solves_a_large_domain,
    "pins-its-checkpoint": pins_its_checkpoint,
    "hashes-small-blocks": hashes_small_blocks,
}

if __name__ == "__main__":
    run(PROGRAMS)
