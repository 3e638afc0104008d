"""Engines of several processes that hang, and healthy ones, twenty-second set: `twenty_second_engines.py NAME`."""

import fcntl
import hashlib
import http.client
import http.server
import itertools
import json
import multiprocessing
import os
import queue
import random
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.inferiors.live.place import at, child_of, in_folder, run, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def send_load(number, requests, phase, barrier):
    """Of one process that sends requests while a stage lasts."""
    for stage in itertools.count():
        phase.wait()
        while phase.is_set():
            try:
                request = requests[number].get(timeout=0.05)
            except queue.Empty:
                continue
            work_for(0.001 * len(request["prompt"]))
        if stage == 1 and number == 0:
            at("worker0")
        barrier.wait()


class LoadGenerator:
    """Stages, each of which has its rate of requests."""

    def __init__(self, count):
        self.phase, self.barrier = FORK.Event(), FORK.Barrier(count + 1)
        self.requests = [FORK.Queue() for _ in range(count)]
        self.workers = [child_of(send_load, number, self.requests, self.phase, self.barrier) for number in range(count)]

    def run_stage(self, requests, seconds):
        for number, request in enumerate(requests):
            self.requests[number % len(self.requests)].put(request)
        self.phase.set()
        until = time.monotonic() + seconds
        while time.monotonic() < until and all(worker.is_alive() for worker in self.workers):
            time.sleep(0.02)
        self.phase.clear()
        if len(requests) > 8:
            at("main")
        self.barrier.wait()


def stage_barrier():
    """As kubernetes-sigs/inference-perf#608: a worker ends by an error. The stage is ended for that, and whoever is
    left meets in a barrier in which all workers are counted."""
    generator = LoadGenerator(2)
    generator.run_stage([{"prompt": "hello"}] * 8, 0.5)
    generator.run_stage([{"prompt": "hello"}, {"text": "hello"}] * 5, 5)


def run_operators(names, results):
    operators = {"add": lambda value: value + value, "multiply": lambda value: value * value}
    for name in names:
        results.put((name, operators[name](7)))


def collects_results():
    """As flagos-ai/FlagGems#5358: each worker ends by an error before it has sent all. The main process looks for what
    comes, a second at a time, until it has as many results as there are operators."""
    results = FORK.Queue()
    names = [["add", "multiply", "softmax", "add"], ["multiply", "layer_norm", "multiply"]]
    workers = [child_of(run_operators, some, results) for some in names]
    collected = {}
    for waited in itertools.count():
        if len(collected) >= sum(map(len, names)):
            break
        try:
            name, value = results.get(timeout=1)
            collected[len(collected)] = (name, value)
        except queue.Empty:
            if waited == 4:
                at("main")
    for worker in workers:
        worker.join()


class LockFile:
    """Of an instance that may run once."""

    def __init__(self, path):
        self.file = open(path, "a+")  # noqa: SIM115 as long as the lock is
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def close(self):
        self.file.close()


def report_usage(numbers):
    at("child")
    while True:
        with open(in_folder("usage"), "a") as file:
            file.write(f"{numbers.get()}\n")


def instance_lock():
    """As zopefoundation/zc.lockfile#8: a lock is given up by closing its file. A process that was forked meanwhile has
    the file as well, and so the lock stays; it is wanted again."""
    lock, numbers = LockFile(in_folder("instance.lock")), FORK.Queue()
    child_of(report_usage, numbers)
    wait_for_role("child")
    for number in range(3):
        numbers.put(number)
    lock.close()
    at("main")
    LockFile(in_folder("instance.lock")).close()


class Actors:
    """Of a worker. Their methods are run by its pool."""

    def __init__(self):
        self.pool, self.offset = ThreadPoolExecutor(1), 0

    def now(self):
        return int(time.time()) + self.offset

    def now_of_the_other(self):
        return self.pool.submit(self.now).result()

    def call(self, name):
        return self.pool.submit(getattr(self, name)).result()


