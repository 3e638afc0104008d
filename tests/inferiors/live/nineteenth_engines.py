"""Engines of several processes that hang, and healthy ones, nineteenth set: `nineteenth_engines.py NAME FOLDER`."""

import asyncio
import collections
import fcntl
import heapq
import http.client
import http.server
import itertools
import json
import os
import random
import re
import secrets
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from typing import ClassVar

from tests.inferiors.live.nineteenth_extension import extension
from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

IMAGE = """
import sys, time
for number in range(200):
    sys.stderr.write("a warning of the image, which is as long as a line of text may be " * 15 + "\\n")
    time.sleep(0.001)
print("done")
"""


class SystemProcess:
    """A process whose output and errors come through pipes. They are read when it has ended."""

    def __init__(self, arguments):
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_for_exit(self):
        self.process.wait()
        return self.process.stdout.read(), self.process.stderr.read()


def errors_that_are_read_at_the_end():
    """As pharo-contributions/OSSubprocess#58: a process writes many errors. They were redirected to a pipe, which is
    full; its parent waits until it has ended before it reads them."""
    image = SystemProcess([sys.executable, "-S", "-c", IMAGE])
    time.sleep(0.5)
    at("child", image.process.pid)
    at("main")
    print(image.wait_for_exit(), flush=True)


class Subprocess:
    """Both ends of the pipe for the output are open until it is destroyed."""

    def __init__(self, arguments):
        self.reads, self.writes = os.pipe()
        self.process = subprocess.Popen(arguments, stdout=self.writes)

    def join(self):
        return self.process.wait()

    def read(self, count):
        return os.read(self.reads, count)

    def destroy(self):
        os.close(self.writes)
        os.close(self.reads)


def own_end_of_the_output():
    """As sheredom/subprocess.h#8: the output of a process is read until its end. That does not come when the process
    has ended, since the one who reads has the other end of the pipe open too."""
    process = Subprocess([sys.executable, "-S", "-c", "print('a line of text')"])
    print(process.join(), flush=True)
    output = process.read(4096)
    at("main")
    while data := process.read(4096):
        output += data
    print(output, flush=True)
    process.destroy()


def serve_apps(library, apps, images):
    while True:
        width = apps.recv()
        at("child")
        images.send(library.render_app(width))


def library_loaded_before_the_workers():
    """As tronbyt/server#186: the application is loaded once, before the workers are forked, and with it a library whose
    runtime begins to run in a thread. A worker has no such thread, and its first call waits for one."""
    import multiprocessing

    library = extension()
    print(library.render_app(64), flush=True)
    (apps_read, apps), (images, images_write) = (multiprocessing.Pipe(False) for _ in range(2))
    child_of(serve_apps, library, apps_read, images_write)
    apps.send(64)
    wait_for_role("child")
    at("main")
    images.recv()


class PoolActor:
    """Has a processor of the cluster as long as it lives."""

    def __init__(self, arguments):
        sys.argv = list(arguments)

    def apply(self, function, *values):
        return function(*values)


def square(value):
    return value * value


class Pool:
    """Its calls are made by actors."""

    def __init__(self, processes):
        import ray

        self.ray = ray
        actor = ray.remote(num_cpus=1)(PoolActor)
        self.actors = [actor.remote(sys.argv) for _ in range(processes)]

    def map(self, function, values):
        actors = itertools.cycle(self.actors)
        return self.ray.get([next(actors).apply.remote(function, value) for value in values])


def sum_of_squares(count):
    pool = Pool(1)
    at("a")
    return sum(pool.map(square, range(count)))


def pool_inside_a_pool_of_actors():
    """As ray-project/ray#21488: what a pool of actors calls makes a pool of its own. The actors of the outer one have
    all processors of the cluster, and those of the inner one cannot be placed."""
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    pool = Pool(1)
    print(pool.map(square, range(3)), flush=True)
    sums = [pool.actors[0].apply.remote(sum_of_squares, 4)]
    wait_for_role("a")
    at("main")
    ray.get(sums)


class Tasks:
    """In a table; who works on one has it locked."""

    def __init__(self):
        self.database = sqlite3.connect(in_folder("tasks.sqlite"), isolation_level=None, timeout=10)

    def create(self, name):
        self.database.execute("create table if not exists tasks (name text, locked integer, status text)")
        self.database.execute("insert into tasks values (?, 0, 'queued')", (name,))

    def lock(self, name):
        changed = self.database.execute("update tasks set locked = 1 where name = ? and locked = 0", (name,))
        return changed.rowcount == 1

    def end(self, name):
        self.database.execute("update tasks set locked = 0, status = 'completed' where name = ?", (name,))


