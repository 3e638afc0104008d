"""Engines of processes that hang, and healthy ones, twenty-ninth set: `twenty_ninth_engines.py NAME FOLDER`."""

import collections
import concurrent.futures
import hashlib
import http.client
import http.server
import itertools
import lzma
import multiprocessing
import queue
import random
import socket
import subprocess
import sys
import threading
import time
import zlib

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")
MODULE = "tests.inferiors.live.twenty_ninth_engines"


def another(name, **more):
    """This file as another process."""
    return subprocess.Popen([sys.executable, "-m", MODULE, name, sys.argv[2]], **more)


def test_package():
    """Of the other process: a tool that says much and finds nothing wrong."""
    at("tool")
    for number in range(20_000):
        print(f"test {number}: a file of the package was read and is as it should be", flush=True)


def errors_read_before_output():
    """As zeek/package-manager#198: the tests of a package are run with a pipe for what they say and one for errors. The
    errors are read to their end first, and meanwhile the other pipe is full."""
    tool = another("package-tests", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_role("tool")
    at("main")
    errors = b""
    while True:
        data = tool.stderr.read(4096)
        if not data:
            break
        errors += data
    print(errors, tool.stdout.read(), flush=True)


def serve_requests(requests, responses):
    """A worker of a model. It looks again when there was no request for a while."""
    at("two")
    while True:
        try:
            number, text = requests.get(timeout=0.5)
        except queue.Empty:
            continue
        responses.put((number, text.upper()))


def wait_for_a_request(requests):
    requests.get()


def worker_killed_at_its_queue():
    """As ShannonAI/service-streamer#94: two workers take requests from one queue. One was killed while it waited for
    a request, which one does with the lock of the queue; the other one does not get that any more, and the answer to a
    request does not come."""
    requests, responses = FORK.Queue(), FORK.Queue()
    one = child_of(wait_for_a_request, requests)
    while requests._rlock.acquire(block=False):
        requests._rlock.release()
        time.sleep(0.02)
    one.kill()
    one.join()
    child_of(serve_requests, requests, responses)
    wait_for_role("two")
    requests.put((1, "a request"))
    at("main")
    print(responses.get(), flush=True)


class Server:
    """Answers by their identities. What takes long is answered by another part of it."""

    def __init__(self, address):
        import zmq

        self.socket = zmq.Context().socket(zmq.ROUTER)
        self.socket.bind(address)

    def answer_ping(self, identity):
        self.socket.send_multipart([identity, b"pong"])

    def answer_order(self, order):
        work_for(0.05)
        at("server")
        self.socket.send_multipart([b"done", order])

    def serve(self):
        while True:
            identity, message = self.socket.recv_multipart()
            if message == b"ping":
                self.answer_ping(identity)
            else:
                self.answer_order(message)


def serve_orders(address):
    Server(address).serve()


def reply_without_identity():
    """As zeromq/zmqpp#170: a router sends what it is given to whom the first part of it says. The reply to an order has
    no such part, so that it is for somebody who is not there, and dropped."""
    address = f"ipc://{in_folder('orders.socket')}"
    child_of(serve_orders, address)
    import zmq

    dealer = zmq.Context().socket(zmq.DEALER)
    dealer.connect(address)
    for message in (b"ping", b"ping", b"an order"):
        dealer.send(message)
        if message != b"ping":
            wait_for_role("server")
            at("main")
        print(dealer.recv_multipart(), flush=True)


def run_stage(rank, commands):
    """A stage of a pipeline. Each one does what it is told to, and says when that is done."""
    import torch
    import torch.distributed as dist

    from tests.inferiors.live.place import LONG

    torch.set_num_threads(1)
    store = dist.FileStore(in_folder("store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=LONG)
    rows = torch.ones(256, 64)
    while True:
        command = commands.recv()
        if command == "profile":
            rows = rows * 0.5
        elif rank == 0:
            at(rank)
            dist.send(rows * 2, 1)
        else:
            dist.recv(rows, 0)
        commands.send("done")


def stages_one_after_the_other():
    """As vllm-project/vllm#4412: a driver has each stage of the pipeline do its part and waits for that, one after the
    other. The first stage sends to the second one, which was not told to begin."""
    stages, workers = [], []
    for rank in range(2):
        mine, theirs = FORK.Pipe()
        workers.append(child_of(run_stage, rank, theirs))
        stages.append(mine)
    for stage in stages:
        stage.send("profile")
    for stage in stages:
        stage.recv()
    at("1", workers[1].pid)
    at("main")
    for stage in stages:
        stage.send("step")
        stage.recv()


class BlockTree:
    """Blocks of a cache by the request that they are of; the oldest one makes room."""

    def __init__(self, room):
        self.room, self.blocks, self.lock = room, collections.OrderedDict(), threading.Lock()

    def store(self, request, block):
        with self.lock:
            self.blocks[request] = block
            if len(self.blocks) > self.room:
                self.blocks.popitem(last=False)

    def find(self, request):
        with self.lock:
            return self.blocks[request]


def send_blocks(tree, decoder):
    while True:
        request = decoder.recv()
        try:
            decoder.send((request, tree.find(request)))
        except KeyError as error:
            print(f"the block of {error} is not in the tree", flush=True)


def run_prefill(requests, decoder):
    tree = BlockTree(2)
    thread(send_blocks, tree, decoder)
    while True:
        request = requests.recv()
        work_for(0.02)
        tree.store(request, bytes(4096))
        if request == 5:
            at("prefill")
        requests.send("the context is ready")


class Receiver:
    """Gets blocks from the prefill in a thread of its own."""

    def __init__(self, prefill):
        self.prefill, self.wanted = prefill, {}
        thread(self.receive)

    def receive(self):
        while True:
            request, block = self.prefill.recv()
            self.wanted.pop(request).set_result(block)

    def ask(self, request):
        future = self.wanted[request] = concurrent.futures.Future()
        self.prefill.send(request)
        return future


def run_decode(requests, prefill):
    receiver = Receiver(prefill)
    while True:
        request = requests.recv()
        future = receiver.ask(request)
        if request == 3:
            at("decode")
        requests.send(len(future.result()))


def block_gone_before_it_was_sent():
    """As NVIDIA/TensorRT-LLM#12542: a block of the cache has made room for another request before it was sent to where
    the text is generated. The sender says so in its log and sends nothing; the block is waited for."""
    to_prefill, of_prefill = FORK.Pipe()
    to_decode, of_decode = FORK.Pipe()
    sender, receiver = FORK.Pipe()
    child_of(run_prefill, of_prefill, sender)
    child_of(run_decode, of_decode, receiver)
    for together in ([1, 2], [3, 4, 5]):
        for request in together:
            to_prefill.send(request)
            to_prefill.recv()
        if 3 in together:
            at("main")
        for request in together:
            to_decode.send(request)
            print(to_decode.recv(), flush=True)


def predict(outputs, done):
    for size in (100, 10_000, 1_000_000):
        work_for(0.05)
        if size == 1_000_000:
            at("predictor")
        outputs.send("x" * size)
        done.send("processing is done")


def output_larger_than_its_pipe():
    """As replicate/cog#756: a predictor sends its output, and then the word that it is done. That word is waited for
    before the output is read, which does not go into the pipe as a whole."""
    output_reader, output_writer = FORK.Pipe(duplex=False)
    done_reader, done_writer = FORK.Pipe(duplex=False)
    child_of(predict, output_writer, done_writer)
    for number in range(3):
        if number == 2:
            wait_for_role("predictor")
            at("main")
        done_reader.recv()
        print(len(output_reader.recv()), flush=True)


class Hub(http.server.BaseHTTPRequestHandler):
    """Has a voice of six gigabytes, and sends it slowly."""

    protocol_version = "HTTP/1.1"
    PIECE, PIECES = 1 << 16, 100_000

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(self.PIECE * self.PIECES))
        self.end_headers()
        for number in range(self.PIECES):
            self.wfile.write(hashlib.sha256(str(number).encode()).digest() * (self.PIECE // 32))
            if number == 10:
                at("hub")
            time.sleep(0.03)

    def log_message(self, *words):
        pass


def serve_hub(server):
    server.serve_forever()


def voice_without_a_progress():
    """Healthy, as unslothai/unsloth#9018: a model for voices is downloaded. It is said that none of so many bytes are
    there, as long as the download goes on."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    child_of(serve_hub, server)
    connection = http.client.HTTPConnection(*server.server_address)
    connection.request("GET", "/voice")
    response = connection.getresponse()
    print(f"0 B / {response.headers['Content-Length']} B", flush=True)
    with open(in_folder("voice"), "wb") as file:
        for number in itertools.count():
            data = response.read(1 << 14)
            if not data:
                break
            file.seek(0)
            file.write(data)
            if number == 50:
                at("main")


def fill_shuffle_buffer(most):
    """Samples are decompressed before they go into the buffer."""
    buffer, stored = [], [zlib.compress(random.Random(number).randbytes(1 << 16)) for number in range(8)]
    while len(buffer) < most:
        data = zlib.decompress(stored[len(buffer) % len(stored)])
        buffer.append(hashlib.sha256(data).digest()[0])
        if len(buffer) == 200:
            at("worker")
    return buffer


def buffer_filled_before_the_first_batch():
    """Healthy, as activeloopai/deeplake#1760: with a worker and in a random order, an epoch begins after a minute and a
    half. The worker fills a buffer, out of which it draws the samples of the batches."""
    import torch.utils.data

    class Shuffled(torch.utils.data.IterableDataset):
        def __iter__(self):
            buffer = fill_shuffle_buffer(50_000_000)
            while buffer:
                yield buffer.pop(random.randrange(len(buffer)))

    loader = torch.utils.data.DataLoader(Shuffled(), batch_size=8, num_workers=1, multiprocessing_context="fork")
    batches = iter(loader)
    wait_for_role("worker")
    at("main")
    print(next(batches), flush=True)


def build_program():
    """Of the other process: all libraries of a program are packed, one by one."""
    libraries = [random.Random(number).randbytes(1 << 19).hex().encode() for number in range(4)]
    for number in itertools.count():
        data = lzma.compress(libraries[number % 4], preset=1)
        with open(in_folder(f"packed{number % 4}"), "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        if number == 2:
            at("builder")


def built_before_it_is_tested():
    """Healthy, as pyinstaller/pyinstaller#9482: a test builds a program and runs it then. It is the building that takes
    almost all of the time that the test has."""
    builder = another("build-program", stdout=subprocess.PIPE)
    wait_for_role("builder")
    at("main")
    output, _ = builder.communicate(timeout=7200)
    print(output, flush=True)


def generate_tokens(connection):
    """An answer that is long, and comes word by word."""
    connection.recv(1024)
    for number in range(1_000_000):
        work_for(0.02)
        connection.sendall(f"word{number} ".encode())
        if number == 10:
            at("instance")


def serve_instance(listener):
    while True:
        connection, _ = listener.accept()
        thread(generate_tokens, connection)


class Proxy:
    """Passes requests on to an instance, and counts those that are on their way."""

    def __init__(self, address):
        self.address, self.changed, self.inflight, self.status = address, threading.Condition(), 0, "running"

    def pass_on(self, prompt):
        with self.changed:
            self.inflight += 1
            self.changed.notify_all()
        connection = socket.create_connection(self.address)
        connection.sendall(prompt)
        with open(in_folder("answer"), "wb") as file:
            while data := connection.recv(4096):
                file.write(data)
                file.flush()
        with self.changed:
            self.inflight -= 1
            self.changed.notify_all()

    def shut_down(self, longest):
        with self.changed:
            self.status = "shutting down"
            self.changed.wait_for(lambda: self.inflight == 0, timeout=longest)


def stopped_after_its_requests():
    """Healthy, as lordmathis/llamactl#78: an instance is to be stopped, and has a request. It is stopped when that is
    done; as long as it goes on there are no new ones."""
    listener = socket.create_server(("127.0.0.1", 0))
    instance = child_of(serve_instance, listener)
    proxy = Proxy(listener.getsockname())
    thread(proxy.pass_on, b"a long story")
    wait_for_role("instance")
    at("main")
    proxy.shut_down(3600)
    instance.terminate()


PROGRAMS = {
    "reads-errors-first": errors_read_before_output,
    "package-tests": test_package,
    "takes-requests-in-turn": worker_killed_at_its_queue,
    "replies-to-nobody": reply_without_identity,
    "drives-stages-in-turn": stages_one_after_the_other,
    "sends-a-cache-block": block_gone_before_it_was_sent,
    "sends-a-large-output": output_larger_than_its_pipe,
    "downloads-a-voice": voice_without_a_progress,
    "fills-its-shuffle-buffer": buffer_filled_before_the_first_batch,
    "builds-before-it-runs": built_before_it_is_tested,
    "build-program": build_program,
    "stops-after-its-requests": stopped_after_its_requests,
}

if __name__ == "__main__":
    run(PROGRAMS)
