"""Engines of several processes that hang, and healthy ones, thirteenth set: `thirteenth_engines.py NAME FOLDER`."""

import asyncio
import contextlib
import http.client
import http.server
import itertools
import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import shared_memory

import numpy

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for
from tests.inferiors.live.thirteenth_extension import extension

FORK = multiprocessing.get_context("fork")
SPAWN = multiprocessing.get_context("spawn")


class Worker:
    """A process that does what it is told, until the pipe says that the engine is gone."""

    def __init__(self, rank):
        death, self.death_writer = FORK.Pipe(duplex=False)
        calls, self.calls = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=self.main, args=(rank, death, calls))
        self.process.start()
        death.close()
        calls.close()

    def main(self, rank, death, calls):
        self.death_writer.close()
        self.calls.close()
        thread(self.watch_engine, death)
        at(f"worker{rank}")
        while True:
            calls.recv()

    def watch_engine(self, death):
        with contextlib.suppress(EOFError):
            death.recv()
        print("the engine is gone", flush=True)
        os._exit(0)

    def shutdown(self):
        self.death_writer.close()
        self.process.join()


def death_pipe_inherited():
    """As vllm-project/vllm#28053: a worker is to end when nobody has the other end of its pipe. Workers that were
    forked later have inherited that end."""
    workers = [Worker(0)]
    wait_for_role("worker0")
    workers.append(Worker(1))
    wait_for_role("worker1")
    time.sleep(0.2)
    at("main")
    for worker in workers:
        worker.shutdown()


class Scheduler:
    """Takes requests, puts them into batches as there is room, and answers. It looks for both in one loop."""

    PAGE, TOKENS, RUNNING = 2, 4096, 2

    def __init__(self):
        import zmq

        self.again, context = zmq.Again, zmq.Context()
        self.requests, self.answers = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        self.requests.bind("ipc://" + in_folder("requests"))
        self.answers.connect("ipc://" + in_folder("answers"))
        self.waiting, self.running, self.last = [], [], []
        self.batch_is_full = False

    def receive(self):
        while True:
            try:
                self.waiting.append(self.requests.recv_pyobj(flags=1))  # NOBLOCK
            except self.again:
                return

    def admits(self, request):
        """One page more may be begun than the tokens fill."""
        return request["tokens"] + self.PAGE <= self.TOKENS

    def next_batch(self):
        if self.batch_is_full:
            return []
        batch = []
        while self.waiting and self.admits(self.waiting[0]):
            if len(self.running) + len(batch) >= self.RUNNING:
                self.batch_is_full = True
                break
            batch.append(self.waiting.pop(0))
        self.running = self.running + batch
        return batch

    def finish(self, batch):
        for request in batch:
            work_for(0.02)
            self.answers.send_pyobj(request["id"])
        self.running = [request for request in self.running if request not in batch]

    def loop(self):
        """The answers of a batch are given when the next one has been begun."""
        while True:
            self.receive()
            batch = self.next_batch()
            self.finish(self.last)
            self.last = batch


def serve_scheduler():
    scheduler = Scheduler()
    at("engine")
    scheduler.loop()


class Client:
    """The front end."""

    def __init__(self):
        import zmq

        child_of(serve_scheduler)
        wait_for_role("engine")
        context = zmq.Context()
        self.requests, self.answers = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        self.answers.bind("ipc://" + in_folder("answers"))
        self.requests.connect("ipc://" + in_folder("requests"))
        self.ids = itertools.count()

    def ask(self, *tokens):
        for number in tokens:
            self.requests.send_pyobj({"id": next(self.ids), "tokens": number})
        for _ in tokens:
            self.answers.recv_pyobj()


def prompt_never_fits():
    """As sgl-project/sglang#28530: the prompt and what is to be written fill all the tokens that there are, and with
    the page that may be begun it is too much, also when nothing else runs. So the scheduler never takes it."""
    client = Client()
    for number in range(4):
        client.ask(10 + number)
    at("main")
    client.ask(4096)


def batch_stays_full():
    """As sgl-project/sglang#22518: that the batch is full is noted, and stays so when its requests have been answered.
    The third request waits for ever."""
    client = Client()
    for _ in range(4):
        client.ask(10)
    at("main")
    client.ask(10, 10, 10)


