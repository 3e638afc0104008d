"""Engines of several processes that hang, and healthy ones, twentieth set: `twentieth_engines.py NAME FOLDER`."""

import asyncio
import collections
import concurrent.futures
import fcntl
import hashlib
import http.client
import http.server
import itertools
import json
import mmap
import multiprocessing
import os
import pickle
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")
RANK = int(os.environ.get("RANK", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))


def cluster(accelerators):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, resources={"accelerator": accelerators})
    return ray


class HttpServer:
    """Of an engine, as an actor. What is sent while it is paused goes on when it is resumed."""

    SLOTS = 8

    def __init__(self, arguments):
        sys.argv = list(arguments)
        self.running, self.active = asyncio.Event(), 0
        self.running.set()

    async def generate(self, tokens):
        self.active += 1
        if not self.running.is_set() and self.active == self.SLOTS:
            at("server")
        for _ in range(tokens):
            await self.running.wait()
            await asyncio.sleep(0.01)
        self.active -= 1
        return tokens

    async def pause_generation(self):
        self.running.clear()

    async def update_weights(self, version):
        await asyncio.sleep(0.05)
        return version

    async def resume_generation(self):
        self.running.set()


def weight_update_of_a_server():
    """As verl-project/verl#7990: an actor does so many calls at once, whatever they are. More texts are asked for than
    that while it is paused, and the calls that would let it go on come after them."""
    ray = cluster(1)
    remote = ray.remote(num_cpus=0, max_concurrency=HttpServer.SLOTS)(HttpServer)
    server = remote.remote(sys.argv)
    for version in range(2):
        rollouts = [server.generate.remote(20) for _ in range(4 if version == 0 else 16)]
        if version == 0:
            ray.get(rollouts)
        ray.get(server.pause_generation.remote())
        if version == 1:
            rollouts += [server.generate.remote(20) for _ in range(16)]
            wait_for_role("server")
            at("main")
        ray.get(server.update_weights.remote(version))
        ray.get(server.resume_generation.remote())
        ray.get(rollouts)


class Tokenizer:
    """Its batches are shared by a few threads, which are made when they are first needed."""

    def __init__(self, threads=2):
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)

    def encode(self, text):
        return [hash(word) % 50_000 for word in text.split()]

    def encode_batch(self, texts):
        return list(self.pool.map(self.encode, texts))


class Texts:
    """A dataset whose items are encoded when they are wanted."""

    def __init__(self, tokenizer, texts):
        self.tokenizer, self.texts = tokenizer, texts

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, number):
        if not os.path.exists(in_folder("worker")):
            at("worker")
        return len(self.tokenizer.encode_batch([self.texts[number], "an answer"])[0])


def tokenizer_in_loader():
    """As huggingface/tokenizers#258: a tokenizer has been used, and then a worker that loads data is forked. In the
    worker it shares its batches among threads that are not there."""
    import torch.utils.data

    texts = [f"a question, number {number}" for number in range(64)]
    tokenizer = Tokenizer()
    print(max(len(tokens) for tokens in tokenizer.encode_batch(texts)), flush=True)
    loader = torch.utils.data.DataLoader(
        Texts(tokenizer, texts), batch_size=4, num_workers=1, multiprocessing_context="fork"
    )
    batches = iter(loader)
    wait_for_role("worker")
    at("main")
    next(batches)


class MessageQueue:
    """A ring of blocks in shared memory. A reader looks at its block for a while, and then waits for a notice."""

    BLOCKS, SIZE, BUSY = 4, 4096, 0.2
    IDLE = BLOCKS * (SIZE + 1)

    def __init__(self, name):
        self.memory, self.current, self.notices = mmap.mmap(-1, self.IDLE + 1), 0, None
        self.address = f"ipc://{in_folder(name)}"

    def open(self, kind):
        import zmq

        notices = zmq.Context.instance().socket(kind)
        if kind == zmq.PUB:
            notices.setsockopt(zmq.SNDHWM, 1)
            notices.bind(self.address)
        else:
            notices.setsockopt(zmq.CONFLATE, 1)
            notices.setsockopt(zmq.RECONNECT_IVL, 1000)
            notices.setsockopt(zmq.SUBSCRIBE, b"")
            notices.connect(self.address)
        return notices

    def place(self):
        return self.current * (self.SIZE + 1)

    def enqueue(self, message):
        import zmq

        place = self.place()
        while self.memory[place]:
            time.sleep(0.0005)
        data = pickle.dumps(message)
        self.memory[place + 1 : place + 1 + len(data)] = data
        self.memory[place] = 1
        self.current = (self.current + 1) % self.BLOCKS
        if self.memory[self.IDLE]:
            self.notices = self.notices or self.open(zmq.PUB)
            self.notices.send(b"")

    def dequeue(self, role):
        place, until = self.place(), time.monotonic() + self.BUSY
        while not self.memory[place]:
            if time.monotonic() > until:
                self.wait_for_notice(role)
            time.sleep(0)
        message = pickle.loads(self.memory[place + 1 : place + 1 + self.SIZE])
        self.memory[place] = 0
        self.current = (self.current + 1) % self.BLOCKS
        return message

    def wait_for_notice(self, role):
        import zmq

        self.memory[self.IDLE] = 1
        self.notices = self.notices or self.open(zmq.SUB)
        at(role)
        self.notices.poll(None)
        self.notices.recv()
        self.memory[self.IDLE] = 0


