"""Engines of several processes that hang, and healthy ones, twenty-sixth set: `twenty_sixth_engines.py NAME FOLDER`."""

import http.client
import http.server
import itertools
import mmap
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from tests.inferiors.live.place import at, child_of, in_folder, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def cluster(cpus):
    import ray

    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    return ray


def command(name):
    return [sys.executable, "-m", "tests.inferiors.live.twenty_sixth_engines", name, sys.argv[2]]


def make_batches(indexes, batches):
    """Of a worker. An index less than zero is the end."""
    while True:
        index = indexes.get()
        if index < 0:
            break
        work_for(0.01)
        batches.put((index, bytes(1 << 18)))
    at("worker")


class MultiprocessIterator:
    """Batches of a dataset, made ahead of time by another process."""

    AHEAD = 64

    def __init__(self):
        self.indexes, self.batches, self.next = FORK.Queue(), FORK.Queue(), 0
        for index in range(self.AHEAD):
            self.indexes.put(index)
        self.worker = FORK.Process(target=make_batches, args=(self.indexes, self.batches))
        self.worker.start()

    def __next__(self):
        index, batch = self.batches.get()
        self.indexes.put(self.AHEAD + self.next)
        self.next += 1
        return index, len(batch)

    def finalize(self):
        """What is there is taken, so that the worker can end."""
        try:
            while True:
                self.batches.get_nowait()
        except queue.Empty:
            pass
        self.indexes.put(-1)
        wait_for_role("worker")
        at("main")
        self.worker.join()


def iterator_is_finalized():
    """As chainer/chainer#1358: an iterator takes what its worker has made, tells it to end, and joins it. The worker
    has made more after that, and waits at its end until that is taken."""
    batches = MultiprocessIterator()
    for _ in range(10):
        next(batches)
    batches.finalize()


class Connector:
    """Saves blocks of the cache elsewhere, in a thread. What it has done goes with the answers of the worker."""

    def __init__(self, worker):
        self.worker, self.blocks = worker, queue.Queue()
        thread(self.save_blocks)

    def save_blocks(self):
        while True:
            step = self.blocks.get()
            self.worker.answer(self.worker.answers, ("saved", step))


class Worker:
    """Of one rank. Its answers are sent by a thread, all that there are at once."""

    def __init__(self, rank, work, answered):
        self.rank, self.work, self.answered = rank, work, answered
        self.changed, self.answers, self.sent = threading.Condition(), [], []
        self.connector = Connector(self)
        thread(self.send_answers)

    def answer(self, answers, word):
        with self.changed:
            answers.append(word)
            self.changed.notify_all()

    def send_answers(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.answers)
                answers, self.answers = self.answers, []
            self.answered.send(answers)
            with self.changed:
                self.sent += answers
                self.changed.notify_all()

    def execute(self, step):
        answers = self.answers
        work_for(0.01)
        if step % 6 == 5 and self.rank == 0:
            self.connector.blocks.put(step)
            with self.changed:
                self.changed.wait_for(lambda: ("saved", step) in self.sent)
        self.answer(answers, ("step", step))

    def run(self):
        while True:
            step = self.work.recv()
            self.execute(step)
            if step == 5:
                at(f"worker{self.rank}")


def run_worker(rank, work, answered):
    Worker(rank, work, answered).run()


class Executor:
    """Gives each step to all workers, and takes the answer of each."""

    def __init__(self, count):
        self.works, self.answers, self.known = [], [], []
        for rank in range(count):
            work, works = FORK.Pipe(duplex=False)
            answers, answered = FORK.Pipe(duplex=False)
            child_of(run_worker, rank, work, answered)
            self.works.append(works)
            self.answers.append(answers)
            self.known.append([])

    def execute(self, step):
        for works in self.works:
            works.send(step)
        if step == 5:
            wait_for_role("worker0")
            wait_for_role("worker1")
            at("main")
        for rank, answers in enumerate(self.answers):
            while ("step", step) not in self.known[rank]:
                self.known[rank] += answers.recv()


def steps_with_a_connector():
    """As FujitsuPolycom/sparkring#224: the answer of a worker is lost when its connector saves blocks at the same time.
    The engine waits for it, and the workers wait for the next step."""
    executor = Executor(2)
    for step in itertools.count():
        executor.execute(step)