class Streams:
    """A server of events. It is told to end by a signal, and then waits until each connection has ended."""

    def __init__(self):
        self.connections, self.should_exit, self.stopped = set(), asyncio.Event(), False

    async def respond(self, reader, writer):
        self.connections.add(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        async for event in self.events():
            writer.write(event)
            await writer.drain()
        writer.close()
        self.connections.discard(writer)

    async def events(self):
        for number in range(3):
            yield b"data: %d\n\n" % number
        while not self.stopped:  # nobody says it: the handler that would is not the one that is called
            await asyncio.sleep(15)
            yield b": ping\n\n"

    async def serve(self):
        server = await asyncio.start_server(self.respond, "127.0.0.1", 0)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.should_exit.set)
        child_of(read_events, server.sockets[0].getsockname()[1], os.getpid())
        await self.should_exit.wait()
        await self.shutdown(server)

    async def shutdown(self, server):
        server.close()
        at("main")
        while self.connections:
            await asyncio.sleep(0.1)


def read_events(port, server):
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as lines:
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for line in lines:
            if line == b"data: 2\n":
                at("client")
                os.kill(server, signal.SIGTERM)


def stream_at_shutdown():
    """As sysid/sse-starlette#124: the stream of events does not know that the server is to end, and the server waits
    for its end."""
    asyncio.run(Streams().serve())


class Cycle:
    """One request of a connection and its response. `message` says that there is something to receive."""

    def __init__(self, transport, path, length, message):
        self.transport, self.path, self.left, self.message = transport, path, length, message
        self.body, self.complete = b"", False

    async def receive(self):
        if not self.complete:
            await self.message.wait()
            self.message.clear()
        if self.complete:
            return None
        body, self.body = self.body, b""
        self.left -= len(body)
        return body

    def send(self, content):
        self.complete = True
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))


class Protocol(asyncio.Protocol):
    """HTTP with connections that are kept. All requests of one share the event."""

    def __init__(self):
        self.message, self.rest, self.cycle = asyncio.Event(), b"", None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.rest += data
        if self.cycle is None or self.cycle.complete:
            head, found, rest = self.rest.partition(b"\r\n\r\n")
            if not found:
                return
            self.rest = rest
            words = head.split()
            length = int(words[words.index(b"Content-Length:") + 1])
            self.cycle = Cycle(self.transport, words[1], length, self.message)
            self.task = asyncio.get_running_loop().create_task(respond(self.cycle))
        if self.rest:
            self.cycle.body += self.rest
            self.rest = b""
            self.message.set()


async def listen_for_disconnect(cycle):
    while await cycle.receive() is not None:
        pass


async def respond(cycle):
    """The application, with what is done before it for each request."""
    await asyncio.sleep(0.05)
    body = b""
    while cycle.left:
        body += await cycle.receive()
    if cycle.path == b"/stream":
        cycle.listener = asyncio.get_running_loop().create_task(listen_for_disconnect(cycle))
        await asyncio.sleep(0.05)
    cycle.send(b"%d" % len(body))


async def serve_cycles(listens):
    server = await asyncio.get_running_loop().create_server(Protocol, sock=listens)
    at("server")
    await server.serve_forever()


def event_of_other_request():
    """As Kludex/uvicorn#748: something still receives for a request that has been answered. The next request's body
    sets the event, the old one takes and clears it, and the new one waits for it."""
    listens = socket.create_server(("127.0.0.1", 0))
    child_of(lambda: asyncio.run(serve_cycles(listens)))
    wait_for_role("server")
    client = http.client.HTTPConnection("127.0.0.1", listens.getsockname()[1])
    listens.close()
    for path in ("/generate", "/generate", "/stream", "/generate"):
        client.request("POST", path, "a prompt")
        client.getresponse().read()
        if path == "/stream":
            at("main")


def check_model(answers):
    """A job that is apart from the rest, and gives its report back."""
    answers.put({"status": "ok", "report": "element without a name\n" * 10_000})
    at("child")