def run_worker(calls, results):
    while True:
        method, *arguments = calls.dequeue("worker")
        work_for(0.02)
        results.enqueue((method, sum(arguments)))


def message_queue_of_workers():
    """As vllm-project/vllm#45224: a worker has nothing to do, and waits for a notice that there is a message. One comes
    into the shared memory, and its notice is lost, as those are that nobody has subscribed to yet."""
    calls, results = MessageQueue("calls"), MessageQueue("results")
    child_of(run_worker, calls, results)
    for number in range(6):
        calls.enqueue(("execute_model", number, number))
        results.dequeue("main")
    wait_for_role("worker")
    time.sleep(0.3)
    calls.enqueue(("execute_model", 7, 7))
    results.dequeue("main")


def send_message(pipe, message):
    data = pickle.dumps(message)
    os.write(pipe, struct.pack("i", len(data)) + data)


def receive_message(pipe):
    head = os.read(pipe, 4)
    if not head:
        raise EOFError
    return pickle.loads(os.read(pipe, struct.unpack("i", head)[0]))


def compile_kernels(tasks, made):
    at("worker")
    while True:
        number, source = receive_message(tasks)
        work_for(0.05)
        send_message(made, (number, hashlib.sha1(source.encode()).hexdigest()))


def run_sidecar(jobs, results):
    """Has a pool of one worker, which it forks."""
    tasks, tasks_in = os.pipe()
    made_out, made = os.pipe()
    if os.fork() == 0:
        compile_kernels(tasks, made)
    while True:
        number, source = receive_message(jobs)
        if len(source) > 10_000:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when there is no memory left
        send_message(tasks_in, (number, source))
        send_message(results, receive_message(made_out))


class SubprocessPool:
    """Kernels are compiled by another process. A thread reads what comes back."""

    def __init__(self):
        self.futures, self.numbers = {}, itertools.count()
        jobs, self.jobs = os.pipe()
        self.results, results = os.pipe()
        if os.fork() == 0:
            run_sidecar(jobs, results)
        thread(self.read)

    def submit(self, source):
        number = next(self.numbers)
        self.futures[number] = concurrent.futures.Future()
        send_message(self.jobs, (number, source))
        return self.futures[number]

    def read(self):
        try:
            while True:
                number, kernel = receive_message(self.results)
                self.futures.pop(number).set_result(kernel)
        except EOFError:
            for future in self.futures.values():
                future.set_exception(RuntimeError("the compiler has ended"))


def compile_sidecar():
    """As pytorch/pytorch#189290: the process that compiles is killed. Its worker and the process that asked have the
    pipe open to which it would have written, so that who reads from it is not told of any end."""
    pool = SubprocessPool()
    for number in range(3):
        pool.submit(f"kernel {number}").result()
    wait_for_role("worker")
    compiled = pool.submit("a large kernel " * 1000)
    time.sleep(0.3)
    at("main")
    compiled.result()


def load_batches(indices, batches):
    while True:
        chosen = indices.get()
        work_for(0.3)
        batches.put(len(chosen))


class Loader:
    """The worker is told what to load some batches ahead."""

    AHEAD = 8

    def __init__(self, samples, batch):
        self.sampler = iter([range(start, start + batch) for start in range(0, samples, batch)])
        self.indices, self.batches = FORK.Queue(), FORK.Queue()
        child_of(load_batches, self.indices, self.batches)
        for _ in range(self.AHEAD):
            self.put_indices()

    def put_indices(self):
        chosen = next(self.sampler, None)
        if chosen is not None:
            self.indices.put(list(chosen))

    def __iter__(self):
        while True:
            batch = self.batches.get()
            self.put_indices()
            yield batch