def answer_requests(port):
    import zmq

    server = zmq.Context().socket(zmq.REP)
    port.put(server.bind_to_random_port("tcp://127.0.0.1"))
    for number in itertools.count():
        request = server.recv()
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        server.send(request)


def asks_its_server():
    """As zeromq/rbzmq#2: a client asks a server again and again, and the server is killed. The client stays where it
    receives the answer."""
    import zmq

    port = FORK.SimpleQueue()
    server = FORK.Process(target=answer_requests, args=(port,))
    server.start()
    client = zmq.Context().socket(zmq.REQ)
    client.connect(f"tcp://127.0.0.1:{port.get()}")
    for number in itertools.count():
        client.send(f"request {number}".encode())
        if number == 5:
            server.join()
            at("main")
        client.recv()


def stage_in():
    """Copies files, and tells about each of them."""
    at("command")
    for number in range(5000):
        sys.stderr.write(f"copied /scratch/a/long/path/to/the/file/number/{number} to the node\n")


def stages_in_by_a_command():
    """As muccg/yabi#262: the output of a command goes to pipes, and its end is waited for before they are read. The
    command has more to say than there is room for in a pipe."""
    process = subprocess.Popen(command("stage-in"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_role("command")
    at("main")
    status = process.wait()
    print(status, process.stdout.read(), process.stderr.read(), flush=True)


class ModelLock:
    """A file that is there as long as somebody downloads the model."""

    def __init__(self, model):
        self.path = in_folder(f"{model}.lock")

    def taken(self):
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL))
            return False
        except FileExistsError:
            return True

    def __enter__(self):
        tries = 0
        while self.taken():
            if tries == 0:
                at("main")
            if tries % 20 == 0:
                print(f"still waiting to acquire {self.path}", flush=True)
            tries += 1
            time.sleep(0.5)

    def __exit__(self, *_):
        os.unlink(self.path)


def download_model(begun):
    with ModelLock("Qwen3-30B"):
        begun.set()
        while True:
            time.sleep(1)


def downloads_one_at_a_time():
    """As modelscope/modelscope#1778: who downloads a model makes a file, and removes it after that. A process that did
    was killed, and the next one waits until the file is gone."""
    begun = FORK.Event()
    process = FORK.Process(target=download_model, args=(begun,))
    process.start()
    begun.wait()
    process.kill()
    process.join()
    with ModelLock("Qwen3-30B"):
        print("downloading", flush=True)


def compile_and_test():
    """Of one mutant, on a slow machine."""
    source = "\n".join(f"def function_{number}(value):\n    return value * {number} + 1" for number in range(400))
    for count in range(1_000_000):
        names = {}
        exec(compile(source, "mutant.py", "exec"), names)
        for number in range(400):
            assert names[f"function_{number}"](2) == 2 * number + 1
        if count == 3:
            at("command")


def tests_its_mutants():
    """Healthy, as micheletufano/DeepMutation#4: the command that compiles and tests each mutant seems to hang. The
    machine is very slow."""
    for number in range(100):
        with open(in_folder(f"mutant{number}.log"), "w") as log:
            process = subprocess.Popen(command("compile-and-test"), stdout=log, stderr=log)
            if number == 0:
                wait_for_role("command")
                at("main")
            process.wait()


class Trial:
    """An actor that trains a little when it is told to."""

    def __init__(self, arguments, role):
        sys.argv, self.role, self.steps = list(arguments), role, 0

    def train(self):
        work_for(0.05)
        self.steps += 1
        if self.steps == 2:
            at(self.role)
        return self.steps


def choose_next(results, trials):
    """What is to be done next is decided by all that is known of all trials."""
    best = {}
    for number in range(trials):
        best[number] = sum(hash((number, result)) % 1000 for result in results for _ in range(3000))
    return sorted(best, key=best.get)[:2]


def thousands_of_trials():
    """Healthy, as ray-project/ray#7608: there are 4000 trials. Between two steps of one of them much time goes by, in
    which the driver decides what comes next and the actors have nothing to do."""
    ray = cluster(2)
    trial = ray.remote(num_cpus=1)(Trial)
    actors = [trial.remote(sys.argv, role) for role in "ab"]
    for step in itertools.count():
        results = ray.get([actor.train.remote() for actor in actors])
        if step == 2:
            at("main")
        choose_next(results, 20 if step < 2 else 4000)