def process_task(name, processed):
    tasks = Tasks()
    if not tasks.lock(name):
        return
    processed.set()
    work_for(3)
    tasks.end(name)


def task_locked_by_a_dead_worker():
    """As WebODM/WebODM#676: a worker has been killed while it worked on a task, for which the task was locked. It is
    locked for ever, and whoever would do it tries again and again to lock it."""
    import multiprocessing

    tasks, processed = Tasks(), multiprocessing.get_context("fork").Event()
    tasks.create("a map of the field")
    worker = child_of(process_task, "a map of the field", processed)
    processed.wait()
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    at("main")
    while not tasks.lock("a map of the field"):
        time.sleep(0.5)
    tasks.end("a map of the field")


def frame_of(message):
    data = json.dumps(message).encode()
    return struct.pack("!I", len(data)) + data


def publish(listener):
    connection = listener.accept()[0]
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    for number in itertools.count():
        prices = [{"id": f"{number}-{item}", "price": item * 0.25} for item in range(40_000)]
        if number == 2:
            at("server")
        connection.sendall(frame_of({"number": number, "prices": prices}))


def read_frame(connection):
    data = b""
    size = 4
    while len(data) < size:
        data += connection.recv(min(1 << 16, size - len(data))) or sys.exit("the connection was closed")
        if size == 4 and len(data) == 4:
            size += struct.unpack("!I", data)[0]
    return data[4:]


def parse_slowly(data):
    prices = {}
    for match in re.finditer(rb'"id": "([^"]+)", "price": ([0-9.]+)', data):
        prices[match[1].decode()] = float(match[2])
        if len(prices) % 400 == 0:
            prices = dict(sorted(prices.items()))
    return prices


def client_parses_slowly():
    """Healthy, as websockets/ws#1218: a server sends messages to a client that takes long to parse each. What is sent
    fills all buffers, and the server has to wait until the client reads again."""
    listener = socket.create_server(("127.0.0.1", 0))
    child_of(publish, listener)
    connection = socket.create_connection(listener.getsockname())
    for number in itertools.count():
        data = read_frame(connection)
        if number == 2:
            wait_for_role("server")
            at("main")
        for _ in range(3):
            parse_slowly(data)


KERNEL = """
#include <regex>
#include <string>
template <int N> struct Stage {
    static double run(double value) { return Stage<N - 1>::run(value * %d + N) + N; }
};
template <> struct Stage<0> {
    static double run(double value) { return value; }
};
bool named(const std::string &name) { return std::regex_match(name, std::regex("kernel-[0-9]+")); }
double kernel(double value) { return named("kernel-%d") ? Stage<400>::run(value) : 0; }
"""


class Pipeline:
    """Each of its kernels is compiled when it is first wanted, for the sizes that are wanted."""

    def __init__(self, kernels):
        self.kernels, self.compiled = kernels, {}

    def compile(self, number):
        source = in_folder(f"kernel{number}.cpp")
        with open(source, "w") as file:
            file.write(KERNEL % (number, number))
        made = in_folder(f"kernel{number}.o")
        words = ["g++", "-std=c++17", "-O2", "-fPIC", "-c", source, "-o", made]
        subprocess.run(words, check=True)
        return made

    def enqueue(self):
        for number in self.kernels:
            if number not in self.compiled:
                self.compiled[number] = self.compile(number)


def first_enqueue_compiles_kernels():
    """Healthy, as luigifcruz/blade#80: the first time that something is given to a pipeline takes much longer than the
    others. All its kernels are compiled then, and nothing is said of it."""
    pipeline = Pipeline(range(1, 1000))
    at("main")
    pipeline.enqueue()


class Testing(http.server.BaseHTTPRequestHandler):
    """Has a few tasks for workers, and then none."""

    protocol_version = "HTTP/1.1"
    tasks: ClassVar[collections.deque] = collections.deque(range(3))

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.tasks:
            at("server")
        task = {"task": self.tasks.popleft()} if self.tasks else {"task_waiting": False}
        data = json.dumps(task).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


def serve_for_ever(server):
    server.serve_forever()


