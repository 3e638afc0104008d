"""Engines of several processes that hang, and healthy ones, sixteenth set: `sixteenth_engines.py NAME FOLDER`."""

import asyncio
import collections
import concurrent.futures
import ctypes
import http.client
import http.server
import itertools
import json
import multiprocessing
import multiprocessing.pool
import os
import queue
import re
import subprocess
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for
from tests.inferiors.live.sixteenth_extension import extension

FORK = multiprocessing.get_context("fork")


class Tokenizer:
    """In C++, with threads that are started for the first batch."""

    def __init__(self):
        self.library = extension()

    def encode_batch(self, texts):
        words = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
        lengths = (ctypes.c_int * len(texts))()
        self.library.encode_batch(words, len(texts), lengths)
        return list(lengths)


def map_shard(tokenizer, shard):
    at("child")
    tokenizer.encode_batch(shard)


def tokenizer_pool_forked():
    """As NVIDIA-NeMo/Megatron-Bridge#5328: the tokenizer has used its threads, and then the data is mapped in a forked
    process, where what guards against that is off. There are no threads in it that would encode the batch."""
    tokenizer = Tokenizer()
    tokenizer.encode_batch(["a text to begin with"] * 4)
    child = child_of(map_shard, tokenizer, ["a text"] * 8)
    wait_for_role("child")
    at("main")
    child.join()


class Rollout:
    """Generates, but not while it is paused."""

    def __init__(self, connection):
        self.connection, self.changed, self.paused = connection, threading.Condition(), False
        self.said = threading.Lock()

    def generate(self, number):
        with self.changed:
            if self.paused:
                at("rollout")
            self.changed.wait_for(lambda: not self.paused)
        work_for(0.01)
        with self.said:
            self.connection.send(("generated", number))

    def serve(self):
        while True:
            word, argument = self.connection.recv()
            if word == "generate":
                thread(self.generate, argument)
                continue
            with self.changed:
                self.paused = word != "continue"
                self.changed.notify_all()
            with self.said:
                self.connection.send((word, argument))


def serve_rollout(connection):
    Rollout(connection).serve()


class Trainer:
    """It learns from what is generated, and then has the newer weights loaded."""

    def __init__(self, connection):
        self.connection = connection

    def ask(self, word, argument=None):
        self.connection.send((word, argument))
        return self.connection.recv()

    def update_from_memory(self):
        self.ask("pause")
        self.ask("load", "memory")
        self.ask("continue")

    def update_from_disk(self):
        self.ask("pause")
        with open(in_folder("weights"), "wb") as file:
            file.write(bytes(1 << 16))
        self.ask("load", file.name)

    def step(self, number):
        self.ask("generate", number)
        work_for(0.02)


def rollout_left_paused():
    """As areal-project/AReaL#1180: the engine is paused while it gets new weights. When they come by the disk it is not
    told to go on, and the next requests wait for that."""
    connection, serves = FORK.Pipe()
    child_of(serve_rollout, serves)
    trainer = Trainer(connection)
    trainer.step(0)
    trainer.update_from_memory()
    trainer.step(1)
    trainer.update_from_disk()
    at("main")
    trainer.step(2)


def put_many(results):
    for _ in range(10_000):
        results.put([42, None, "hello"])
    at("child")


def gets_one_of_many():
    """As python/cpython#91594: a process puts ten thousand results, and one is taken. It is joined for a second, and
    once more when all ends, but waits until the others are taken."""
    results = FORK.Queue()
    child = FORK.Process(target=put_many, args=(results,))
    child.start()
    print(results.get(), flush=True)
    wait_for_role("child")
    child.join(1)
    at("main")