class Engine:
    """Its weights are in memory that is locked, and given back piece by piece."""

    BLOCK, BLOCKS = 1 << 20, 32

    def __init__(self):
        self.memory = mmap.mmap(-1, self.BLOCK * self.BLOCKS)
        self.memory.write(bytes(self.BLOCK * self.BLOCKS))

    def unload(self, pieces):
        for number in range(pieces):
            place = number % self.BLOCKS * self.BLOCK
            self.memory[place : place + self.BLOCK] = bytes(self.BLOCK)
            self.memory.madvise(mmap.MADV_DONTNEED, place, self.BLOCK)
            if number == 4:
                at("engine")
            time.sleep(0.05)


def run_engine(words, done):
    engine = Engine()
    while words.recv() != "unload":
        work_for(0.05)
        done.send("generated")
    engine.unload(400_000)
    done.send("unloaded")


def watch(ended):
    """Says that an end takes long, and does no more."""
    for minute in itertools.count(1):
        if ended.wait(60):
            return
        print(f"the teardown takes {minute} minutes so far", flush=True)


def unloads_its_engine():
    """Healthy, as jundot/omlx#2334: a large engine is unloaded, which takes longer than the minute that a watch allows
    for. It goes on all the time."""
    words, orders = FORK.Pipe(duplex=False)
    results, done = FORK.Pipe(duplex=False)
    child_of(run_engine, words, done)
    for _ in range(3):
        orders.send("generate")
        results.recv()
    ended = threading.Event()
    thread(watch, ended)
    orders.send("unload")
    wait_for_role("engine")
    at("main")
    print(results.recv(), flush=True)
    ended.set()


class Tweets(http.server.BaseHTTPRequestHandler):
    """Takes some requests in each quarter of an hour."""

    protocol_version = "HTTP/1.1"
    WINDOW, LIMIT = 900, 10
    left, reset = LIMIT, 0.0

    def do_GET(self):
        now = time.time()
        if now >= Tweets.reset:
            Tweets.left, Tweets.reset = self.LIMIT, now + self.WINDOW
        Tweets.left -= 1
        self.send_response(200 if Tweets.left >= 0 else 429)
        self.send_header("x-rate-limit-reset", str(int(Tweets.reset)))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        if Tweets.left < 0:
            at("service")

    def log_message(self, *words):
        pass


def serve_tweets(server):
    server.serve_forever()


class Client:
    """Goes through all pages of a search. Told that there were too many requests, it sleeps until there may be more."""

    def __init__(self, port):
        self.port = port

    def get(self, page):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", f"/search?page={page}")
        response = connection.getresponse()
        response.read()
        return response

    def search(self):
        page = 0
        while True:
            response = self.get(page)
            if response.status == 429:
                seconds = max(float(response.headers["x-rate-limit-reset"]) - time.time(), 0) + 1
                print(f"rate limit exceeded: sleeping {seconds:.0f} secs", flush=True)
                wait_for_role("service")
                at("main")
                time.sleep(seconds)
            else:
                page += 1
                yield page


def waits_for_the_next_window():
    """Healthy, as DocNow/twarc#584: a service takes some requests in each quarter of an hour, and the client sleeps
    until the next one begins."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tweets)
    child_of(serve_tweets, server)
    for page in Client(server.server_port).search():
        print(f"page {page}", flush=True)


PROGRAMS = {
    "iterator-is-finalized": iterator_is_finalized,
    "steps-with-a-connector": steps_with_a_connector,
    "asks-its-server": asks_its_server,
    "stage-in": stage_in,
    "stages-in-by-a-command": stages_in_by_a_command,
    "downloads-one-at-a-time": downloads_one_at_a_time,
    "compile-and-test": compile_and_test,
    "tests-its-mutants": tests_its_mutants,
    "thousands-of-trials": thousands_of_trials,
    "unloads-its-engine": unloads_its_engine,
    "waits-for-the-next-window": waits_for_the_next_window,
}

if __name__ == "__main__":
    run(PROGRAMS)
