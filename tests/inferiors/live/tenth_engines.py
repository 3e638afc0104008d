"""Engines of several processes that hang, and healthy ones, tenth set: `tenth_engines.py NAME FOLDER`."""

import http.client
import http.server
import itertools
import json
import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.inferiors.live.place import at, child_of, run, thread, wait_for_role, work_for

FORK = multiprocessing.get_context("fork")


def work_on_steps(number, steps, answers, housekeeping):
    """A worker: for each step an answer, then what can be done later."""
    at(f"worker{number}")
    while True:
        steps.acquire()
        work_for(0.01)
        answers.send(number)
        work_for(housekeeping)


def engine_of_two(requests):
    """The engine: a step of both workers for each request. They wait for their steps at the same semaphore."""
    steps, pipes = FORK.Semaphore(0), [FORK.Pipe() for _ in range(2)]
    for number, (_, theirs) in enumerate(pipes):
        child_of(work_on_steps, number, steps, theirs, 0.5 * number)
    for number in range(2):
        wait_for_role(f"worker{number}")
    at("engine")
    while True:
        request = requests.recv()
        for _ in pipes:
            steps.release()
        for ours, _ in pipes:
            ours.recv()
        requests.send(request)


def one_takes_both_steps():
    """Worker 1 still tidies up after a step when the next one begins, and worker 0 has done its own by then: it takes
    worker 1's as well."""
    ours, theirs = FORK.Pipe()
    FORK.Process(target=engine_of_two, args=(theirs,)).start()
    for role in ("worker0", "worker1", "engine"):
        wait_for_role(role)
    at("main")
    for number in itertools.count():
        ours.send(number)
        ours.recv()


class Front(http.server.BaseHTTPRequestHandler):
    """/generate gives a request to the engine and waits for its answer, which comes by /done."""

    jobs, answers = None, {}
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/generate":
            answered = self.answers[body["number"]] = threading.Event()
            self.jobs.put(body["number"])
            answered.wait()
        else:
            self.answers.pop(body["number"]).set()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class FrontServer(http.server.HTTPServer):
    """With a fixed number of threads for the requests."""

    def __init__(self, threads):
        super().__init__(("127.0.0.1", 0), Front)
        self.pool = ThreadPoolExecutor(threads)

    def process_request(self, request, address):
        self.pool.submit(self.answer, request, address)

    def answer(self, request, address):
        self.finish_request(request, address)
        self.shutdown_request(request)


def post(address, path, number):
    connection = http.client.HTTPConnection(*address)
    connection.request("POST", path, json.dumps({"number": number}))
    connection.getresponse().read()
    connection.close()


def generate(address, jobs, seconds):
    """The engine: batches of two."""
    for batch in itertools.count():
        numbers = [jobs.get() for _ in range(2)]
        work_for(seconds)
        if batch == 0:
            at("engine")
        for number in numbers:
            post(address, "/done", number)


def ask(address, first):
    for number in itertools.count(first, 2):
        post(address, "/generate", number)


def two_clients(address):
    thread(ask, address, 1)
    at("client")
    ask(address, 0)


def front(threads, seconds):
    jobs, server = FORK.SimpleQueue(), FrontServer(threads)
    Front.jobs = jobs
    child_of(generate, server.server_address, jobs, seconds)
    child_of(two_clients, server.server_address)
    at("main")
    server.serve_forever()


def answer_finds_no_thread():
    """Both threads of the front end have a request and wait for its answer. The engine brings the first one, for which
    there is no thread left."""
    front(2, 0.05)


def answer_finds_thread():
    """Healthy: the front end has three threads for two clients, and a batch takes 1.2 seconds."""
    front(3, 1.2)


def draws(answers, random):
    answers.send(random.random())


def fork_while_drawing():
    """A thread draws noise, which takes a while, when the worker is forked; it draws from the same generator."""
    import numpy

    random, begun = numpy.random.default_rng(1), threading.Event()
    ours, theirs = FORK.Pipe()

    def draw_noise():
        begun.set()
        random.standard_gamma(0.3, 30_000_000)

    drawn = thread(draw_noise)
    begun.wait()
    time.sleep(0.3)
    worker = child_of(draws, theirs, random)
    at("worker", worker.pid)
    drawn.join()
    at("main")
    ours.recv()


def serve_one_version(requests, seconds):
    """A worker, until there is nothing more for it; what it has begun it ends."""
    while requests.recv():
        work_for(seconds)


def replaced_in_turn():
    """Healthy: a new worker is started and has nothing to do until the old one has ended its last request."""
    old = None
    for version in itertools.count():
        ours, theirs = FORK.Pipe()
        new = child_of(serve_one_version, theirs, 1.3)
        theirs.close()
        if old:
            old[1].send(False)
            old[0].join()
        ours.send(True)
        old = new, ours
        if version == 1:
            at("main")


PROGRAMS = {
    "one-takes-both-steps": one_takes_both_steps,
    "answer-finds-no-thread": answer_finds_no_thread,
    "answer-finds-thread": answer_finds_thread,
    "fork-while-drawing": fork_while_drawing,
    "replaced-in-turn": replaced_in_turn,
}

if __name__ == "__main__":
    run(PROGRAMS)