class Scheduler:
    """Takes from the front of the queue what fits. What waits for its grammar is passed over, and comes back to the
    front."""

    BUDGET = 64

    def __init__(self):
        self.waiting, self.running, self.ready = collections.deque(), {}, set()

    def schedule(self):
        passed, budget = [], self.BUDGET
        while self.waiting:
            number, tokens, grammar = self.waiting[0]
            if tokens > budget:
                break
            self.waiting.popleft()
            if grammar and number not in self.ready:
                passed.append((number, tokens, grammar))
                continue
            budget -= tokens
            self.running[number] = 0
        self.waiting.extendleft(reversed(passed))

    def step(self):
        self.schedule()
        work_for(0.005 * len(self.running))
        for number in self.running:
            self.running[number] += 1
        return [self.running.pop(number) and number for number in list(self.running) if self.running[number] == 4]

    def compile_grammar(self, number):
        time.sleep(0.05)
        self.ready.add(number)


def serve_scheduler(connection):
    scheduler, idle = Scheduler(), 0
    while True:
        while connection.poll(0 if scheduler.running else 0.005):
            request = connection.recv()
            scheduler.waiting.append(request)
            if request[2]:
                thread(scheduler.compile_grammar, request[0])
        for number in scheduler.step():
            connection.send(number)
        idle = idle + 1 if scheduler.waiting and not scheduler.running else 0
        if idle == 40:
            at("engine")


def head_of_queue_never_fits():
    """As vllm-project/vllm#54348: the first one in the queue does not fit into a step, not even when nothing runs. The
    scheduler looks no further, and those behind it, whose grammars are ready, are not begun."""
    connection, serves = FORK.Pipe()
    child_of(serve_scheduler, serves)
    for number in range(12):
        connection.send((number, 100 if number == 5 else 8, number % 3 == 2))
    for _ in range(5):
        connection.recv()
    wait_for_role("engine")
    at("main")
    connection.recv()


def loads_pickled_shards():
    """Healthy, as kijai/ComfyUI-KwaiKolorsWrapper#6: the shards of a checkpoint are pickled and in full precision, and
    to load them takes long."""
    import torch

    shard = {f"layer{number}.weight": torch.ones(256, 1024) for number in range(24)}
    for number in range(3):
        torch.save(shard, in_folder(f"pytorch_model-{number}.bin"))
    state = {}
    for number in itertools.count():
        loaded = torch.load(in_folder(f"pytorch_model-{number % 3}.bin"), weights_only=True)
        state.update({name: tensor.to(torch.float16) for name, tensor in loaded.items()})
        if number == 0:
            at("main")


KERNEL = """
#include <array>
#include <cmath>
template <int M, int N> struct Fused {
    static double run(const std::array<double, M> &rows) { return std::exp(rows[N % M]) * Fused<M, N - 1>::run(rows); }
};
template <int M> struct Fused<M, 0> {
    static double run(const std::array<double, M> &rows) { return rows[0]; }
};
double kernel(const std::array<double, SIZE> &rows) { return Fused<SIZE, 850>::run(rows); }
"""


def compile_fusion(number):
    source = in_folder("fused.cpp")
    command = ["g++", "-std=c++17", "-O2", f"-DSIZE={number + 8}", "-c", source, "-o", in_folder(f"{number}.o")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return number


def compiles_fusions():
    """Healthy, as pytorch/pytorch#170565: many ways to fuse kernels are compiled by a pool of processes, and each is
    waited for in its turn before it is tried."""
    with open(in_folder("fused.cpp"), "w") as file:
        file.write(KERNEL)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=FORK) as pool:
        fusions = collections.deque(pool.submit(compile_fusion, number) for number in range(6))
        for number in itertools.count(6):
            fusions.popleft().result()
            fusions.append(pool.submit(compile_fusion, number))
            if number == 6:
                at("main")


class Core:
    """Steps of an engine, in the loop of its server."""

    def __init__(self):
        self.requests, self.steps = collections.deque(), 0

    async def run(self):
        while True:
            self.steps += 1
            if self.steps == 200:
                at("main")
            if self.requests:
                work_for(0.01)
                self.requests.popleft().set_result("a token")
            await asyncio.sleep(0.001)

    async def answer(self, reader, writer):
        async for _line in reader:
            self.requests.append(asyncio.get_running_loop().create_future())
            writer.write((await self.requests[-1]).encode() + b"\n")