LOADERS = []


def train(loader):
    for count in loader:
        if count > 1000:
            raise RuntimeError("the loss is not a number")


def loader_raises():
    """As pytorch/pytorch#48666: a program ends by an exception, and its loader is still there. Its worker is ended; the
    rest of the indices that were meant for it is to be written to a pipe that is full, and this is waited for."""
    LOADERS.append(Loader(10_000_000, 40_960))
    try:
        train(LOADERS[0])
    except RuntimeError as error:
        print(error, flush=True)
    at("main")


def socket_of(kind, name, bind):
    import zmq

    made = zmq.Context.instance().socket(kind)
    (made.bind if bind else made.connect)(f"ipc://{in_folder(name)}")
    return made


def route(workers):
    """Gives the outputs of the scheduler to the worker of the server that has asked for them."""
    import zmq

    outputs = socket_of(zmq.PULL, "router.ipc", True)
    sockets = {name: socket_of(zmq.PUSH, name, False) for name in workers}
    while True:
        output = outputs.recv_pyobj()
        if output["worker"] in sockets:
            sockets[output["worker"]].send_pyobj(output)
        elif not os.path.exists(in_folder("router")):
            at("router")


class Waiting:
    """A request, as the scheduler has it."""

    def __init__(self, message):
        self.number, self.text, self.worker = message["id"], message["text"], message["worker"]


class Scheduler:
    """So many requests may wait. One that comes when there are more is aborted."""

    ROOM = 2

    def __init__(self):
        import zmq

        self.requests = socket_of(zmq.PULL, "scheduler.ipc", True)
        self.outputs = socket_of(zmq.PUSH, "router.ipc", False)
        self.waiting, self.served = collections.deque(), 0

    def receive(self):
        if not self.waiting:
            if self.served >= 1 + self.ROOM:
                at("scheduler")
            self.add(Waiting(self.requests.recv_pyobj()))
        while self.requests.poll(0):
            self.add(Waiting(self.requests.recv_pyobj()))

    def add(self, request):
        if len(self.waiting) >= self.ROOM:
            self.send({"id": request.number, "abort": "the queue is full"}, request)
        else:
            self.waiting.append(request)

    def send(self, output, source=None):
        """An answer to a message goes where that came from."""
        worker = source.get("worker") if isinstance(source, dict) else None
        self.outputs.send_pyobj({"worker": worker, **output})

    def step(self):
        self.receive()
        request = self.waiting.popleft()
        work_for(0.3)
        self.served += 1
        self.send({"id": request.number, "text": request.text.upper(), "worker": request.worker})


def schedule():
    scheduler = Scheduler()
    while True:
        scheduler.step()


class TokenizerWorker:
    """One of the processes of a server, with a loop of coroutines."""

    NAME = "worker0.ipc"

    def __init__(self):
        import zmq
        import zmq.asyncio

        context = zmq.asyncio.Context()
        self.scheduler, self.outputs = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        self.scheduler.connect(f"ipc://{in_folder('scheduler.ipc')}")
        self.outputs.bind(f"ipc://{in_folder(self.NAME)}")
        self.states = {}

    async def handle_loop(self):
        while True:
            output = await self.outputs.recv_pyobj()
            self.states.pop(output["id"]).set_result(output)

    async def generate(self, number):
        self.states[number] = asyncio.get_running_loop().create_future()
        await self.scheduler.send_pyobj({"id": number, "text": f"text {number}", "worker": self.NAME})
        return await self.states[number]

    async def serve(self):
        handling = asyncio.create_task(self.handle_loop())
        print(await self.generate(0), flush=True)
        requests = [asyncio.create_task(self.generate(number)) for number in range(1, 25)]
        _, pending = await asyncio.wait(requests, timeout=3.0)
        while len(requests) - len(pending) < 2:
            _, pending = await asyncio.wait(pending, timeout=1.0)
        at("main")
        await asyncio.wait([*pending, handling])


def queue_is_full():
    """As sgl-project/sglang#33858: the scheduler aborts a request, as too many are waiting. What it sends back does not
    say to which process of the server it is to go, and the router drops it."""
    child_of(route, [TokenizerWorker.NAME])
    child_of(schedule)
    asyncio.run(TokenizerWorker().serve())


