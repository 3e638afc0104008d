"""Engines of processes that hang, and healthy ones, twenty-eighth set: `twenty_eighth_engines.py NAME FOLDER`."""

import contextlib
import ctypes
import http.client
import http.server
import itertools
import json
import logging
import multiprocessing
import os
import queue
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


class Stream:
    """Where the pool logs to: what has launched it gave it a pipe. It says when that is full."""

    def __init__(self, number):
        self.number = number

    def write(self, text):
        if not select.select([], [self.number], [], 0)[1]:
            at("pool")
        os.write(self.number, text.encode())

    def flush(self):
        pass


def work_in_pool():
    """The process of a pool: it takes tasks, and gives their results back."""
    import zmq

    logging.basicConfig(level=logging.DEBUG, stream=Stream(2), format="%(asctime)s %(name)s %(process)d %(message)s")
    log, context = logging.getLogger("process_worker_pool"), zmq.Context()
    tasks, results = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    tasks.connect(sys.argv[3])
    results.connect(sys.argv[4])
    while True:
        number, argument = tasks.recv_json()
        log.debug("task %d has come, its argument is %s", number, argument)
        value = sum(int(digit) for digit in str(argument))
        log.debug("task %d has ended, its result is %d", number, value)
        results.send_json([number, value])


def launch(words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def pool_with_a_log():
    """As Parsl/parsl#738: a pool is launched with pipes for what it says. It logs each task, nobody reads that, and
    after some hundred tasks no results come any more."""
    import zmq

    context = zmq.Context()
    tasks, results = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    addresses = [f"ipc://{in_folder(name)}" for name in ("tasks.socket", "results.socket")]
    tasks.bind(addresses[0])
    results.bind(addresses[1])
    module = "tests.inferiors.live.twenty_eighth_engines"
    pool = launch([sys.executable, "-m", module, "process-worker-pool", sys.argv[2], *addresses])
    for number in range(1000):
        tasks.send_json([number, 2**number])
    ended = {}
    while not os.path.exists(in_folder("pool")):
        if results.poll(20):
            number, value = results.recv_json()
            ended[number] = value
    at("main")
    while len(ended) < 1000:
        number, value = results.recv_json()
        ended[number] = value
    pool.wait()


def prepare_slab(number):
    """The slab that is larger than all others is the end of its worker, by the kernel."""
    halos = [random.Random(number).random() for _ in range(20_000)]
    work_for(0.05)
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return sum(halos)


def slabs_of_a_simulation():
    """As abacusorg/abacusutils#150: the work is done by a pool, for each slab. A worker is killed for want of memory;
    the pool starts another one, and what the first one had to do is waited for."""
    with FORK.Pool(2) as pool:
        print(sum(pool.map(prepare_slab, range(4), chunksize=1)), flush=True)
        at("main")
        print(sum(pool.map(prepare_slab, range(4, 12), chunksize=1)), flush=True)


class CacheLock:
    """A file that is there as long as somebody has the cache."""

    def __init__(self, path):
        self.path = path

    def taken(self):
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def __enter__(self):
        wait = 0.01
        while not self.taken():
            time.sleep(wait)
            wait = min(2 * wait, 1.0)
        return self

    def __exit__(self, *_):
        os.unlink(self.path)


def fetch(name, lock, started):
    with lock:
        started.set()
        for number in itertools.count():
            with open(in_folder(f"{name}-{number % 8}.proto"), "w") as file:
                file.write(f"message M{number} {{ }}\n")
            work_for(0.01)


def cache_of_modules():
    """As coralogix/protofetch#150: the file that stands for the lock of the cache is not removed when its process is
    killed, as an editor does. The next one waits until it is removed."""
    lock, started = CacheLock(in_folder("cache.lock")), FORK.Event()
    first = child_of(fetch, "module", lock, started)
    started.wait()
    first.kill()
    first.join()
    at("main")
    fetch("module", lock, started)


SIZES = {"/model.json": 2000, "/weights.buf": 100_000_000}


class Files(http.server.BaseHTTPRequestHandler):
    """A model and its weights, over a slow line."""

    def do_GET(self):
        size = SIZES[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        for sent in range(0, size, 8000):
            if sent == 80_000:
                at("server")
            self.wfile.write(bytes(min(8000, size - sent)))
            if size > 8000:
                time.sleep(0.1)

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def download(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    answer, data = connection.getresponse(), bytearray()
    while True:
        part = answer.read(4096)
        if not part:
            return data
        data += part
        if len(data) == 40_960:
            at("main")


def weights_over_a_slow_line():
    """Healthy, as transcranial/keras-js#12: the model is said to be loading, and most of that is the download of its
    weights, a hundred megabytes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    child_of(serve_for_ever, server)
    for path in SIZES:
        print(path, len(download(server.server_address[1], path)), flush=True)


class Limited(http.server.BaseHTTPRequestHandler):
    """One of seven requests is let through."""

    counts = itertools.count(1)

    def do_GET(self):
        count = next(self.counts)
        if count == 3:
            at("service")
        data = json.dumps({"code": 42901} if count % 7 else {"users": [count]}).encode()
        self.send_response(429 if count % 7 else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


class Client:
    """Of an interface that lets so many requests through in a minute."""

    FIRST, MOST = 1.0, 32.0

    def __init__(self, port):
        self.port = port

    def once(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def call(self, path):
        wait = self.FIRST
        while True:
            status, data = self.once(path)
            if status != 429 or wait > self.MOST:
                return status, data
            if wait > 2:
                at("main")
            time.sleep(wait + random.random())
            wait *= 2


def requests_within_limits():
    """Healthy, as duosecurity/duo_api_csharp#8: a request that is one too many is sent again after a second, two, four,
    and so on up to thirty-two."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Limited)
    child_of(serve_for_ever, server)
    client = Client(server.server_address[1])
    while True:
        print(*client.call("/users"), flush=True)


def stream_tokens(connection):
    with contextlib.suppress(OSError):
        for number in range(240):
            connection.sendall(struct.pack("i", number))
            time.sleep(0.5)
    connection.close()


def serve_tokens(listener):
    while True:
        thread(stream_tokens, listener.accept()[0])


class Worker:
    """It does one request at a time. Its thread takes those of all workers into a buffer of one, and has the next one
    in its hand."""

    def __init__(self, role, address, pending, results):
        self.role, self.address, self.results = role, address, results
        self.buffer = queue.Queue(1)
        thread(self.receive, pending)

    def receive(self, pending):
        while True:
            self.buffer.put(pending.get())

    def request(self, number):
        with socket.create_connection(self.address) as connection:
            tokens = 0
            while connection.recv(4):
                tokens += 1
                if tokens == 2:
                    at(self.role)
            return tokens

    def run(self):
        while True:
            number = self.buffer.get()
            self.results.put((self.role, number, self.request(number)))


def run_worker(*arguments):
    Worker(*arguments).run()


def burst_of_requests():
    """Healthy, as vllm-project/guidellm#1042: some of the requests of a burst do not begin, as a worker has taken them
    that is busy with another one. They begin when that has ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    pending, results = FORK.Queue(), FORK.Queue()
    for role in ("one", "two"):
        child_of(run_worker, role, listener.getsockname(), pending, results)
    thread(serve_tokens, listener)
    for burst in itertools.count():
        for number in range(6):
            pending.put((burst, number))
        if burst == 0:
            wait_for_role("one")
            wait_for_role("two")
            at("main")
        for _ in range(6):
            print(*results.get(), flush=True)


class Watcher:
    """Tells which files of a folder have changed, by inotify."""

    CLOSE_WRITE = 0x8

    def __init__(self, folder):
        libc = ctypes.CDLL(None)
        self.number = libc.inotify_init1(0)
        libc.inotify_add_watch(self.number, folder.encode(), self.CLOSE_WRITE)

    def changed(self):
        data = os.read(self.number, 4096)
        while data:
            length = struct.unpack_from("iIII", data)[3]
            yield data[16 : 16 + length].rstrip(b"\0").decode()
            data = data[16 + length :]


def bundle(folder):
    text = ""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            text += file.read()
    with open(in_folder("bundle.py"), "w") as file:
        file.write(text)
    compile(text, "bundle.py", "exec")


def build_in_watch_mode():
    """Healthy, as Dealogic/webpack-vsts-extension#84: the configuration has its watch mode left on, so that the build
    does not end: it waits for changes."""
    folder = in_folder("sources")
    os.mkdir(folder)
    for number in range(40):
        with open(os.path.join(folder, f"part{number}.py"), "w") as file:
            file.writelines(f"def function{number}_{line}(a):\n    return a * {line}\n" for line in range(40))
    watcher = Watcher(folder)
    bundle(folder)
    print("built", flush=True)
    at("main")
    while True:
        print(*watcher.changed(), flush=True)
        bundle(folder)


PROGRAMS = {
    "launches-a-pool": pool_with_a_log,
    "process-worker-pool": work_in_pool,
    "prepares-slabs": slabs_of_a_simulation,
    "fetches-into-the-cache": cache_of_modules,
    "loads-its-weights": weights_over_a_slow_line,
    "asks-again-later": requests_within_limits,
    "bursts-over-workers": burst_of_requests,
    "builds-and-watches": build_in_watch_mode,
}

if __name__ == "__main__":
    run(PROGRAMS)