def join_before_drain():
    """As jonatanjacobsson/ifcpipeline#28: the report is more than a pipe holds, and it is read when the process that
    writes it has ended."""
    answers = SPAWN.Queue()
    job = SPAWN.Process(target=check_model, args=(answers,))
    job.start()
    at("main")
    job.join()
    answers.get()


class Pool:
    """What other threads of the main process do while workers are started: threads' pools are made, and each one's
    destructor is noted among what is to be done at exit."""

    def __init__(self, library):
        self.library, self.work = library, queue.Queue()
        thread(self.pin_memory_loop)

    def pin_memory_loop(self):
        while self.work.get():
            self.library.pools_make()

    @contextlib.contextmanager
    def busy(self):
        self.library.pools_begin()
        self.work.put(True)
        time.sleep(0.001)
        yield
        self.library.pools_end()


def watch_worker(epoch, found):
    """Says where they stand when this epoch's worker has not come through in a second."""
    time.sleep(1.2)
    passed = os.path.exists(in_folder(f"passed-{epoch}"))
    if not passed:
        at("worker", multiprocessing.active_children()[0].pid)
        at("main")
    found.put(passed)


def exit_functions_locked_at_fork():
    """As pytorch/pytorch#130610: a loader's worker is forked while another thread has the lock of the list of what is
    to be done at exit. In the worker nobody gives that lock back, and it notes something there as well."""
    import torch.utils.data

    library = extension()
    pool, found = Pool(library), queue.Queue()
    for epoch in itertools.count():

        def begin(_, epoch=epoch):
            library.set_num_threads()
            with open(in_folder(f"passed-{epoch}"), "w"):
                pass

        loader = torch.utils.data.DataLoader(range(8), batch_size=4, num_workers=1, worker_init_fn=begin)
        with pool.busy():
            batches = iter(loader)
        thread(watch_worker, epoch, found)
        for _ in batches:
            pass
        found.get()


def find_child(known):
    """The process that is being started has no name yet: the kernel knows it."""
    while True:
        for task in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:
                for pid in map(int, file.read().split()):
                    if pid not in known:
                        return pid
        time.sleep(0.02)


def say_hello():
    """A request: a program is run for it."""
    return subprocess.Popen(["echo", "-n"], cwd="/").wait()


def fork_handler_takes_lock():
    """As grpc/grpc#22624: after a fork the library starts its timers anew in the child, for which it takes the mutex
    that its timers' thread had in the parent."""
    subprocess._USE_VFORK = False  # a fork, as it was
    extension().timers_start()
    time.sleep(0.1)
    server = ThreadPoolExecutor(10)
    answer = server.submit(say_hello)
    at("child", find_child(set()))
    time.sleep(0.2)
    at("main")
    answer.result()


def ping(library):
    at("child")
    library.channel_call(2)


def channel_from_before_fork():
    """As grpc/grpc#13464: a task's process has been forked when the channel was there, and asks by it. The thread that
    takes what comes is in the parent alone."""
    library = extension()
    library.channel_connect()
    library.channel_call(1)
    time.sleep(0.2)
    task = FORK.Process(target=ping, args=(library,))
    task.start()
    wait_for_role("child")
    at("main")
    task.join()


class Throttled(http.server.BaseHTTPRequestHandler):
    """A server of models that gives six kilobytes a second."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(16 << 30))
        self.end_headers()
        while True:
            self.wfile.write(os.urandom(600))
            time.sleep(0.1)


def serve_models(server):
    server.serve_forever()


def slow_download():
    """Healthy, as benmaster82/writher#16: the model comes at a few kilobytes a second."""
    import requests

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Throttled)
    child_of(serve_models, server)
    session = requests.Session()
    session.trust_env = False
    with open(in_folder("model.part"), "wb") as file:
        answer = session.get(f"http://127.0.0.1:{server.server_address[1]}/model", stream=True)
        for number, chunk in enumerate(answer.iter_content(4096)):
            file.write(chunk)
            if number == 1:
                at("main")


def feed_shards(disk):
    """A disk in the network."""
    while True:
        os.write(disk, bytes(1 << 16))
        time.sleep(0.05)