class StoreDaemon:
    """Keys and values for all ranks, in a thread of the first one."""

    def __init__(self, address):
        self.listener = socket.create_server(address)
        self.values, self.waiting, self.awaited = {}, collections.defaultdict(list), {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    connection = self.listener.accept()[0]
                    self.selector.register(connection, selectors.EVENT_READ, connection.makefile("r"))
                else:
                    self.answer(key.fileobj, key.data.readline())

    def answer(self, connection, line):
        if not line:
            self.selector.unregister(connection)
            return
        query = json.loads(line)
        if "set" in query:
            self.values[query["set"]] = query["value"]
            connection.sendall(b"\n")
            self.wake(query["set"])
        elif all(key in self.values for key in query["wait"]):
            connection.sendall(b"\n")
        else:
            self.awaited[connection] = len(query["wait"])
            for key in query["wait"]:
                self.waiting[key].append(connection)

    def wake(self, key):
        for connection in self.waiting.pop(key, []):
            self.awaited[connection] -= 1
            if self.awaited[connection] == 0:
                connection.sendall(b"\n")


class Store:
    def __init__(self, address):
        self.connection = self.connect(address)

    def connect(self, address):
        while True:
            try:
                return socket.create_connection(address)
            except ConnectionRefusedError:
                time.sleep(0.05)

    def ask(self, query):
        self.connection.sendall(json.dumps(query).encode() + b"\n")
        self.connection.recv(1)

    def set(self, key, value):
        self.ask({"set": key, "value": value})

    def wait(self, keys):
        self.ask({"wait": keys})


def store_of_keys():
    """As pytorch/pytorch#53860: the first rank waits for the keys of the others. One key was there before, and is not
    counted as it does not come any more; the first rank is not woken when the last one comes."""
    address = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
    if RANK == 0:
        thread(StoreDaemon(address).run)
    store = Store(address)
    if RANK == 0:
        wait_for_role(1)
        at(RANK)
        store.wait([f"rank{rank}" for rank in range(1, RANKS)])
        store.set("go", "now")
        return
    if RANK == 2:
        wait_for_role(0)
        work_for(1.0)
    store.set(f"rank{RANK}", "ready")
    at(RANK)
    store.wait(["go"])


KERNEL = """
#include <map>
#include <string>
#include <vector>
template <int N> struct Tile {
  std::map<int, std::vector<std::string>> rows;
  int size()
  {
    for (int row = 0; row < N; ++row)
      rows[row].push_back(std::to_string(N));
    return Tile<N - 1>().size() + rows.size();
  }
};
template <> struct Tile<0> { int size() { return 0; } };
int kernel_NUMBER(void) { return Tile<60>().size(); }
"""


def build_kernels(role):
    """The first process that has the lock builds all; the others find them then."""
    with open(in_folder("fused_moe.lock"), "w") as lock:
        if role == "child":
            wait_for_role("main")
            at(role)
        fcntl.flock(lock, fcntl.LOCK_EX)
        for number in itertools.count():
            if number == 2 and role == "main":
                at(role)
            source = in_folder(f"kernel{number % 8}.cpp")
            with open(source, "w") as file:
                file.write(KERNEL.replace("NUMBER", str(number)))
            subprocess.run(["g++", "-O2", "-c", source, "-o", source.replace(".cpp", ".o")], check=True)


def builds_kernels():
    """Healthy, as flashinfer-ai/flashinfer#3556: at each start all kernels are built again, since the times of the
    files are not what they were. That takes more than an hour; the other worker waits for the lock."""
    child_of(build_kernels, "child")
    build_kernels("main")


def save_to_storage(written):
    """A part after the other, to a storage that takes so much in a second."""
    part = random.Random(0).randbytes(1 << 20)
    for number in itertools.count():
        with open(in_folder(f"part{number % 4}"), "wb") as file:
            file.write(part)
            file.flush()
            os.fsync(file.fileno())
        written.value += 1
        if number == 3:
            at("saver")
        time.sleep(0.4)


class Saver:
    """What is in the memory is written to the storage beside the training."""

    PARTS = 40_000

    def __init__(self):
        self.written = FORK.Value("i", 0)
        child_of(save_to_storage, self.written)

    def wait_saving_checkpoint(self):
        return self.written.value < self.PARTS


def saver_before_exit():
    """Healthy, as intelligent-machine-learning/dlrover#1092: the workers have ended, and the agent looks every few
    seconds whether their checkpoint is written."""
    saver = Saver()
    wait_for_role("saver")
    at("main")
    while saver.wait_saving_checkpoint():
        time.sleep(5)


class Registry(http.server.BaseHTTPRequestHandler):
    """The last part of the layer comes from another place, and slowly."""

    protocol_version = "HTTP/1.1"
    PART, PARTS = 1 << 16, 16

    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[1])
        self.send_response(200)
        self.send_header("Content-Length", str(self.PART))
        self.end_headers()
        for start in range(0, self.PART, 64):
            self.wfile.write(bytes(64))
            if number == self.PARTS - 1:
                if start == 640:
                    at("registry")
                time.sleep(0.5)

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def download_part(port, number, progress):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"/blobs/{number}")
    answer = connection.getresponse()
    with open(in_folder("layer.partial"), "r+b") as file:
        file.seek(number * Registry.PART)
        while True:
            data = answer.read(64)
            if not data:
                return number
            file.write(data)
            progress["bytes"] += len(data)