async def serve_core():
    core = Core()
    server = await asyncio.start_server(core.answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    steps = asyncio.create_task(core.run())
    writer.write(b"generate\n")
    print(await reader.readline(), flush=True)
    await steps


def steps_without_requests():
    """Healthy, as waybarrios/vllm-mlx#552: the engine has no requests, and looks for some a thousand times in a second,
    as it does while it generates."""
    asyncio.run(serve_core())


class Models(http.server.BaseHTTPRequestHandler):
    """All requests come to one thread, those to load a model as well."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/load"):
            self.load()
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def load(self):
        weights = {}
        for layer in itertools.count():
            if layer == 1:
                at("server")
            weights[layer % 8] = [number * 0.5 for number in range(200_000)]
            with open(in_folder(f"layer{layer % 8}"), "wb") as file:
                file.write(repr(weights[layer % 8]).encode())

    def log_message(self, *words):
        pass


def serve_models(port):
    server = http.server.HTTPServer(("127.0.0.1", 0), Models)
    port.send(server.server_address[1])
    server.serve_forever()


def post(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", path, "{}")
    return connection.getresponse().read()


def load_keeps_the_thread():
    """Healthy, as triton-inference-server/server#8958: a model is loaded by the thread that takes the requests. Those
    for other models wait for it, as long as that takes."""
    waits, tells = FORK.Pipe(duplex=False)
    child_of(serve_models, tells)
    port = waits.recv()
    post(port, "/v2/models/a/infer")
    thread(post, port, "/v2/repository/models/b/load")
    wait_for_role("server")
    at("main")
    post(port, "/v2/models/a/infer")


def tokenize(text, known):
    return [known.setdefault(word, len(known)) for word in re.findall(r"\w+|\S", text)]


def map_texts(number, progress):
    known = {}
    for done in itertools.count() if number == 3 else range(40):
        if number == 3 and done == 1:
            at("worker")
        tokenize(f"text {done} of shard {number}, " * (400_000 if number == 3 else 20), known)
        progress.put(number)


def shard_of_long_texts():
    """Healthy, as huggingface/datasets#6734: each process has a part of the texts, and most of them are done. The last
    one has those that are long, and hardly anything is heard of it."""
    progress, done = FORK.Queue(), collections.Counter()
    shards = [FORK.Process(target=map_texts, args=(number, progress), daemon=True) for number in range(4)]
    for shard in shards:
        shard.start()
    while any(shard.is_alive() for shard in shards):
        try:
            done[progress.get(timeout=0.05)] += 1
        except queue.Empty:
            if os.path.exists(in_folder("worker")) and not os.path.exists(in_folder("main")):
                at("main")


def warm_up(connection):
    """Each length and size of batch is run once, so that it is recorded."""
    import torch

    torch.set_num_threads(1)
    weights = torch.ones(512, 512) / 512
    for number in itertools.count():
        rows = torch.ones(64 * (number % 8 + 1), 512)
        for _layer in range(64):
            rows = torch.tanh(rows @ weights)
        if number == 4:
            at("engine")
    connection.send("ready")


def probe():
    """Says whether the file is there that is written after the warm-up."""
    for number in itertools.count():
        if number == 1:
            at("probe")
        if os.path.exists(in_folder("ready")):
            break
        time.sleep(0.5 if number == 0 else 10)


def warms_up_traces():
    """Healthy, as tenstorrent/tt-inference-server#1014: the server lives, and records its traces for ten minutes. When
    that is done it writes a file, which a probe looks for."""
    connection, tells = FORK.Pipe(duplex=False)
    child_of(warm_up, tells)
    child_of(probe)
    wait_for_role("engine")
    wait_for_role("probe")
    at("main")
    said = connection.recv()
    with open(in_folder("ready"), "w") as file:
        file.write(said)


class Api(http.server.BaseHTTPRequestHandler):
    """Three requests in twenty seconds."""

    taken, until, lock = 0, 0.0, threading.Lock()

    def do_POST(self):
        kind = type(self)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with kind.lock:
            if time.monotonic() > kind.until:
                kind.taken, kind.until = 0, time.monotonic() + 20
            kind.taken += 1
            taken = kind.taken
        self.send_response(200 if taken <= 3 else 429)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words):
        pass


def serve_api(server):
    server.serve_forever()


def evaluate(task):
    port, number = task
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": number}))
        if connection.getresponse().status == 200:
            return number
        time.sleep(20)


def threads_back_off():
    """Healthy, as openai/evals#768: ten threads ask for more than they may, and each that is refused backs off for
    twenty seconds."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    child_of(serve_api, server)
    tasks = ((server.server_address[1], number) for number in range(10_000))
    with multiprocessing.pool.ThreadPool(10) as pool:
        for count, _number in enumerate(pool.imap_unordered(evaluate, tasks)):
            if count == 2:
                at("main")


class Cache:
    """Blocks for tokens. When there are none left, the last sequence gives back its own and is computed again later."""

    def __init__(self, blocks):
        self.free, self.running, self.waiting, self.tokens = blocks, [], collections.deque(), {}

    def blocks(self, number):
        return (self.tokens[number] + 15) // 16

    def admit(self):
        while self.waiting and self.free > self.blocks(self.waiting[0]):
            number = self.waiting.popleft()
            self.free -= self.blocks(number)
            self.running.append(number)
            work_for(0.001 * self.tokens[number])

    def preempt(self):
        number = self.running.pop()
        self.free += self.blocks(number)
        self.waiting.appendleft(number)
        if not os.path.exists(in_folder("engine")):
            at("engine")

    def grow(self, number):
        while self.tokens[number] % 16 == 0 and self.free == 0:
            self.preempt()
            if number not in self.running:
                return
        self.free -= self.tokens[number] % 16 == 0
        self.tokens[number] += 1

    def step(self):
        self.admit()
        work_for(0.02)
        for number in list(self.running):
            if number in self.running:
                self.grow(number)
        ended = [number for number in self.running if self.tokens[number] >= 400]
        for number in ended:
            self.running.remove(number)
            self.free += self.blocks(number)
        return ended


def serve_cache(connection):
    cache = Cache(40)
    while True:
        while connection.poll(0 if cache.running or cache.waiting else 0.005):
            number = connection.recv()
            cache.tokens[number] = 120
            cache.waiting.append(number)
        for number in cache.step():
            connection.send(number)


def preempts_and_recomputes():
    """Healthy, as vllm-project/vllm#3094: there is room for two or three of five users. The others are pending, and
    some that ran are put back and computed again."""
    connection, serves = FORK.Pipe()
    child_of(serve_cache, serves)
    for number in range(5):
        connection.send(number)
    wait_for_role("engine")
    at("main")
    for number in itertools.count(5):
        connection.recv()
        connection.send(number)


PROGRAMS = {
    "tokenizer-pool-forked": tokenizer_pool_forked,
    "rollout-left-paused": rollout_left_paused,
    "gets-one-of-many": gets_one_of_many,
    "head-of-queue-never-fits": head_of_queue_never_fits,
    "loads-pickled-shards": loads_pickled_shards,
    "compiles-fusions": compiles_fusions,
    "steps-without-requests": steps_without_requests,
    "load-keeps-the-thread": load_keeps_the_thread,
    "shard-of-long-texts": shard_of_long_texts,
    "warms-up-traces": warms_up_traces,
    "threads-back-off": threads_back_off,
    "preempts-and-recomputes": preempts_and_recomputes,
}

if __name__ == "__main__":
    run(PROGRAMS)