def request_task(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/api/request_task", json.dumps({"worker": os.getpid()}))
    task = json.loads(connection.getresponse().read())
    connection.close()
    return task


def no_tasks_for_the_worker():
    """Healthy, as official-stockfish/fishtest#42: a worker asks for a task, and there is none. It sleeps, and asks
    again; it does not say so."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Testing)
    child_of(serve_for_ever, server)
    port, told = server.server_address[1], False
    while True:
        task = request_task(port)
        if "task" in task:
            work_for(0.1)
            continue
        if not told:
            at("main")
            told = True
        time.sleep(90)


class ExponentialBackoff:
    """Tries it so often, with a longer sleep after each failure, the last one too."""

    def __init__(self, attempts, delay, factor):
        self.attempts, self.delay, self.factor = attempts, delay, factor

    def attempt(self, operation):
        delay = self.delay
        for _ in range(self.attempts):
            if operation():
                return
            time.sleep(delay)
            delay *= self.factor
        raise RuntimeError(f"failed after {self.attempts} attempts")


def upload_segment(number, port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        if number == 1 and not os.path.exists(in_folder("main")):
            at("main")
        return False
    return True


def sleeps_after_its_last_attempt():
    """Healthy, as apache/pinot#9158: segments are uploaded, to a server that does not listen now. After each attempt,
    and even after the last, it sleeps for longer than before; then comes the next segment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ExponentialBackoff(3, 1.0, 4).attempt(lambda: upload_segment(0, port))
    for number in itertools.count(1):
        try:
            ExponentialBackoff(4, 15.0, 4).attempt(lambda number=number: upload_segment(number, port))
        except RuntimeError as error:
            print(f"segment {number}: {error}", flush=True)


class Index:
    """Of sessions. Only one process at a time may write it."""

    def rebuild(self, seconds, role):
        with open(in_folder("index.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if role:
                at(role)
            until, words = time.monotonic() + seconds, collections.Counter()
            with open(in_folder("index.json"), "w") as file:
                while time.monotonic() < until:
                    session = "\n".join(f"a line, number {number}, of a session" for number in range(2000))
                    words.update(re.findall(r"\w+", session))
                    file.seek(0)
                    json.dump(dict(words.most_common(20)), file)
                    time.sleep(0.01)


def rebuild_all():
    role = "child"
    while True:
        Index().rebuild(100, role)
        role = None
        time.sleep(0.5)


def silent_while_another_indexes():
    """Healthy, as vshulcz/deja-vu#994: a command waits until another process has rebuilt the index, and says nothing
    for so long."""
    child_of(rebuild_all)
    wait_for_role("child")
    at("main")
    while True:
        Index().rebuild(0.1, None)
        print("up to date", flush=True)


def is_prime(number, rounds):
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(rounds):
        power = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = pow(power, 2, number)
            if power == number - 1:
                break
        else:
            return False
    return True


def prime_of(bits):
    while True:
        number = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if all(number % small for small in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31)) and is_prime(number, 20):
            return number


class KeyMaster:
    """Makes keys in a thread, one after the other."""

    def __init__(self):
        self.changed, self.wanted, self.keys = threading.Condition(), [], {}
        thread(self.make_keys)

    def make_keys(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.wanted)
                name, bits = self.wanted.pop(0)
            key = prime_of(bits // 2) * prime_of(bits // 2)
            with self.changed:
                self.keys[name] = key
                self.changed.notify_all()

    def generate(self, name, bits):
        with self.changed:
            self.wanted.append((name, bits))
            self.changed.notify_all()
            self.changed.wait_for(lambda: name in self.keys)
            return self.keys[name]


def makes_a_key_of_many_bits():
    """Healthy, as FusionAuth/fusionauth-issues#3006: a pair of keys is made, of many bits, and who wants it is told
    nothing until it is there. Two primes have to be found."""
    keys = KeyMaster()
    print(keys.generate("first", 256) % 10, flush=True)
    at("main")
    for number in itertools.count():
        print(keys.generate(f"large {number}", 12288) % 10, flush=True)


class Store:
    """Sorted files. When there are too many of the newest level, nothing is written until they have been merged."""

    LIMIT, RATE = 8, 600  # files, and records that may be merged in a second

    def __init__(self):
        self.changed, self.files, self.numbers = threading.Condition(), [], itertools.count()
        self.memory, self.stopped = {}, False
        thread(self.compact)

    def put(self, key, value):
        with self.changed:
            if len(self.files) >= self.LIMIT and not os.path.exists(in_folder("main")):
                at("main")
            self.changed.wait_for(lambda: len(self.files) < self.LIMIT)
        self.memory[key] = value
        if len(self.memory) >= 6000:
            self.flush()

    def flush(self):
        name = in_folder(f"{next(self.numbers)}.sst")
        with open(name, "w") as file:
            file.writelines(f"{key} {value}\n" for key, value in sorted(self.memory.items()))
            os.fsync(file.fileno())
        self.memory = {}
        with self.changed:
            self.files.append(name)
            self.changed.notify_all()

    def compact(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: len(self.files) >= self.LIMIT)
                inputs = list(self.files)
            self.merge(inputs)
            with self.changed:
                self.files = [name for name in self.files if name not in inputs]
                self.changed.notify_all()

    def merge(self, inputs):
        opened = [open(name) for name in inputs]  # noqa: SIM115 - closed below, all together
        with open(in_folder("level1.sst"), "w") as output:
            for count, line in enumerate(heapq.merge(*opened)):
                output.write(line)
                if count % 60 == 59:
                    os.fsync(output.fileno())
                    time.sleep(60 / self.RATE)
        for file in opened:
            file.close()


def writes_stopped_for_a_compaction():
    """Healthy, as solana-labs/solana#14586: blocks are not processed for a minute and more, since their records cannot
    be written. The store has too many new files, and merges them first, not faster than the disk should be used."""
    store, shuffled = Store(), random.Random(1)
    for slot in itertools.count():
        store.put(f"{shuffled.getrandbits(48):012x}", f"block {slot}")


class Scheduler:
    """Of jobs that are done once, after some time, and of others that are done at an interval."""

    INTERVAL = 4 * 3600

    def __init__(self):
        self.jobs = []

    def add(self, function, delay=None):
        due = time.monotonic() + (self.INTERVAL if delay is None else delay)
        self.jobs.append([due, function, delay is None])

    async def run(self):
        while self.jobs:
            self.jobs.sort(key=lambda job: job[0])
            job = self.jobs[0]
            delay = job[0] - time.monotonic()
            if len(self.jobs) == 1:
                print(f"next wakeup in {delay:.0f} seconds", flush=True)
                at("main")
            await asyncio.sleep(max(delay, 0))
            await job[1]()
            if job[2]:
                job[0] += self.INTERVAL
            else:
                self.jobs.remove(job)


async def refresh():
    work_for(0.01)


def next_run_in_four_hours():
    """Healthy, as dipdup-io/dipdup#348: a job that should run all the time has been given to the scheduler, which
    begins it after its usual interval. Until then there is nothing to do."""
    scheduler = Scheduler()
    for number in range(3):
        scheduler.add(refresh, delay=0.1 * (number + 1))
    scheduler.add(refresh)
    asyncio.run(scheduler.run())


class StoryModel:
    """A stack of layers, which are large for a CPU."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.set_num_threads(1)
        self.embedding = torch.ones(1000, 1024) * 0.01
        self.layers = [torch.eye(1024) * 0.5 for _ in range(8)]

    def logits(self, tokens):
        rows = self.embedding[tokens]
        for layer in self.layers:
            scores = self.torch.softmax(rows @ rows.transpose(1, 2), -1)
            rows = self.torch.tanh(scores @ rows @ layer)
        return rows[:, -1] @ self.embedding.T

    def generate(self, prompts, length):
        tokens = prompts
        for step in range(length):
            chosen = self.torch.multinomial(self.torch.softmax(self.logits(tokens), -1), 1)
            tokens = self.torch.cat([tokens, chosen], 1)
            if step == 3 and length > 10:
                at("main")
        return tokens


def one_story_on_a_cpu():
    """Healthy, as facebookresearch/fairseq#286: stories are generated on a CPU, and a batch of them takes hours. The
    number of batches that are done is still zero."""
    model = StoryModel()
    prompts = model.torch.zeros(16, 200, dtype=model.torch.int64)
    model.generate(prompts[:1, :8], 4)
    for batch in range(474):
        print(f"{batch} of 474", flush=True)
        model.generate(prompts, 1000)


PROGRAMS = {
    "errors-that-are-read-at-the-end": errors_that_are_read_at_the_end,
    "own-end-of-the-output": own_end_of_the_output,
    "library-loaded-before-the-workers": library_loaded_before_the_workers,
    "pool-inside-a-pool-of-actors": pool_inside_a_pool_of_actors,
    "task-locked-by-a-dead-worker": task_locked_by_a_dead_worker,
    "client-parses-slowly": client_parses_slowly,
    "first-enqueue-compiles-kernels": first_enqueue_compiles_kernels,
    "no-tasks-for-the-worker": no_tasks_for_the_worker,
    "sleeps-after-its-last-attempt": sleeps_after_its_last_attempt,
    "silent-while-another-indexes": silent_while_another_indexes,
    "makes-a-key-of-many-bits": makes_a_key_of_many_bits,
    "writes-stopped-for-a-compaction": writes_stopped_for_a_compaction,
    "next-run-in-four-hours": next_run_in_four_hours,
    "one-story-on-a-cpu": one_story_on_a_cpu,
}

if __name__ == "__main__":
    run(PROGRAMS)