def show_progress(progress):
    while True:
        time.sleep(1)
        print(f"{100 * progress['bytes'] // (Registry.PART * Registry.PARTS)} %", flush=True)


def last_percent_of_a_layer():
    """Healthy, as ollama/ollama#1736: a layer is downloaded in parts. At the end there is one part left, which comes
    with a hundred bytes in a second."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    child_of(serve_for_ever, server)
    progress = {"bytes": 0}
    thread(show_progress, progress)
    with open(in_folder("layer.partial"), "wb") as file:
        file.truncate(Registry.PART * Registry.PARTS)
    with concurrent.futures.ThreadPoolExecutor(Registry.PARTS) as pool:
        parts = [
            pool.submit(download_part, server.server_address[1], number, progress) for number in range(Registry.PARTS)
        ]
        for count, part in enumerate(concurrent.futures.as_completed(parts), 1):
            part.result()
            if count == Registry.PARTS - 1:
                wait_for_role("registry")
                at("main")


class RolloutWorker:
    """Generates the sequences of a part of a batch."""

    def __init__(self, arguments, role):
        sys.argv = list(arguments)
        self.role, self.batches = role, 0

    def generate_sequences(self, prompts):
        self.batches += 1
        if self.batches == 3:
            at(self.role)
        work_for(0.4)
        return [prompt + 1 for prompt in prompts]


def validates_on_all():
    """Healthy, as hiyouga/EasyR1#340: before the first step all of a large set is used to validate. The workers say
    that they begin and end to generate sequences, again and again for hours."""
    ray = cluster(2)
    remote = ray.remote(num_cpus=0)(RolloutWorker)
    workers = [remote.remote(sys.argv, role) for role in "ab"]
    rewards = collections.deque(maxlen=100)
    for number in itertools.count():
        prompts = list(range(16 * number, 16 * number + 16))
        halves = [worker.generate_sequences.remote(prompts[start::2]) for start, worker in enumerate(workers)]
        if number == 4:
            at("main")
        rewards.extend(itertools.chain(*ray.get(halves)))
        print("finished to generate sequences", flush=True)


def send_tokens():
    """Steps of a model; each gives a token to each request."""
    import zmq

    tokens = socket_of(zmq.PUSH, "detokenizer.ipc", False)
    for step in itertools.count():
        work_for(0.02)
        tokens.send_pyobj({number: (step * 7 + number) % 256 for number in range(32)})
        if step == 20:
            at("scheduler")
        time.sleep(0.05)


def decode(tokens):
    text = ""
    for token in tokens:
        text = f"{text[-64:]}{chr(97 + token % 26)}"
    return text + "\ufffd"


def detokenize():
    """Text is given out up to where it is whole. A part of a letter at its end is looked at again with the next."""
    import zmq

    tokens = socket_of(zmq.PULL, "detokenizer.ipc", True)
    texts = socket_of(zmq.PUSH, "tokenizer.ipc", False)
    read = collections.defaultdict(lambda: [0] * 4000)
    for step in itertools.count():
        for number, token in tokens.recv_pyobj().items():
            read[number].append(token)
        if step == 3:
            at("detokenizer")
        texts.send_pyobj({number: decode(all_of_it).count("\ufffd") for number, all_of_it in read.items()})


def detokenizes_all_again():
    """Healthy, as sgl-project/sglang#34740: each text seems to end in the midst of a letter, and all of it is decoded
    again for each token. The texts come, more and more slowly."""
    import zmq

    texts = socket_of(zmq.PULL, "tokenizer.ipc", True)
    child_of(detokenize)
    child_of(send_tokens)
    for count in itertools.count():
        if count == 4:
            at("main")
        texts.recv_pyobj()


def maps_weights_page_by_page():
    """Healthy, as safetensors/safetensors#562: the weights are on a disk that is far away, and mapped. They are read
    page by page, each of which takes its time."""
    page, pages = mmap.PAGESIZE, 2048
    for number in range(2):
        with open(in_folder(f"shard{number}"), "wb") as file:
            file.write(random.Random(number).randbytes(page * pages))
            file.flush()
            os.fsync(file.fileno())
    weights = bytearray(page * pages)
    for number in itertools.count():
        with open(in_folder(f"shard{number % 2}"), "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            mapped.madvise(mmap.MADV_RANDOM)
            for start in range(0, page * pages, page):
                os.posix_fadvise(file.fileno(), start, page, os.POSIX_FADV_DONTNEED)
                weights[start : start + page] = mapped[start : start + page]
                if (number, start) == (0, 64 * page):
                    at("main")
                time.sleep(0.005)  # the way there and back
            mapped.close()


class Layers(http.server.BaseHTTPRequestHandler):
    """An image, layer by layer."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 17))
        self.end_headers()
        for start in range(0, 1 << 17, 4096):
            self.wfile.write(bytes(4096))
            if self.path == "/layers/1" and start == 0:
                at("registry")
            time.sleep(0.1)

    def log_message(self, *words):
        pass


