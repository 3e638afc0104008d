"""Engines of several processes that hang, and healthy ones, fourteenth set: `fourteenth_engines.py NAME FOLDER`."""

import asyncio
import collections
import concurrent.futures
import contextlib
import http.client
import http.server
import importlib
import io
import itertools
import json
import logging
import logging.handlers
import marshal
import multiprocessing
import os
import pickle
import queue
import re
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from tests.inferiors.live.fourteenth_extension import extension
from tests.inferiors.live.place import at, child_of, in_folder, read_for_ever, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


class ActorA:
    """Has the state from which the other one is restored."""

    def __init__(self, arguments):
        sys.argv = arguments

    def ask(self, other):
        import ray

        at("a")
        return ray.get(other.compute.remote())

    def state(self):
        return {"step": 10}


class ActorB:
    """Has no state of its own when it is started again."""

    def __init__(self, arguments, first, other):
        sys.argv = arguments
        self.state = {"step": 0}
        if os.path.exists(first):
            self.load_checkpoint(other)
        with open(first, "w"):
            pass

    def load_checkpoint(self, other):
        import ray

        at("b")
        self.state = ray.get(other.state.remote())

    def compute(self):
        os._exit(1)


def restarted_actor_asks_back():
    """As ray-project/ray#4604: an actor asks another one and waits. That one dies of it, is started again, and asks the
    first one for its checkpoint, which does one thing at a time."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    a = ray.remote(num_cpus=0)(ActorA).remote(sys.argv)
    b = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(ActorB).remote(sys.argv, in_folder("first"), a)
    answer = a.ask.remote(b)
    at("main")
    ray.get(answer)


class Images:
    """A data set. One image cannot be read, and one batch is large."""

    def __getitem__(self, number):
        if number == 2:
            read_for_ever()
        return bytes(128 << 20 if number == 3 else 1 << 10)


def load(data, indices, results):
    while True:
        number = indices.get()
        results.put((number, data[number]))


class Loader:
    """Workers load batches, and a thread takes each of them and copies it into memory that is pinned. By the same queue
    it is told when that is all."""

    def __init__(self, data, workers):
        self.results, self.data = FORK.Queue(), queue.Queue()
        self.indices = [FORK.Queue() for _ in range(workers)]
        self.workers = [child_of(load, data, indices, self.results) for indices in self.indices]
        self.done = threading.Event()
        self.pin_memory_thread = thread(self.pin_memory)

    def pin_memory(self):
        while True:
            result = self.results.get()
            if result is None or self.done.is_set():
                return
            number, batch = result
            self.data.put((number, bytearray(batch)))

    def load(self, numbers, timeout):
        for number, indices in zip(numbers, itertools.cycle(self.indices)):
            indices.put(number)
        return [self.data.get(timeout=timeout) for _ in numbers]

    def kill_workers(self):
        for worker in self.workers:
            worker.kill()
        for worker in self.workers:
            worker.join()

    def shutdown(self):
        self.done.set()
        self.results.put(None)
        self.pin_memory_thread.join()


def read_by(task):
    with open(f"/proc/self/task/{task}/io") as file:
        return int(next(line.split()[1] for line in file if line.startswith("rchar")))


def killed_with_half_a_batch():
    """As pytorch/pytorch#21554: a worker hangs, there is a timeout, and all workers are killed by hand. The thread that
    pins memory is in the middle of what another worker was sending, so that it never comes to the word that ends it,
    and the main thread joins it."""
    loader = Loader(Images(), 2)
    loader.load([0, 1], timeout=10)
    task = loader.pin_memory_thread.native_id
    before = read_by(task)
    for number, indices in zip([2, 3], loader.indices):
        indices.put(number)
    while read_by(task) < before + (1 << 20):  # the second one is sending
        pass
    loader.kill_workers()
    at("main")
    loader.shutdown()


def allocate_often(library):
    while True:
        library.cache_allocate()


def begin(library):
    library.cache_release(library.cache_allocate())


def allocator_locked_at_fork():
    """As python/cpython#90622: the workers of the executor are forked from a process with threads. One of them has the
    lock of the allocator, and in the worker it has it for ever."""
    library = extension()
    thread(allocate_often, library)
    while library.cache_refills() < 3:
        time.sleep(0.01)
    time.sleep(0.05)
    with ProcessPoolExecutor(1, FORK, begin, (library,)) as executor:
        answer = executor.submit(work_for, 0.1)
        at("worker", next(iter(executor._processes)))
        at("main")
        answer.result()


TOOLCHAIN = """
import time
time.sleep(3)  # looks for compilers
NAMES = ("gcc", "g++")
"""


def spawn(command):
    """Without exec for a while: where the output goes is set up in the child first."""
    child = os.fork()
    if child == 0:
        at("child")
        toolchain = importlib.import_module("toolchain")
        os.execvp("echo", ["echo", *toolchain.NAMES, *command])
    return os.waitpid(child, 0)


def forked_during_import():
    """As SCons/scons#2050: of several jobs one imports a module, with the lock of that import, when another one forks.
    The child imports too and waits for a thread that it does not have."""
    with open(in_folder("toolchain.py"), "w") as file:
        file.write(TOOLCHAIN)
    sys.path.insert(0, sys.argv[2])
    with ThreadPoolExecutor(2) as jobs:
        jobs.submit(importlib.import_module, "toolchain")
        time.sleep(0.5)
        job = jobs.submit(spawn, ["-c", "one.c"])
        wait_for_role("child")
        at("main")
        job.result()


def embed(shard):
    import torch

    at(f"worker{shard}")
    rows = torch.ones(2048, 512)
    return float(torch.nn.functional.layer_norm(rows * shard, (512,)).sum())


def tensors_in_forked_workers():
    """As huggingface/datasets#5094: the main process has computed with tensors by several threads before the data set
    is mapped. Each of the forked workers takes over the pool of threads, and none of its threads."""
    import torch

    torch.set_num_threads(2)
    torch.nn.functional.layer_norm(torch.ones(2048, 512), (512,)).sum()
    with FORK.Pool(2) as pool:
        result = pool.map_async(embed, range(2), chunksize=1)
        wait_for_role("worker0")
        wait_for_role("worker1")
        at("main")
        result.get()


def serve_engine(address):
    import zmq

    context = zmq.Context()
    requests, answers = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    requests.connect(address + "-requests")
    answers.connect(address + "-answers")
    while True:
        request = requests.recv_pyobj()
        work_for(0.01)
        answers.send_pyobj({"id": request["id"], "tokens": [1, 2, 3]})


class EngineProxy:
    """Of an engine in a process that somebody else has started. Its end is a future, which a thread makes known."""

    def __init__(self):
        import zmq

        address = "ipc://" + in_folder("engine")
        context = zmq.Context()
        self.requests, self.answers = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        self.status = context.socket(zmq.PULL)
        self.requests.bind(address + "-requests")
        self.answers.bind(address + "-answers")
        self.status.bind(address + "-status")
        self.engine = child_of(serve_engine, address)
        self.results, self.ended = {}, concurrent.futures.Future()
        self.dispatcher = thread(self.dispatch)
        self.manager = thread(self.manage)

    def dispatch(self):
        while True:
            answer = self.answers.recv_pyobj()
            if answer is None:
                return
            self.results[answer["id"]].set_result(answer)

    def manage(self):
        self.ended.set_result(self.status.recv_pyobj())

    def submit(self, number):
        self.results[number] = concurrent.futures.Future()
        self.requests.send_pyobj({"id": number})
        return self.results[number]

    def shutdown(self):
        """The engine is asked to end if it is there, its end is waited for, then that of the threads."""
        import zmq

        with contextlib.suppress(zmq.Again):
            self.requests.send_pyobj(None, zmq.NOBLOCK)
        self.ended.result()
        self.dispatcher.join()
        self.manager.join()


def proxy_of_dead_engine():
    """As NVIDIA/TensorRT-LLM#16312: the engine's process was killed. Who shuts down waits for its end to be told, and
    there are threads that receive from it."""
    proxy = EngineProxy()
    for number in range(3):
        proxy.submit(number).result()
    os.kill(proxy.engine.pid, signal.SIGKILL)
    proxy.engine.join()
    time.sleep(0.2)
    at("main")
    proxy.shutdown()


def log_queue_at_exit():
    """As siliconcompiler/siliconcompiler#5246: what is logged goes through a queue of multiprocessing. Its reader has
    ended, more is logged than a pipe holds, and at exit the thread that feeds the pipe is joined."""
    records = FORK.Queue()
    log = logging.getLogger("flow")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(logging.handlers.QueueHandler(records))
    listener = logging.handlers.QueueListener(records, logging.StreamHandler(sys.stdout))
    listener.start()
    log.info("step %d", 0)
    listener.stop()
    for step in range(1000):
        log.info("step %d: %s", step, "x" * 200)
    at("main")


def ask_server(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(4):
        if number == 3:
            tell("idle")
            wait_for_role("killed")
            at("client")
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "id": number}))
        connection.getresponse().read()


def tell(word):
    with open(in_folder(word), "w"):
        pass


class Front:
    """Takes requests by HTTP, gives them to the engine, and answers with what comes from it."""

    def __init__(self, requests, answers):
        self.requests, self.answers, self.waiting = requests, answers, {}

    async def take_answers(self):
        while True:
            answer = await self.answers.recv_pyobj()
            self.waiting.pop(answer["id"]).set_result(answer)

    async def respond(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(re.search(rb"Content-Length: (\d+)", head)[1])
                answer = await self.generate(json.loads(await reader.readexactly(length)))
                body = json.dumps(answer).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    async def generate(self, request):
        answer = self.waiting[request["id"]] = asyncio.get_running_loop().create_future()
        await self.requests.send_pyobj(request)
        return await answer


async def until_told(word):
    while not os.path.exists(in_folder(word)):
        await asyncio.sleep(0.02)


async def serve_front():
    import zmq.asyncio

    address = "ipc://" + in_folder("engine")
    context = zmq.asyncio.Context()
    requests, answers = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    requests.bind(address + "-requests")
    answers.bind(address + "-answers")
    front = Front(requests, answers)
    listens = socket.create_server(("127.0.0.1", 0))
    engine = child_of(serve_engine, address)
    child_of(ask_server, listens.getsockname()[1])
    server = await asyncio.start_server(front.respond, sock=listens)
    takes = asyncio.create_task(front.take_answers())
    await until_told("idle")
    os.kill(engine.pid, signal.SIGKILL)
    await asyncio.sleep(0.1)
    tell("killed")
    await until_told("client")
    await asyncio.sleep(0.3)
    at("main")
    async with server:
        await takes


def engine_core_killed():
    """As vllm-project/vllm#21728: the engine's process has been killed, which the server of the API does not look at.
    It takes requests, and waits for answers."""
    asyncio.run(serve_front())


class TreeCache:
    """What has been computed for prompts, by their beginnings. The least used leaf is thrown away first."""

    def __init__(self, nodes):
        self.nodes = {number: [number % 977, max(number - 1 - number % 7, 0)] for number in range(nodes)}

    def leaves(self):
        parents = {parent for _, parent in self.nodes.values()}
        return [number for number in self.nodes if number not in parents]

    def evict(self, number):
        for _ in range(number):
            leaf = min(self.leaves(), key=lambda node: self.nodes[node][0])
            del self.nodes[leaf]


def serve_evictions(address):
    import zmq

    context = zmq.Context()
    requests, answers = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    requests.connect(address + "-requests")
    answers.connect(address + "-answers")
    while True:
        request = requests.recv_pyobj()
        cache = TreeCache(request["tokens"])
        if request["id"] == 1:
            at("engine")
        cache.evict(request["tokens"] // 2)
        answers.send_pyobj(request["id"])


def evicts_for_minutes():
    """Healthy, as sgl-project/sglang#30314: a long prompt needs room, and the scheduler looks for the least used leaf
    again for each that it throws away, for minutes. It does nothing else meanwhile."""
    import zmq

    address = "ipc://" + in_folder("engine")
    context = zmq.Context()
    requests, answers = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    requests.bind(address + "-requests")
    answers.bind(address + "-answers")
    child_of(serve_evictions, address)
    for number in itertools.count():
        requests.send_pyobj({"id": number, "tokens": 100_000 if number else 100})
        if number == 1:
            wait_for_role("engine")
            at("main")
        answers.recv_pyobj()


def tokenize(line, vocabulary):
    return [vocabulary.setdefault(piece, len(vocabulary)) for piece in re.findall(r"\w+|\W", line)]


def tokenizes_by_slices():
    """Healthy, as huggingface/transformers#1292: nothing is shown while the whole file is tokenized, and then blocks
    are cut off from the front of a list, which is copied for each of them."""
    lines = [f"the {number}th article, of {number * 7 % 1013} words." for number in range(20_000)]
    for number in itertools.count():
        if number == 1:
            at("main")
        vocabulary, tokens, examples = {}, [], []
        for line in lines:
            tokens += tokenize(line, vocabulary)
        while len(tokens) >= 512:
            examples.append(tokens[:512])
            tokens = tokens[512:]
        with open(in_folder("cached_lm_512"), "wb") as file:
            pickle.dump(examples, file)


class Hub(http.server.BaseHTTPRequestHandler):
    """A server of models that gives a part, and has a rest before the next one."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 30))
        self.end_headers()
        while True:
            self.wfile.write(os.urandom(1 << 16))
            time.sleep(1.5)


