"""Engines of several processes that hang, and healthy ones, fifteenth set: `fifteenth_engines.py NAME FOLDER`."""

import asyncio
import collections
import fcntl
import http.client
import http.server
import itertools
import json
import mmap
import multiprocessing
import multiprocessing.connection
import os
import queue
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def start_worker(address):
    """It is to tell who it is. Its network fails before it has come so far."""
    raise SystemExit(f"no completion queue for {address}")


class MpiPool:
    """A thread manages the pool: it takes in the workers and gives them their tasks."""

    def __init__(self):
        self.listener = multiprocessing.connection.Listener(in_folder("world"), "AF_UNIX")
        self.worker = child_of(start_worker, self.listener.address)
        self.identified = threading.Event()
        self.manager = thread(self.manage, daemon=False)

    def manage(self):
        with self.listener.accept() as worker:
            self.identified.set()
            worker.recv()


def exit_joins_pool_manager():
    """As NVIDIA/TensorRT-LLM#17970: the only worker of a pool ends before it has said who it is. The pool is given up,
    but not its thread, which waits for the worker; at exit it is joined."""
    pool = MpiPool()
    if not pool.identified.wait(1):
        pool.worker.join()
        print("no worker has been identified", flush=True)
        del pool
    at("main")


class Prefill:
    """Computes the pages of prompts and sends them. Then it says that it is done."""

    def __init__(self, pages):
        self.pages = pages

    def serve(self, requests):
        while True:
            number, aborts = requests.recv()
            self.pages.send((number, "begins", None))
            for page in range(4):
                work_for(0.005)
                self.pages.send((number, "page", bytes([page]) * 4096))
            if not aborts:  # else nobody is told how it went
                self.pages.send((number, "done", None))


def serve_prefill(requests, pages):
    at("prefill")
    Prefill(pages).serve(requests)


class Decode:
    """Has some slots, each for a request whose pages it has or is to get."""

    def __init__(self, prefill, pages, slots):
        self.prefill, self.pages, self.slots = prefill, pages, slots
        self.waiting, self.transfers, self.running = collections.deque(), {}, {}

    def receive_pages(self):
        while True:
            number, what, _page = self.pages.recv()
            self.transfers[number] = "success" if what == "done" else "transferring"

    def admit(self):
        while self.waiting and len(self.transfers) + len(self.running) < self.slots:
            number = self.waiting.popleft()
            self.transfers[number] = "waiting"
            self.prefill.send((number, number >= 6))

    def step(self):
        self.admit()
        for number in [number for number, state in self.transfers.items() if state == "success"]:
            del self.transfers[number]
            self.running[number] = 0
        ended = [number for number in self.running if self.running[number] == 8]
        for number in self.running:
            self.running[number] += 1
        for number in ended:
            del self.running[number]
        return ended

    def serve(self, client):
        thread(self.receive_pages)
        while True:
            while client.poll(0 if self.running else 0.005):
                self.waiting.append(client.recv())
            for number in self.step():
                client.send(number)
            if list(self.transfers.values()) == ["transferring"] * self.slots and not os.path.exists(
                in_folder("decode")
            ):
                at("decode")


def serve_decode(*arguments):
    client, *others = arguments
    Decode(*others, slots=4).serve(client)


def transfers_never_done():
    """As sgl-project/sglang#31800: the transfers of some requests have begun, and that they are done is never told.
    They keep their slots, for which there is no time limit, and no request comes in any more."""
    requests, takes = FORK.Pipe()
    sends, pages = FORK.Pipe()
    client, serves = FORK.Pipe()
    child_of(serve_prefill, takes, sends)
    child_of(serve_decode, serves, requests, pages)
    for number in range(12):
        client.send(number)
    for _ in range(6):
        client.recv()
    wait_for_role("decode")
    at("main")
    client.recv()


def build_and_be_killed(folder):
    from torch.utils.file_baton import FileBaton

    assert FileBaton(os.path.join(folder, "lock")).try_acquire()
    os.kill(os.getpid(), signal.SIGKILL)


def stale_build_lock():
    """As PASSIONLab/OpenEquivariance#156: an extension is built when it is imported. A build was ended from outside,
    and its lock is still in the folder, in which all later ones wait for it to go away."""
    from torch.utils import cpp_extension

    folder, source = in_folder("torch_extensions"), in_folder("extlib.cpp")
    os.mkdir(folder)
    with open(source, "w") as file:
        file.write("#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n")
    child_of(build_and_be_killed, folder).join()
    at("main")
    cpp_extension.load("extlib", [source], build_directory=folder)


class Graphs(http.server.BaseHTTPRequestHandler):
    """Answers, and says on its output what it does."""

    def do_POST(self):
        code = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if len(code) > 1 << 10:
            at("server")
        for line in code.splitlines():
            print("parsed:", line, flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words):
        pass