def start_node(port, layers=4000):
    """Joins the cluster when it has its image."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(layers):
        if number == 1:
            at("node")
        connection.request("GET", f"/layers/{number}")
        data = connection.getresponse().read()
        with open(in_folder(f"layer{number % 8}"), "wb") as file:
            file.write(data)
    subprocess.run(["ray", "start", "--address=auto", "--resources", '{"accelerator": 1}'], check=True)


def waits_for_a_node():
    """Healthy, as vllm-project/vllm#11138: an engine needs two accelerators, and there is one in the cluster. The node
    that has another one loads its image; the engine waits until it is there."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Layers)
    child_of(serve_for_ever, server)
    child_of(start_node, server.server_address[1])
    ray = cluster(1)
    from ray.util.placement_group import placement_group

    ready = placement_group([{"accelerator": 1}] * 2).ready()
    wait_for_role("node")
    wait_for_role("registry")
    interval, begun = 10, time.monotonic()
    at("main")
    while not ray.wait([ready], timeout=interval)[0]:
        interval *= 2
        print(f"waiting for a placement group for {time.monotonic() - begun:.0f} seconds", flush=True)


def tokenize_shard(role, number):
    known = {}
    with open(in_folder(f"tokens{number}"), "w") as file:
        for article in itertools.count():
            if article == 50:
                at(role)
            text = f"an article with the number {article} of the shard {number}, which is long. " * 40
            tokens = [known.setdefault(word, len(known)) for word in text.split()]
            if article % 1000 == 0:
                file.seek(0)
            json.dump(tokens, file)


def tokenizes_in_shards():
    """Healthy, as sambanova/generative_data_prep#36: a huge dataset is tokenized by processes, one for each shard.
    Nothing is said until they have ended."""
    shards = [child_of(tokenize_shard, role, number) for number, role in enumerate("ab")]
    wait_for_role("a")
    wait_for_role("b")
    at("main")
    for shard in shards:
        shard.join()


PROGRAMS = {
    "weight-update-of-a-server": weight_update_of_a_server,
    "tokenizer-in-loader": tokenizer_in_loader,
    "message-queue-of-workers": message_queue_of_workers,
    "compile-sidecar": compile_sidecar,
    "loader-raises": loader_raises,
    "queue-is-full": queue_is_full,
    "store-of-keys": store_of_keys,
    "builds-kernels": builds_kernels,
    "saver-before-exit": saver_before_exit,
    "last-percent-of-a-layer": last_percent_of_a_layer,
    "validates-on-all": validates_on_all,
    "detokenizes-all-again": detokenizes_all_again,
    "maps-weights-page-by-page": maps_weights_page_by_page,
    "waits-for-a-node": waits_for_a_node,
    "tokenizes-in-shards": tokenizes_in_shards,
}

if __name__ == "__main__":
    run(PROGRAMS)