def load_shards(disk, ready):
    with open(disk, "rb", buffering=0) as file:
        for shard in itertools.count():
            tensor = numpy.empty(1 << 20, numpy.uint8)
            view = memoryview(tensor)
            while view:
                view = view[file.readinto(view) :]
            print("loaded shard", shard, float(tensor.sum()), flush=True)
            if shard == 1:
                at("engine")
    ready.send("ready")


def shards_from_slow_disk():
    """Healthy, as vllm-project/vllm#15862: the engine reads a large model from a slow disk, and the server waits for
    its word."""
    disk, write = os.pipe()
    waits, ready = FORK.Pipe(duplex=False)
    child_of(feed_shards, write)
    child_of(load_shards, disk, ready)
    wait_for_role("engine")
    at("main")
    while not multiprocessing.connection.wait([waits], timeout=10):
        print("waiting for the engine", flush=True)


def load_file(path):
    with open(path, "rb") as file:
        return numpy.frombuffer(file.read(), numpy.float16)


def shards_by_threads():
    """Healthy, as sgl-project/sglang#17970: threads have read all shards, which is shown; then the tensors are copied
    one by one, which is not."""
    paths = [in_folder(f"shard{number}") for number in range(8)]
    for path in paths:
        numpy.full(1 << 20, 0.5, numpy.float16).tofile(path)
    model = numpy.empty(1 << 20, numpy.float32)
    with ThreadPoolExecutor(8) as pool:
        for number in itertools.count():
            shards = list(pool.map(load_file, paths))
            print("loading shards: 100%", flush=True)
            if number == 1:
                at("main")
            for shard in shards * 100:
                model[:] = shard
                model.sum()


class Images:
    """A data set; an image takes its time."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, number):
        work_for(0.1)
        time.sleep(0.4)
        return number


def batches_in_bursts():
    """Healthy, as pytorch/pytorch#19836: two workers load a batch each in two seconds, the trainer waits for both, and
    then has two at once."""
    import torch.utils.data

    loader = torch.utils.data.DataLoader(
        Images(), batch_size=4, num_workers=2, worker_init_fn=lambda worker: at(f"worker{worker}")
    )
    for number, _ in enumerate(loader):
        if number == 1:
            at("main")


class Ring:
    """One block of shared memory: who writes it sets a flag, who reads it looks at the flag without a rest."""

    def __init__(self):
        self.memory = shared_memory.SharedMemory(create=True, size=4096)
        self.memory.buf[0] = 0

    def acquire_read(self):
        while self.memory.buf[0] == 0:
            os.sched_yield()

    def unlink(self):
        self.memory.unlink()


def read_ring(ring, rank):
    at(f"worker{rank}")
    while True:
        ring.acquire_read()


def take_requests(requests):
    import zmq

    frontend = zmq.Context().socket(zmq.PULL)
    frontend.bind("ipc://" + in_folder("requests"))
    while True:
        requests.put(frontend.recv_pyobj())


def idle_reader_spins():
    """Healthy, as vllm-project/vllm#19036: the engine waits for requests, and its workers look for what it would write
    into shared memory, all the time."""
    ring, requests = Ring(), queue.Queue()
    for rank in range(2):
        child_of(read_ring, ring, rank)
    wait_for_role("worker1")
    ring.unlink()
    threading.Thread(target=take_requests, args=(requests,), daemon=True).start()
    time.sleep(0.3)
    at("main")
    while True:
        requests.get()


PROGRAMS = {
    "death-pipe-inherited": death_pipe_inherited,
    "prompt-never-fits": prompt_never_fits,
    "batch-stays-full": batch_stays_full,
    "stream-at-shutdown": stream_at_shutdown,
    "event-of-other-request": event_of_other_request,
    "join-before-drain": join_before_drain,
    "exit-functions-locked-at-fork": exit_functions_locked_at_fork,
    "fork-handler-takes-lock": fork_handler_takes_lock,
    "channel-from-before-fork": channel_from_before_fork,
    "slow-download": slow_download,
    "shards-from-slow-disk": shards_from_slow_disk,
    "shards-by-threads": shards_by_threads,
    "batches-in-bursts": batches_in_bursts,
    "idle-reader-spins": idle_reader_spins,
}

if __name__ == "__main__":
    run(PROGRAMS)