def serve_actors(address):
    import zmq

    server, actors = zmq.Context().socket(zmq.REP), Actors()
    server.bind(address)
    while True:
        name = server.recv_string()
        if name == "now_of_the_other":
            at("worker")
        server.send_string(str(actors.call(name)))


def actor_asks_actor():
    """As dask/distributed#4224: two actors are on the same worker, which has one thread for them. One of them calls the
    other and waits for its answer, in that thread."""
    address = f"ipc://{in_folder('worker.socket')}"
    child_of(serve_actors, address)
    import zmq

    client = zmq.Context().socket(zmq.REQ)
    client.connect(address)
    for name in ("now", "now", "now_of_the_other"):
        if name == "now_of_the_other":
            at("main")
        client.send_string(name)
        client.recv_string()


class Deployment:
    """Of a model, on one accelerator."""

    def __init__(self, arguments, role):
        sys.argv = list(arguments)
        self.role = role

    def begin(self):
        at(self.role)
        return os.getpid()

    def answer(self, prompt):
        return prompt.upper()


def engine_on_two():
    """As vllm-project/vllm#1058: two models have an accelerator each. The engine of the third one wants two of them,
    and one is left; it waits until they are there."""
    import ray
    from ray.util.placement_group import placement_group

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, resources={"accelerator": 3})
    remote = ray.remote(num_cpus=0, resources={"accelerator": 1})(Deployment)
    deployments = [remote.remote(sys.argv, role) for role in "ab"]
    ray.get([deployment.begin.remote() for deployment in deployments])
    ray.get([deployment.answer.remote("hello") for deployment in deployments])
    group = placement_group([{"accelerator": 1}] * 2)
    at("main")
    ray.get(group.ready())


class Limited(http.server.BaseHTTPRequestHandler):
    """A server that answers one request in a while, and tells the others to come later."""

    protocol_version = "HTTP/1.1"
    next_time = 0.0

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        late = time.monotonic() < Limited.next_time
        if not late:
            Limited.next_time = time.monotonic() + 2.0
        body = b"{}"
        self.send_response(429 if late else 200)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def serve_limited(server):
    at("server")
    server.serve_forever()


def creates_runs():
    """Healthy, as PrefectHQ/prefect#4852: there are too many requests, and the server says so. The client sleeps for a
    while, a part of which is drawn, and asks again."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Limited)
    child_of(serve_limited, server)
    wait_for_role("server")
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    for done in itertools.count():
        if done == 1:
            at("main")
        for attempt in itertools.count():
            connection.request("POST", "/runs", json.dumps({"run": done}))
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                break
            time.sleep(0.3 + random.uniform(0, 0.2 * 2 ** min(attempt, 2)))
        with open(in_folder("runs"), "w") as file:
            file.write(f"{done}\n")


def generate_texts(listener):
    """A backend with one thread, which computes a text before it looks at the next connection."""
    at("backend")
    while True:
        connection = listener.accept()[0]
        if connection.recv(64) == b"generate":
            for number in itertools.count():
                text = hashlib.sha256(str(number).encode() * 5000).hexdigest()
                with open(in_folder("text"), "w") as file:
                    file.write(text)
        connection.sendall(b"alive")
        connection.close()


def probes_its_backend():
    """Healthy, as unslothai/unsloth#8990: a backend computes a long text, and does not answer whether it is alive. The
    watchdog asks again and again, and lets it go on as long as there is a request."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    address = listener.getsockname()
    child_of(generate_texts, listener)
    wait_for_role("backend")
    request = socket.create_connection(address)
    request.sendall(b"generate")
    for number in itertools.count():
        if number == 1:
            at("main")
        with socket.create_connection(address) as probe:
            probe.settimeout(1.0)
            probe.sendall(b"probe")
            try:
                probe.recv(64)
            except socket.timeout:
                print(f"no answer to probe {number}, and a request is there", flush=True)
        time.sleep(0.5)


