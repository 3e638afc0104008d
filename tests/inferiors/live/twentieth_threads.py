"""Engines of one process that hang, and healthy ones, twentieth set: `twentieth_threads.py NAME FOLDER`."""

import ctypes
import http.client
import http.server
import itertools
import json
import queue
import threading
import time

from tests.inferiors.live.place import at, run, thread, work_for
from tests.inferiors.live.twentieth_extension import extension

EXTRACT = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)


def storage_of(answer):
    return answer * 2


def future_of_python():
    """As pytorch/pytorch#58382: a thread in C++ completes a future. It has the lock of the future, and takes that of
    the interpreter to look into the answer; the main thread has the one and wants the other."""
    extract = EXTRACT(storage_of)
    print(extension().rpc_sync(extract, 21), flush=True)
    library = extension(ctypes.PyDLL)
    at("main")
    library.rpc_poll(extract, 21)


class Runner:
    """A model that is loaded. It is kept for as long as its last request has said."""

    def __init__(self, model):
        self.model, self.lock, self.users, self.keep_alive = model, threading.Lock(), 0, None


class Request:
    def __init__(self, model, seconds):
        self.model, self.seconds, self.keep_alive, self.done = model, seconds, None, threading.Event()


class Scheduler:
    """There is room for one model. One thread takes the requests, another one what has ended."""

    def __init__(self):
        self.pending, self.events, self.unloaded = queue.Queue(), queue.Queue(), queue.Queue()
        self.lock, self.loaded = threading.Lock(), {}
        thread(self.process_pending)
        thread(self.process_completed)

    def submit(self, request):
        with self.lock:
            runner = self.loaded.get(request.model)
        if runner is None:
            self.pending.put(request)
        else:
            self.use(runner, request)
        return request

    def use(self, runner, request):
        with runner.lock:
            runner.users += 1
            runner.keep_alive = request.keep_alive
        thread(self.generate, runner, request)

    def generate(self, runner, request):
        work_for(request.seconds)
        request.done.set()
        self.events.put(("finished", runner))

    def process_pending(self):
        while True:
            request = self.pending.get()
            while self.loaded and request.model not in self.loaded:
                self.evict(next(iter(self.loaded.values())))
                self.unloaded.get()
            with self.lock:
                runner = self.loaded.setdefault(request.model, Runner(request.model))
            self.use(runner, request)

    def evict(self, runner):
        with runner.lock:
            runner.keep_alive = 0
            if runner.users == 0:
                self.events.put(("expired", runner))

    def process_completed(self):
        while True:
            kind, runner = self.events.get()
            with runner.lock:
                if kind == "finished":
                    runner.users -= 1
                    if runner.users == 0 and runner.keep_alive == 0:
                        self.events.put(("expired", runner))
                elif runner.users == 0:
                    with self.lock:
                        del self.loaded[runner.model]
                    self.unloaded.put(runner.model)


def evicts_a_runner():
    """As ollama/ollama#17408: a model is to be evicted as soon as its request has ended. Another request for it comes
    in between, and says that it is to be kept; who wanted its place waits until it is unloaded."""
    scheduler = Scheduler()
    small = scheduler.submit(Request("a-small-model", 0.01))
    small.done.wait()
    scheduler.submit(Request("an-embedding", 2.0))
    while "an-embedding" not in scheduler.loaded:
        time.sleep(0.01)
    large = scheduler.submit(Request("a-large-model", 0.1))
    while scheduler.loaded["an-embedding"].keep_alive is None:
        time.sleep(0.001)
    scheduler.submit(Request("an-embedding", 0.1)).done.wait()
    while scheduler.loaded["an-embedding"].users:
        time.sleep(0.01)
    at("main")
    large.done.wait()


class Generator:
    """Steps for all requests that there are. Between two of them it looks for new ones."""

    def __init__(self):
        self.requests, self.batch = queue.Queue(), {}
        thread(self.generate)

    def next_request(self):
        try:
            return self.requests.get_nowait()
        except queue.Empty:
            return None

    def generate(self):
        while True:
            request = self.next_request()
            if request is not None:
                answer, tokens = request
                self.batch[answer] = tokens
            for answer in list(self.batch):
                work_for(0.002)
                self.batch[answer] -= 1
                if self.batch[answer] == 0:
                    del self.batch[answer]
                    answer.put("a text")


class Completions(http.server.BaseHTTPRequestHandler):
    generator = None

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = queue.Queue()
        self.generator.requests.put((answer, request["max_tokens"]))
        data = answer.get().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


def ask(port, count):
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/v1/completions", json.dumps({"max_tokens": 16}))
        connection.getresponse().read()
    at("main")


def polls_for_requests():
    """Healthy, as ml-explore/mlx-lm#1500: a server has no requests. Its thread looks for one again and again, without
    any pause, and takes all of a processor."""
    Completions.generator = Generator()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Completions)
    thread(ask, server.server_address[1], 3)
    server.serve_forever()


def hessian_of(batches, width):
    import torch

    hessian = torch.zeros(width, width)
    for number in range(batches):
        rows = torch.sin(torch.arange(256.0 * width).reshape(256, width) * (number + 1))
        hessian += rows.T @ rows
    return hessian / batches + torch.eye(width)


def quantize(weight, hessian):
    import torch

    inverse = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(hessian)), upper=True)
    weight = weight.clone()
    for column in range(weight.shape[1]):
        rounded = torch.round(weight[:, column] * 8) / 8
        error = (weight[:, column] - rounded) / inverse[column, column]
        weight[:, column:] -= error.unsqueeze(1) * inverse[column, column:].unsqueeze(0)
        weight[:, column] = rounded
    return weight


def quantizes_layer_by_layer():
    """Healthy, as ModelCloud/GPTQModel#2700: each layer of a model is quantized with hundreds of texts, which takes an
    hour for the first one. The number that is shown is that of the layers."""
    import torch

    torch.set_num_threads(1)
    for layer in itertools.count():
        for module in range(64):
            if (layer, module) == (0, 2):
                at("main")
            quantize(torch.rand(256, 384), hessian_of(512, 384))
        print(f"layer {layer + 1} of 40", flush=True)


PROGRAMS = {
    "future-of-python": future_of_python,
    "evicts-a-runner": evicts_a_runner,
    "polls-for-requests": polls_for_requests,
    "quantizes-layer-by-layer": quantizes_layer_by_layer,
}

if __name__ == "__main__":
    run(PROGRAMS)