def serve_hub(server):
    server.serve_forever()


def download_pauses():
    """Healthy, as huggingface/huggingface_hub#4528: a gigabyte takes twenty minutes, with pauses."""
    import requests
    from tqdm import tqdm

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    child_of(serve_hub, server)
    session = requests.Session()
    session.trust_env = False
    answer = session.get(f"http://127.0.0.1:{server.server_address[1]}/resolve/main/model.safetensors", stream=True)
    bar = tqdm(total=1 << 30, unit="B", unit_scale=True)
    with open(in_folder("model.incomplete"), "wb") as file:
        for number, chunk in enumerate(answer.iter_content(1 << 15)):
            file.write(chunk)
            bar.update(len(chunk))
            if number == 2:
                at("main")


def spin_engine(address):
    """It looks for requests, and whether its device has something, without a rest."""
    import zmq

    requests = zmq.Context().socket(zmq.PULL)
    requests.connect(address)
    poller = zmq.Poller()
    poller.register(requests, zmq.POLLIN)
    for number in itertools.count():
        if number == 1000:
            at("engine")
        for ready, _ in poller.poll(0):
            ready.recv_pyobj()
            work_for(0.05)


async def answer_health(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    writer.close()


async def serve_health():
    server = await asyncio.start_server(answer_health, "127.0.0.1", 0)
    at("main")
    await server.serve_forever()


def engine_core_spins():
    """Healthy, as magiccodingman/vllm-radiance#12: there are no requests, and one core is busy all the time."""
    import zmq

    requests = zmq.Context().socket(zmq.PUSH)
    requests.bind("ipc://" + in_folder("requests"))
    child_of(spin_engine, "ipc://" + in_folder("requests"))
    wait_for_role("engine")
    asyncio.run(serve_health())


class Runner:
    """Loads a model from a disk in the network, and says how far it is when asked."""

    def __init__(self, disk):
        self.disk, self.loaded = disk, 0

    def load(self):
        with open(self.disk, "rb", buffering=0) as file:
            for tensor in itertools.count():
                buffer = bytearray(1 << 19)
                view = memoryview(buffer)
                while view:
                    view = view[file.readinto(view) :]
                self.loaded += len(buffer)
                if tensor == 1:
                    at("runner")

    def serve(self, server):
        runner = self

        class Health(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps({"status": "loading model", "progress": runner.loaded / (80 << 30)}).encode()
                self.send_response(503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        server.RequestHandlerClass = Health
        thread(server.serve_forever)
        self.load()


def feed_disk(write):
    while True:
        os.write(write, bytes(1 << 15))
        time.sleep(0.05)


def run_runner(server, disk):
    Runner(disk).serve(server)


def tensors_from_network_disk():
    """Healthy, as ollama/ollama#5826: the model is loaded by a runner from a disk that gives a percent of it in ten
    seconds; the server asks the runner how far it is."""
    disk, write = os.pipe()
    child_of(feed_disk, write)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    child_of(run_runner, server, disk)
    wait_for_role("runner")
    port = server.server_address[1]
    server.socket.close()
    at("main")
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/health")
        print("model load", connection.getresponse().read(), flush=True)
        connection.close()
        time.sleep(0.25)


def make_shard(path):
    with tarfile.open(path, "w") as shard:
        for number in range(2000):
            for kind, content in (("jpg", os.urandom(2000)), ("json", b'{"caption": "a thing"}')):
                member = tarfile.TarInfo(f"{number:06}.{kind}")
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))


def generate_examples(path):
    example = {}
    with tarfile.open(path, "r|") as shard:
        for member in shard:
            name, kind = member.name.rsplit(".", 1)
            if example.get("name") not in (None, name):
                yield example
                example = {}
            content = shard.extractfile(member).read()
            example.update({"name": name, kind: json.loads(content) if kind == "json" else content})
    yield example


def generates_split():
    """Healthy, as huggingface/datasets#7080: all shards are read and written once more, before the data can be used."""
    path = in_folder("shard.tar")
    make_shard(path)
    for number in itertools.count():
        with open(in_folder("train.arrow"), "wb") as file:
            for example in generate_examples(path):
                pickle.dump(example, file)
        if number == 0:
            at("main")


def pack(weight, scales):
    """Eight numbers of four bits into each word, column by column, on one core."""
    import torch

    columns = []
    for column in range(weight.shape[1]):
        columns.append(torch.round(weight[:, column] / scales[column]).to(torch.int32)[:, None])
    numbers = torch.cat(columns, 1).t().contiguous().numpy()
    words = numbers[::8].copy()
    for row in range(words.shape[0]):
        for bit in range(8):
            words[row] |= (numbers[row * 8 + bit] & 15) << (4 * bit)
    return words


def packs_layers():
    """Healthy, as AutoGPTQ/AutoGPTQ#458: the numbers of all layers are packed into words on the processor, four minutes
    for each layer."""
    import torch

    torch.set_num_threads(1)
    for layer in itertools.count():
        if layer == 1:
            at("main")
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            print(f"Packing model.layers.{layer}.self_attn.{name}", flush=True)
            pack(torch.rand(1024, 1024) * 15, torch.ones(1024))


def waits_for_next_checkpoint():
    """Healthy, as BichenWuUCB/SqueezeSeg#28: what evaluates goes on for as long as there is training, and looks for a
    new checkpoint once a minute."""
    seen = collections.Counter()
    with open(in_folder("model.ckpt-0"), "wb") as file:
        file.write(bytes(1 << 16))
    while True:
        for name in sorted(os.listdir(sys.argv[2])):
            if "ckpt" in name and not seen[name]:
                seen[name] += 1
                work_for(0.3)
        print("Wait 60s for new checkpoints to be saved ...", flush=True)
        at("main")
        time.sleep(60)


KERNEL = """
#include <array>
#include <cmath>
#include <map>
#include <string>
template <int M, int N> struct Gemm {
    static double run(const std::array<double, M> &rows) { return std::sqrt(rows[M / 2]) + Gemm<M, N - 1>::run(rows); }
};
template <int M> struct Gemm<M, 0> {
    static double run(const std::array<double, M> &rows) { return rows[0]; }
};
double kernel(std::map<std::string, double> &sizes)
{
    return Gemm<SIZE, 200>::run(std::array<double, SIZE>{sizes["m"]});
}
"""


def compile_kernel(size):
    source = in_folder("gemm.cpp")
    command = ["g++", "-std=c++17", "-O2", f"-DSIZE={size}", "-c", source, "-o", in_folder(f"gemm{size}.o")]
    return subprocess.run(command, check=True, capture_output=True).returncode


def compiles_kernels_at_start():
    """Healthy, as sgl-project/sglang#29170: kernels of all sizes are compiled before the server takes requests, at each
    start."""
    with open(in_folder("gemm.cpp"), "w") as file:
        file.write(KERNEL)
    with ThreadPoolExecutor(2) as compilers:
        compile_kernel(1)
        at("main")
        for first in itertools.count(2, 16):
            list(compilers.map(compile_kernel, range(first, first + 16)))


def graph_source(number):
    lines = [f"    buf{step} = [value * {step + number} for value in rows]" for step in range(60)]
    return "\n".join(["def call(rows):", *lines, "    return buf59", ""])


def load_graphs(ready):
    """From the cache: each of the graphs is found by its name, its code read, and run once."""
    for number in range(50):
        with open(in_folder(f"graph{number}"), "wb") as file:
            pickle.dump({"key": number, "code": graph_source(number), "guards": list(range(5000))}, file)
    for number in itertools.count():
        with open(in_folder(f"graph{number % 50}"), "rb") as file:
            graph = pickle.load(file)
        names = {}
        exec(marshal.loads(marshal.dumps(compile(graph["code"], f"<graph {number}>", "exec"))), names)
        names["call"](range(50))
        if number == 10:
            at("engine")
    ready.send("ready")


def loads_compiled_graphs():
    """Healthy, as vllm-project/vllm#20342: there are many compiled graphs in the cache for each shape, and the engine
    loads all of them; the server waits for its word."""
    waits, ready = FORK.Pipe(duplex=False)
    child_of(load_graphs, ready)
    wait_for_role("engine")
    at("main")
    while not waits.poll(10):
        print("waiting for the engine core to start", flush=True)


PROGRAMS = {
    "restarted-actor-asks-back": restarted_actor_asks_back,
    "killed-with-half-a-batch": killed_with_half_a_batch,
    "allocator-locked-at-fork": allocator_locked_at_fork,
    "forked-during-import": forked_during_import,
    "tensors-in-forked-workers": tensors_in_forked_workers,
    "proxy-of-dead-engine": proxy_of_dead_engine,
    "log-queue-at-exit": log_queue_at_exit,
    "engine-core-killed": engine_core_killed,
    "evicts-for-minutes": evicts_for_minutes,
    "tokenizes-by-slices": tokenizes_by_slices,
    "download-pauses": download_pauses,
    "engine-core-spins": engine_core_spins,
    "tensors-from-network-disk": tensors_from_network_disk,
    "generates-split": generates_split,
    "packs-layers": packs_layers,
    "waits-for-next-checkpoint": waits_for_next_checkpoint,
    "compiles-kernels-at-start": compiles_kernels_at_start,
    "loads-compiled-graphs": loads_compiled_graphs,
}

if __name__ == "__main__":
    run(PROGRAMS)