class ItemService(http.server.BaseHTTPRequestHandler):
    """Of another team."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.8)
        body = json.dumps({"path": self.path}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def serve_items(server):
    at("service")
    server.serve_forever()


def handle_requests(listener, port):
    """A synchronous worker: one request at a time, for each of which the service is asked."""
    service = http.client.HTTPConnection("127.0.0.1", port)
    for number in itertools.count():
        if number == 1:
            at("worker")
        connection = listener.accept()[0]
        connection.recv(1024)
        service.request("GET", f"/items/{number}")
        connection.sendall(service.getresponse().read())
        connection.close()


def asks_a_service():
    """Healthy, as benoitc/gunicorn#3432: workers do what they do by another service, which is slow. Requests wait for
    them, and each is answered at last."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ItemService)
    child_of(serve_items, server)
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(handle_requests, listener, server.server_address[1])
    for number in itertools.count():
        if number == 2:
            at("main")
        with socket.create_connection(listener.getsockname()) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            client.recv(1024)


def capture_graphs(number, ready, barrier):
    """Of a worker: the model is run once for each size of a batch, and what was run is kept."""
    import torch

    torch.set_num_threads(1)
    model, graphs = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128)), {}
    for size in itertools.cycle(range(1, 257)):
        for _ in range(3):
            output = model(torch.ones(size, 128))
        graphs[size] = torch.jit.trace(model, torch.ones(size, 128)) if size % 32 == 0 else output
        barrier.wait()
        if size == 8 and not os.path.exists(in_folder(f"worker{number}")):
            at(f"worker{number}")
    ready.send(len(graphs))


def captures_graphs():
    """Healthy, as vllm-project/vllm#16716: each worker captures a graph for each of many sizes, and they meet after
    each. The engine waits until they are ready, which takes long."""
    barrier, ends = FORK.Barrier(2), []
    for number in range(2):
        end, other = FORK.Pipe(duplex=False)
        child_of(capture_graphs, number, other, barrier)
        ends.append(end)
    at("main")
    for end in ends:
        end.recv()


SUMMARY = """
import hashlib, sys
for number in range(400000):
    mark = hashlib.sha256(b"%d" % number).hexdigest()
print(sys.argv[1], mark)
"""


def watch_homes(path):
    """Of the watcher: each cycle makes a summary of each home, by a process."""
    with open(path, "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for cycle in itertools.count():
            lock.seek(0)
            lock.truncate()
            lock.write(f"{os.getpid()} {cycle}\n")
            lock.flush()
            for home in range(5):
                if cycle == 0 and home == 1:
                    at("watcher")
                words = [sys.executable, "-c", SUMMARY, f"home{home}"]
                summary = subprocess.run(words, check=True, capture_output=True).stdout
                with open(in_folder(f"home{home}"), "wb") as file:
                    file.write(summary)


def watches_homes():
    """Healthy, as kunchenguid/firstmate#4316: a watcher has its lock, and its cycle takes longer than it should on a
    busy machine. Who guards it tries to get the lock now and then, and sees that it is taken."""
    path = in_folder("watcher.lock")
    child_of(watch_homes, path)
    wait_for_role("watcher")
    for number in itertools.count():
        if number == 2:
            at("main")
        with open(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                print("the lock is held by", file.read().strip(), flush=True)
        time.sleep(0.7)


PROGRAMS = {
    "stage-barrier": stage_barrier,
    "collects-results": collects_results,
    "instance-lock": instance_lock,
    "actor-asks-actor": actor_asks_actor,
    "engine-on-two": engine_on_two,
    "creates-runs": creates_runs,
    "probes-its-backend": probes_its_backend,
    "asks-a-service": asks_a_service,
    "captures-graphs": captures_graphs,
    "watches-homes": watches_homes,
}

if __name__ == "__main__":
    run(PROGRAMS)