def graph_server():
    server = http.server.HTTPServer(("127.0.0.1", 0), Graphs)
    with open(in_folder(".port"), "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(in_folder(".port"), in_folder("port"))
    server.serve_forever()


def this_program(name):
    return [sys.executable, "-m", "tests.inferiors.live.fifteenth_engines", name, sys.argv[2]]


def server_output_not_read():
    """As mahaloz/pyjoern#16: the server's output goes into a pipe, which is for an error at its start. Nobody reads it
    later; when it is full the server waits, and its client for the answer."""
    server = subprocess.Popen(this_program("graph-server"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_role("port")
    with open(in_folder("port")) as file:
        port = int(file.read())
    for lines in (1, 10, 4000):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        if lines > 1000:
            at("main")
        connection.request("POST", "/query", "int a; // declared\n" * lines)
        connection.getresponse().read()
    server.wait()


class Images:
    """Of a service. Batches are shared by files, of which the name goes away when they have been opened."""

    def share(self, number):
        path = in_folder(f"torch_{os.getpid()}_{number}")
        with open(path, "wb") as file:
            file.write(bytes(1 << 16))
        if number == 5:
            os.unlink(path)  # it was somebody else's too
        os.unlink(path)
        return number


def load_batches(data, indices, results):
    while True:
        results.put(data.share(indices.get()))


class Loader:
    """One worker, and a thread that pins what it gives."""

    def __init__(self, data):
        self.indices, self.results, self.pinned = FORK.Queue(), FORK.Queue(), queue.Queue()
        self.worker = child_of(load_batches, data, self.indices, self.results)
        thread(self.pin_memory)

    def pin_memory(self):
        while True:
            self.pinned.put(self.results.get())

    def __iter__(self):
        for number in itertools.count():
            self.indices.put(number)
            if number == 5:
                at("main")
            yield self.pinned.get()


def loader_worker_gone():
    """As RolnickLab/ami-data-companion#140: the worker of the loader ends by an error when it shares a batch. Who takes
    batches waits for the next one without a time limit, and does not look whether there is a worker."""
    for _batch in Loader(Images()):
        work_for(0.02)


KERNEL = """
#include <array>
#include <cmath>
template <int M, int N> struct Moe {
    static double run(const std::array<double, M> &rows) { return std::sin(rows[N % M]) + Moe<M, N - 1>::run(rows); }
};
template <int M> struct Moe<M, 0> {
    static double run(const std::array<double, M> &rows) { return rows[0]; }
};
template <int M> double kernel(const std::array<double, M> &rows) { return Moe<M, 800>::run(rows); }
template double kernel<8 * SIZE>(const std::array<double, 8 * SIZE> &);
template double kernel<8 * SIZE + 1>(const std::array<double, 8 * SIZE + 1> &);
template double kernel<8 * SIZE + 2>(const std::array<double, 8 * SIZE + 2> &);
template double kernel<8 * SIZE + 3>(const std::array<double, 8 * SIZE + 3> &);
template double kernel<8 * SIZE + 4>(const std::array<double, 8 * SIZE + 4> &);
"""


def compile_kernel(source, size):
    command = ["g++", "-std=c++17", "-O2", f"-DSIZE={size}", "-c", source, "-o", source + ".o"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def start_stage(name, ready):
    with open(in_folder("gpu0.lock"), "w") as lock:
        if name == "thinker":
            at(name)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(in_folder("moe.cpp"), "w") as file:
            file.write(KERNEL)
        for size in itertools.count(1):
            compile_kernel(in_folder("moe.cpp"), size)
            if size == 1:
                at(name)
    ready.send(name)


def compiles_under_startup_lock():
    """Healthy, as sgl-project/sglang-omni#1194: one stage compiles kernels at its first call, for eleven minutes, and
    has the lock for starts on that device; the other stage waits for it, and the server for both."""
    waits, ready = FORK.Pipe(duplex=False)
    child_of(start_stage, "talker", ready)
    wait_for_role("talker")
    child_of(start_stage, "thinker", ready)
    wait_for_role("thinker")
    at("main")
    while not waits.poll(10):
        print("stages are starting", flush=True)


def loads_page_by_page():
    """Healthy, as Comfy-Org/ComfyUI#2288: the file of the model is mapped and on a volume in the network. One page
    after the other is read when it is touched, and the processor is busy with that for a long time."""
    path, size = in_folder("model.safetensors"), 64 << 20
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        for tensor in itertools.count():
            os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
            mapped.madvise(mmap.MADV_DONTNEED)
            into = bytearray(size)
            for offset in range(0, size, mmap.PAGESIZE):
                into[offset : offset + mmap.PAGESIZE] = mapped[offset : offset + mmap.PAGESIZE]
            if tensor == 0:
                at("main")


def build_wheel():
    source = in_folder("flash_fwd.cu.cpp")
    with open(source, "w") as file:
        file.write(KERNEL)
    for size in itertools.count(1):
        print(f"g++ -DSIZE={size} -c {source}", flush=True)
        compile_kernel(source, size)
        if size == 1:
            at("build")


def wheel_on_one_core():
    """Healthy, as meteofrance/py4cast#58: a package is built when it is installed. Without Ninja its files are compiled
    one after the other, for two hours; the installer shows nothing of it."""
    with subprocess.Popen(this_program("build-wheel"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as build:
        wait_for_role("build")
        at("main")
        lines = list(build.stdout)
        print(len(lines), "lines", flush=True)


class Store(socketserver.StreamRequestHandler):
    """Lists of requests, by their names."""

    def handle(self):
        for line in self.rfile:
            _word, name = line.split()
            waiting = self.server.lists[name.decode()]
            self.wfile.write(json.dumps(waiting.popleft() if waiting else None).encode() + b"\n")


class Stores(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.lists = collections.defaultdict(collections.deque)


def detect(address):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        answers = connection.makefile("rb")
        for number in itertools.count():
            if number == 100:
                at("detector")
            connection.sendall(b"LPOP detection\n")
            if json.loads(answers.readline()) is not None:
                work_for(0.1)
            time.sleep(0.02)


def polls_for_requests():
    """Healthy, as johnolafenwa/DeepStack#82: what detects asks the store for requests again and again, which takes
    three percent of a processor while there are none."""
    stores = Stores(in_folder("store"), Store)
    thread(stores.serve_forever)
    stores.lists["detection"].append({"image": 1})
    child_of(detect, stores.server_address)
    wait_for_role("detector")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    at("main")
    server.serve_forever()


class Starter(http.server.BaseHTTPRequestHandler):
    """Fifty requests are answered in twenty seconds, the others are told to come again."""

    taken, until = 0, 0.0

    def do_GET(self):
        kind = type(self)
        if time.monotonic() > kind.until:
            kind.taken, kind.until = 0, time.monotonic() + 20
        kind.taken += 1
        self.send_response(200 if kind.taken <= 50 else 429)
        self.send_header("Retry-After", "4")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words):
        pass


def serve_starter(server):
    server.serve_forever()


def retries_until_limit_resets():
    """Healthy, as clarivate/wosstarter_python_client#4: when there have been too many requests, the client says nothing
    and tries again, until they are counted anew."""
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util.retry import Retry

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Starter)
    child_of(serve_starter, server)
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(max_retries=Retry(total=None, status_forcelist=[429])))
    for number in itertools.count():
        if number == 50:
            at("main")
        session.get(f"http://127.0.0.1:{server.server_address[1]}/documents/{number}").json()


def compile_schema(schema):
    """Each of its enums becomes one large expression."""
    return {
        name: re.compile("|".join(f'(?P<v{number}>"{value}")' for number, value in enumerate(values)))
        for name, values in schema.items()
    }


def serve_grammars(connection):
    for number in itertools.count():
        schema = connection.recv()
        if number == 1:
            at("engine")
        re.purge()
        connection.send(sorted(compile_schema(schema)))


def schema_with_large_enums():
    """Healthy, as guidance-ai/llguidance#98: a schema of a request has enums of thousands of values, which are made
    into expressions and compiled. That takes its time before the first token."""
    connection, serves = FORK.Pipe()
    child_of(serve_grammars, serves)
    for number in itertools.count():
        values = [f"value {number * value % 8191} of many" for value in range(40_000 if number else 10)]
        connection.send({f"enum{name}": values for name in range(4)})
        if number == 1:
            wait_for_role("engine")
            at("main")
        connection.recv()


def run_worker(port):
    """Without tasks it says from time to time that it is there."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"hello\n")
        for number in itertools.count():
            server.settimeout(0.1 if number == 0 else 8)
            if number == 1:
                at("worker")
            try:
                server.recv(1024)
            except TimeoutError:
                server.sendall(b"heartbeat\n")


async def hear_worker(reader, writer):
    async for line in reader:
        print(line.decode().strip(), flush=True)


async def serve_workers():
    server = await asyncio.start_server(hear_worker, "127.0.0.1", 0)
    child_of(run_worker, server.sockets[0].getsockname()[1])
    while not os.path.exists(in_folder("worker")):
        await asyncio.sleep(0.02)
    at("main")
    await server.serve_forever()


def worker_without_jobs():
    """Healthy, as It4innovations/hyperqueue#784: a worker has done all its tasks, and goes on without any: it waits for
    the server, and sends a heartbeat every eight seconds."""
    asyncio.run(serve_workers())


PROGRAMS = {
    "exit-joins-pool-manager": exit_joins_pool_manager,
    "transfers-never-done": transfers_never_done,
    "stale-build-lock": stale_build_lock,
    "server-output-not-read": server_output_not_read,
    "graph-server": graph_server,
    "loader-worker-gone": loader_worker_gone,
    "compiles-under-startup-lock": compiles_under_startup_lock,
    "loads-page-by-page": loads_page_by_page,
    "wheel-on-one-core": wheel_on_one_core,
    "build-wheel": build_wheel,
    "polls-for-requests": polls_for_requests,
    "retries-until-limit-resets": retries_until_limit_resets,
    "schema-with-large-enums": schema_with_large_enums,
    "worker-without-jobs": worker_without_jobs,
}

if __name__ == "__main__":
    run(PROGRAMS)
